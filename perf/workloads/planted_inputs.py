"""Lines of workloads with planted faults: which lines are wrong is known exactly, whatever the size.

All come in groups of 300 lines, in a random order within each group; a job makes one record of each group. A
file that is cut ends within its last group. In each tenth group, or each day's last hour, lines are wrong:
`is_wrong_*` tells a wrong line from a right one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

GROUP = 300
#: Each so many groups has its planted lines.
PLANTED = 10
#: Of the values of a group the job of `holistic` takes the 297th: so many wrong ones change it.
WRONG_READINGS = 4
MONTHS, GRADES, HOURS = 12, 4, 24
MINUTES_OF_DAY = 24 * 60


def _grouped(
    seed: int,
    right: Callable[[random.Random, int], str],
    wrong: Callable[[random.Random, int], str],
    wrongs: int = 1,
) -> Iterator[str]:
    rng = random.Random(seed)
    for group in count():
        planted = wrongs if group % PLANTED == 0 else 0
        lines = [wrong(rng, group) for _ in range(planted)]
        lines += [right(rng, group) for _ in range(GROUP - planted)]
        rng.shuffle(lines)
        yield from lines


def layovers(seed: int) -> Iterator[str]:
    """passenger, airport, arrival, departure: in the last hour some leave behind midnight."""
    rng = random.Random(seed)
    for group in count():
        airport, hour = divmod(group, HOURS)
        wrong = rng.randrange(GROUP) if hour == HOURS - 1 and airport % 2 == 0 else -1
        for number in range(GROUP):
            arrival = 60 * hour + rng.randrange(10)
            stay = 1 + rng.randrange(44) if rng.randrange(10) == 0 else 45 + rng.randrange(120)
            departure = min(arrival + stay, MINUTES_OF_DAY - 1)
            if number == wrong:
                departure = rng.randrange(30)
            passenger = f"p{group * GROUP + number:09d}"
            yield f"{passenger},A{airport:04d},{_clock(arrival)},{_clock(departure)}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def is_wrong_layover(line: str) -> bool:
    _, _, arrival, departure = line.split(",")
    return departure < arrival


def snowfalls(seed: int) -> Iterator[str]:
    """station, state, month, snow in mm or ft: some have the number of the one with the unit of the other."""

    def line(rng: random.Random, group: int, snow: str) -> str:
        state, month = divmod(group, MONTHS)
        return f"S{rng.randrange(100):02d},T{state:04d},{1 + month:02d},{snow}"

    def right(rng: random.Random, group: int) -> str:
        snow = f"{rng.randrange(300)}mm" if rng.randrange(5) else f"0.{rng.randrange(10)}ft"
        return line(rng, group, snow)

    return _grouped(seed, right, lambda rng, group: line(rng, group, f"{20 + rng.randrange(280)}ft"))


def is_wrong_snowfall(line: str) -> bool:
    snow = line.rsplit(",", 1)[1]
    return snow.endswith("ft") and float(snow[:-2]) >= 20


def students(seed: int) -> Iterator[str]:
    """name, school, grade, age: some have the year of their birth."""

    def line(rng: random.Random, group: int, age: int) -> str:
        school, grade = divmod(group, GRADES)
        return f"n{rng.randrange(10**8):08d},H{school:04d},{9 + grade},{age}"

    def right(rng: random.Random, group: int) -> str:
        return line(rng, group, 14 + rng.randrange(5))

    return _grouped(seed, right, lambda rng, group: line(rng, group, 1990 + rng.randrange(10)))


def is_wrong_student(line: str) -> bool:
    return int(line.rsplit(",", 1)[1]) > 100


def readings(seed: int) -> Iterator[str]:
    """region, station, reading: some are far too large."""

    def line(rng: random.Random, group: int, reading: int) -> str:
        return f"R{group:05d},S{rng.randrange(10)},{reading}"

    def right(rng: random.Random, group: int) -> str:
        return line(rng, group, rng.randrange(100))

    def wrong(rng: random.Random, group: int) -> str:
        return line(rng, group, 100_000 + rng.randrange(1_000))

    return _grouped(seed, right, wrong, WRONG_READINGS)


def is_wrong_reading(line: str) -> bool:
    return int(line.rsplit(",", 1)[1]) >= 100_000


def broken(seed: int) -> Iterator[str]:
    """number, station, value: some values are no numbers."""

    def line(rng: random.Random, group: int, value: str) -> str:
        return f"{rng.randrange(10**9):09d},S{rng.randrange(50):02d},{value}"

    def right(rng: random.Random, group: int) -> str:
        return line(rng, group, str(1 + rng.randrange(1_000)))

    return _grouped(seed, right, lambda rng, group: line(rng, group, "none"))


def is_wrong_value(line: str) -> bool:
    return line.endswith(",none")


def documents(seed: int) -> Iterator[str]:
    """document, text: `onlyN` comes in one document, `bothN` in two; other words in any of eight."""
    rng = random.Random(seed)
    for group in count():
        first = rng.randrange(8)
        second = (first + 1 + rng.randrange(7)) % 8
        lines = [
            (rng.randrange(8), [f"word{rng.randrange(2_000)}" for _ in range(8)]) for _ in range(GROUP - 3)
        ]
        lines += [(first, [f"only{group}"]), (first, [f"both{group}"]), (second, [f"both{group}"])]
        rng.shuffle(lines)
        for document, words in lines:
            yield f"d{document}\t{' '.join(words)}"
