"""Writes the input of a workload, of any size, the same bytes for the same seed on every platform.

    python -m perf.workloads.generate words  --megabytes 500 --seed 1 --out words.txt [--keys uniform]
    python -m perf.workloads.generate tweets --megabytes 500 --seed 1 --out tweets.json
    python -m perf.workloads.generate purchases --megabytes 500 --seed 1 --out purchases.csv
    python -m perf.workloads.generate customers --seed 1 --out customers.csv

`KINDS` has all of them. Streams: memory does not grow with the size. A file ends with the line that reaches
the size (1 MB is 10**6 bytes), or, as customers, with the last line, and has its name only when it is whole.
Words and tweets have the vocabulary, shares and fields of the workloads Grep, WordCount and Tweets of the
Lineage Master thesis (TU Wien, 2024); purchases and customers are this project's.
"""

from __future__ import annotations

import argparse
import random
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, count, islice
from pathlib import Path

from perf.workloads import (
    customer_inputs,
    document_inputs,
    graph_inputs,
    movie_inputs,
    pigmix_inputs,
    planted_inputs,
)

VOCABULARY = 8000
ZIPF_EXPONENT = 2
WORDS_PER_LINE = range(8, 13)
LINES_PER_BATCH = 10_000
#: Of a line of `tail_words` so many are drawn from so many: 635,000 lines have 1.17 million different words.
RARE_PER_LINE, RARE_WORDS = 2, 8_000_000

MOVIE_SHARE = 0.01
#: Shares of the movie tweets that praise and that blame, drawn apart: some tweets do both and some neither.
PRAISE_SHARE, BLAME_SHARE = 0.7, 0.2
GOOD = ("incredible", "great", "top-notch", "masterpiece", "perfect")
BAD = ("confusing", "overrated", "unsatisfied", "poor", "bad", "hard")
MOVIE_TAGS = ("#movie", "#film", "#cinema", "#hollywood", "#blockbuster")
# As people write them; the job lower-cases.
MOVIES = (
    "BadBoys", "Inception", "Gangstar", "BreakingBad", "Matrix",
    "Interstellar", "TheGodfather", "PulpFiction", "FightClub", "TheDarkKnight",
)  # fmt: skip
OTHER_TAGS = ("#travel", "#food", "#music", "#sports", "#news", "#coffee", "#running", "#garden", "#cats")
# No phrase holds a movie or an adjective, so a tweet's opinion is only what was put there on purpose.
PHRASES = (
    "Just got home from a long day at the office", "Who else is still awake at this hour",
    "The train was late again this morning", "Found a tiny cafe around the corner",
    "My neighbour is learning the trumpet", "Three more chapters before the weekend",
    "Rain all afternoon and no umbrella", "Finally planted the tomatoes on the balcony",
    "Does anyone know a decent bike shop", "Soup for dinner and early to sleep",
    "That match went to extra time", "Listening to old records with the window open",
)  # fmt: skip
NAMES = ("anna", "ben", "carla", "david", "elena", "felix", "greta", "hugo", "ines", "jonas", "kaja", "luis")
PLACES = (
    "Vienna, Austria", "Lisbon, Portugal", "Toronto, Canada", "Nairobi, Kenya", "Osaka, Japan", "Leeds, UK",
    "Bogota, Colombia", "Helsinki, Finland", "Mumbai, India", "Melbourne, Australia", "Graz, Austria",
)  # fmt: skip
LANGUAGES = ("en", "de", "es", "fr", "ja")
DEVICES = ("Twitter for iPhone", "Twitter for Android", "Twitter Web App")
CUSTOMERS = 20_000
COUNTRIES = ("AT", "PT", "CA", "KE", "JP", "GB", "CO", "FI", "IN", "AU")
TWEET = (
    '{"id": %d, "username": "%s%d", "location": "%s", "text": "%s", '
    '"timestamp": "2024-%02d-%02dT%02d:%02d:%02dZ", "likes": %d, "retweets": %d, "replies": %d, '
    '"hashtags": ["%s"], "language": "%s", "device": "%s", "is_verified": %s, '
    '"follower_count": %d, "following_count": %d}'
)


class Urn:
    """Draws items by weight, with replacement, with the cost of a table look-up and not of a bisection.

    Of a table of 2**16 slots, item i has floor(p_i * 2**16); two random bytes choose one. The slots that are
    left stand for what the floors cut off: a draw that hits one is made again, among those remainders. So the
    probabilities are the exact ones, however small.
    """

    SLOTS = 1 << 16

    def __init__(self, items: Sequence[str], weights: Sequence[float]) -> None:
        total = sum(weights)
        shares = [weight * self.SLOTS / total for weight in weights]
        self._items = items
        self._table = [item for item, share in zip(items, shares, strict=True) for _ in range(int(share))]
        self._table += [""] * (self.SLOTS - len(self._table))
        self._remainders = list(accumulate(share - int(share) for share in shares))

    def draw(self, rng: random.Random, n: int) -> list[str]:
        codes = array("H", rng.randbytes(2 * n))
        if sys.byteorder == "big":
            codes.byteswap()
        drawn = list(map(self._table.__getitem__, codes))
        if again := drawn.count(""):
            at = -1
            for item in rng.choices(self._items, cum_weights=self._remainders, k=again):
                at = drawn.index("", at + 1)
                drawn[at] = item
        return drawn


def words(seed: int, keys: str = "zipf") -> Iterator[str]:
    """Endless lines of 8 to 12 words of word1..word8000; word k has weight 1/k² (`zipf`) or 1 (`uniform`)."""
    rng = random.Random(seed)
    ranks = range(1, VOCABULARY + 1)
    weights = [1 / rank**ZIPF_EXPONENT if keys == "zipf" else 1.0 for rank in ranks]
    urn = Urn([f"word{rank}" for rank in ranks], weights)
    while True:
        lengths = rng.choices(WORDS_PER_LINE, k=LINES_PER_BATCH)
        drawn = iter(urn.draw(rng, sum(lengths)))
        for length in lengths:
            yield " ".join(islice(drawn, length))


def tail_words(seed: int) -> Iterator[str]:
    """As `words`, with a long tail: two of each line are among eight million, equally often."""
    rng = random.Random(f"tail {seed}")
    for line in words(seed):
        rare = [f"rare{rng.randrange(RARE_WORDS)}" for _ in range(RARE_PER_LINE)]
        yield " ".join([*line.split(" ")[RARE_PER_LINE:], *rare])


def tweets(seed: int) -> Iterator[str]:
    """Endless JSON lines of about 420 bytes; 1 in 100 is about a movie and carries a movie tag."""
    rng = random.Random(seed)
    share = rng.random

    def pick(values: Sequence[str]) -> str:
        return values[int(share() * len(values))]

    def below(limit: int) -> int:
        return int(share() * limit)

    def opinion() -> str:
        said = [pick(GOOD)] if share() < PRAISE_SHARE else []
        said += [pick(BAD)] if share() < BLAME_SHARE else []
        return f"Watched {pick(MOVIES)} tonight, {' but '.join(said) or 'no words'}"

    for number in count(1_800_000_000_000_000):
        is_movie = share() < MOVIE_SHARE
        tag = pick(MOVIE_TAGS) if is_movie else pick(OTHER_TAGS)
        text = f"{pick(PHRASES)}. {opinion() if is_movie else pick(PHRASES)} {tag}"
        yield TWEET % (
            *(number, pick(NAMES), below(10_000), pick(PLACES), text),
            *(1 + below(12), 1 + below(28), below(24), below(60), below(60)),
            *(below(5_000), below(1_000), below(200), f'{tag}", "{pick(OTHER_TAGS)}'),
            *(pick(LANGUAGES), pick(DEVICES), "true" if share() < 0.05 else "false"),
            *(below(100_000), below(2_000)),
        )


def purchases(seed: int) -> Iterator[str]:
    """Endless CSV lines of about 45 bytes: number, customer, product, day, amount."""
    share = random.Random(seed).random
    for number in count(1):
        customer, product, day = int(share() * CUSTOMERS), int(share() * 5_000), int(share() * 365)
        cents = int(100 + share() * share() * 49_900)
        yield (
            f"{number:09d},c{customer:05d},product-{product:04d},2024-{1 + day // 31:02d}-{1 + day % 31:02d},"
            f"{cents // 100}.{cents % 100:02d}"
        )


def customers(seed: int) -> Iterator[str]:
    """CSV lines, one for each customer of `purchases`: customer, name, country."""
    rng = random.Random(seed)
    for number in range(CUSTOMERS):
        yield f"c{number:05d},{rng.choice(NAMES)}{number},{rng.choice(COUNTRIES)}"


#: Kinds of inputs: endless lines, or all of them.
KINDS: Mapping[str, Callable[[int], Iterator[str]]] = {
    "words": words,
    "tail-words": tail_words,
    "tweets": tweets,
    "purchases": purchases,
    "page-views": pigmix_inputs.page_views,
    "ratings": movie_inputs.ratings,
    "layovers": planted_inputs.layovers,
    "snowfalls": planted_inputs.snowfalls,
    "students": planted_inputs.students,
    "readings": planted_inputs.readings,
    "broken": planted_inputs.broken,
    "documents": planted_inputs.documents,
    "zipf-documents": document_inputs.documents,
    "edges": graph_inputs.edges,
    "grown-edges": graph_inputs.grown_edges,
}
WHOLE_KINDS: Mapping[str, Callable[[int], Iterator[str]]] = {
    "customers": customers,
    "customer-records": customer_inputs.records,
    "ranked-pairs": graph_inputs.ranked_pairs,
    "pigmix-users": pigmix_inputs.users,
    "power-users": pigmix_inputs.power_users,
    "movies": movie_inputs.movies,
    "broken-movies": movie_inputs.broken_movies,
    "movie-users": movie_inputs.users,
}


def write(path: Path, lines: Iterator[str], size: float) -> None:
    """Write lines to `path` up to and with the one that reaches `size` bytes, or all if they end before."""
    part = path.with_name(f"{path.name}.part")
    missing = size
    with part.open("w", encoding="ascii", newline="\n") as out:
        while missing > 0:
            text = "".join(f"{line}\n" for line in islice(lines, LINES_PER_BATCH))
            if not text:
                break
            if len(text) > missing:
                text = text[: text.index("\n", int(missing) - 1) + 1]
            missing -= out.write(text)
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the input of a workload.")
    parser.add_argument("kind", choices=[*KINDS, *WHOLE_KINDS])
    parser.add_argument("--megabytes", type=float, help="size, in 10**6 bytes; some kinds have their own")
    parser.add_argument("--rows", type=int, help="at most so many lines")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--keys", choices=["zipf", "uniform"], default="zipf", help="how often a word comes")
    arguments = parser.parse_args()
    if arguments.megabytes is None and arguments.rows is None and arguments.kind in KINDS:
        parser.error(f"{arguments.kind} need --megabytes or --rows")
    kinds: dict[str, Callable[[int], Iterator[str]]] = {
        **KINDS,
        **WHOLE_KINDS,
        "words": partial(words, keys=arguments.keys),
    }
    lines = kinds[arguments.kind](arguments.seed)
    size = float("inf") if arguments.megabytes is None else round(arguments.megabytes * 1_000_000)
    write(arguments.out, islice(lines, arguments.rows), size)


if __name__ == "__main__":
    main()
