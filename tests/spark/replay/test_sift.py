"""`lineage sift` on programs with planted faults: which lines are wrong is known, and loops confirm it.

Each is a program of RDDs and one in SQL. What it makes of a few lines is computed by loops here.
`LINEAGE_TEST_SIFTS` names some of them, as `nested` or `nested:sql`.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perf.workloads import planted_inputs
from perf.workloads.generate import KINDS, write
from tests.support.spark.replay_bench import Answer, ReplayBench, replay_bench, state_of

pytestmark = pytest.mark.thorough

WORKLOADS = Path(planted_inputs.__file__).parent
GROUPS = 12
CHOSEN = os.environ.get("LINEAGE_TEST_SIFTS", "")
#: What the forms of a program are called, where it has others than most.
FORMS = {"crashing": {"rdd": "map", "sql": "sql-cast"}}


class Program(NamedTuple):
    """What is run, what is wrong, and what the answer must be.

    `fails` says, of some lines of the inputs, whether the program makes a wrong row of them. `culprits` and
    `rows`: how many planted lines are in the answer, and how many rows it has; None: all are planted.
    """

    inputs: tuple[str, ...]
    options: tuple[str, ...]
    fails: Callable[[Sequence[str]], bool]
    is_wrong: Callable[[str], bool]
    culprits: int | None
    rows: int | None


def sums(lines: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    """The last column by the others but the first."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for line in lines:
        _, *keys, value = line.split(",")
        groups[tuple(keys)].append(value)
    return groups


def has_negative_sum(lines: Sequence[str]) -> bool:
    totals: Counter[tuple[str, str]] = Counter()
    for line in lines:
        _, airport, arrival, departure = line.split(",")
        begin, end = (60 * int(clock[:2]) + int(clock[3:]) for clock in (arrival, departure))
        if end - begin < 45:
            totals[airport, arrival[:2]] += end - begin
    return any(total < 0 for total in totals.values())


def has_wide_range(lines: Sequence[str]) -> bool:
    ranges = [
        [float(snow[:-2]) * (304.8 if snow.endswith("ft") else 1) for snow in group]
        for group in sums(lines).values()
    ]
    return any(max(group) - min(group) > 1_000 for group in ranges)


def has_old_class(lines: Sequence[str]) -> bool:
    return any(sum(map(int, ages)) / len(ages) > 20 for ages in sums(lines).values())


def has_large_sum(lines: Sequence[str]) -> bool:
    totals: Counter[str] = Counter()
    for line in lines:
        station, _, reading = line.rpartition(",")
        totals[station] += int(reading)
    return any(total > 10_000 for total in totals.values())


def has_large_percentile(lines: Sequence[str]) -> bool:
    groups: dict[str, list[int]] = defaultdict(list)
    for line in lines:
        region, _, reading = line.split(",")
        groups[region].append(int(reading))
    return any(sorted(group)[(99 * len(group) + 99) // 100 - 1] > 1_000 for group in groups.values())


def has_unique_word(lines: Sequence[str]) -> bool:
    documents = {line.split("\t")[0] for line in lines if "only3" in line.split("\t")[1].split(" ")}
    return len(documents) == 1


def words(lines: Sequence[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split(" "))


COMMONEST = "a word that is filled in by the fixture"


def has_frequent_word(lines: Sequence[str]) -> bool:
    counts = words(lines)
    top = sorted(counts, key=lambda word: (-counts[word], word))[:10]
    return COMMONEST in top and counts[COMMONEST] >= 3


PROGRAMS = {
    "sift_airport": Program(
        ("layovers",), ("--fails", "int(line.split(',')[2]) < 0"), has_negative_sum,
        planted_inputs.is_wrong_layover, 1, 1,
    ),
    "sift_weather": Program(
        ("snowfalls",), ("--fails", "lambda row: float(row.split(',')[2]) > 1000"), has_wide_range,
        planted_inputs.is_wrong_snowfall, 1, 2,
    ),
    "sift_student": Program(
        ("students",), ("--test", "checks:has_old_class"), has_old_class,
        planted_inputs.is_wrong_student, 1, 1,
    ),
    "nested": Program(
        ("readings",), ("--wrong",), has_large_sum, planted_inputs.is_wrong_reading, 1, 1,
    ),
    "holistic": Program(
        ("readings",), ("--fails", "int(line.split(',')[1]) > 1000"), has_large_percentile,
        planted_inputs.is_wrong_reading, 1, 1,
    ),
    "unique_words": Program(
        ("documents",), ("--fails", "line.startswith('only3,')"), has_unique_word,
        lambda line: line.endswith("\tonly3"), 1, 1,
    ),
    "top_k": Program(
        ("words",), ("--fails",), has_frequent_word, lambda line: COMMONEST in line.split(" "), None, None,
    ),
    "subtract": Program(
        ("purchases", "customers"), ("--fails", "line.startswith('c00017,')"),
        lambda lines: any(line.startswith("c00017,") for line in lines),
        lambda line: line.startswith("c00017,"), 1, 1,
    ),
    "crashing": Program(
        ("broken",), ("--crash",), lambda lines: any(map(planted_inputs.is_wrong_value, lines)),
        planted_inputs.is_wrong_value, 1, 1,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def bench(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayBench]:
    global COMMONEST
    with replay_bench(kafka, tmp_path_factory.mktemp("sifts"), uuid.uuid4().hex[:12]) as made:
        for kind in ("snowfalls", "students", "readings", "documents", "broken"):
            lines = islice(KINDS[kind](4), GROUPS * planted_inputs.GROUP)
            write(made.folder / kind, lines, float("inf"))
        write(made.folder / "layovers", islice(KINDS["layovers"](4), 26 * planted_inputs.GROUP), float("inf"))
        for kind in ("words", "purchases"):
            write(made.folder / kind, KINDS[kind](4), 60_000)
        customers = [f"c{number:05d},name {number},PT" for number in range(17, 40)]
        write(made.folder / "customers", iter(customers), float("inf"))
        COMMONEST = words((made.folder / "words").read_text().splitlines()).most_common(1)[0][0]
        (made.folder / "checks.py").write_text(
            "def has_old_class(rows):\n    return any(float(row.split(',')[2]) > 20 for row in rows)\n"
        )
        yield made


def options_of(name: str, output: Path) -> list[str]:
    options = list(PROGRAMS[name].options)
    if name == "top_k":
        options.append(f"line.startswith('{COMMONEST},') and int(line.split(',')[1]) >= 3")
    if name == "nested":
        places = [
            f"{part}:{line}"
            for part in sorted(output.glob("part-*"))
            for line, row in enumerate(part.read_text().splitlines(), 1)
            if int(row.split(",")[1]) > 10_000
        ]
        options.append(places[0])
    return options


def chosen() -> list[tuple[str, str]]:
    """Programs and forms."""
    names = CHOSEN.split(",")
    return [
        (name, form)
        for name in PROGRAMS
        for form in ("rdd", "sql")
        if not CHOSEN or name in names or f"{name}:{form}" in names
    ]


@pytest.mark.parametrize(("name", "form"), chosen())
def test_the_culprits_are_found(bench: ReplayBench, name: str, form: str) -> None:
    program, output = PROGRAMS[name], bench.folder / f"{name}-{form}"
    inputs = [str(bench.folder / kind) for kind in program.inputs]
    command = [
        *(str(WORKLOADS / f"{name}.py"), *inputs, str(output)),
        FORMS.get(name, {}).get(form, form),
    ]
    application = bench.job(*command)
    before = state_of(bench.folder)
    answer: Answer = bench.lineage(
        *("sift", application, *options_of(name, output), "--json", "--", sys.executable, *command)
    )
    assert answer.code == 0, (answer.out, answer.err)
    assert state_of(bench.folder) == before
    sift = answer.json
    print(
        name,
        form,
        sift["tests"],
        sift["total"],
        sift["of"],
        sift["seconds"],
        sift["necessary"],
        sift["notes"],
    )
    lines = {kind: (bench.folder / kind).read_text().splitlines() for kind in program.inputs}
    rows = [row["text"] for row in sift["rows"]]
    assert rows == [lines[Path(row["path"]).name][row["row"]] for row in sift["rows"]]
    assert (sift["sufficient"], sift["minimal"], sift["whole"]) == (True, True, False), sift
    assert len(rows) == sift["total"] == (program.rows or len(rows)), sift
    assert sum(map(program.is_wrong, rows)) == (program.culprits or len(rows)), sift
    assert program.fails(rows)
    for number in range(len(rows)):
        assert not program.fails(rows[:number] + rows[number + 1 :])
