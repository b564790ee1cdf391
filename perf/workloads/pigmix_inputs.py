"""The tables of PigMix, smaller: lines of tab-separated columns, endless for page views.

Columns, cardinalities and shares of nulls are those of Apache Pig's generator (test/perf/pigmix). Of the
1,600,000 users by Zipf's law the 100,000 commonest are in `users`, and 500 of these in `power_users`.
Revenues are multiples of a quarter, so that their sums are exact in any order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

VIEWED_USERS, USERS, POWER_USERS = 1_600_000, 100_000, 500
QUERY_TERMS, ADDRESSES, SECONDS, REVENUES, MINUTES = 1_800_000, 1_000_000, 86_400, 100_000, 20
NO_USER, NO_TERM, NO_REVENUE, NO_LINKS = 0.07, 0.20, 0.05, 0.20
CITIES = ("Graz", "Linz", "Lisbon", "Porto", "Osaka", "Leeds", "Turku", "Pune")
ZIP_CODES = 90_000


def user_name(rank: int) -> str:
    """20 characters, the same for the same rank. An odd factor mixes the ranks."""
    return f"user{rank * 2_654_435_761 % (1 << 32):016d}"


def zipf(rng: random.Random, most: int) -> Callable[[], int]:
    """Draws ranks from 1 to `most`: rank k has a weight of about 1/k. In whole numbers, on every platform."""
    bits = most.bit_length()

    def draw() -> int:
        while True:
            width = rng.randrange(bits)
            rank = 1 << width | (rng.getrandbits(width) if width else 0)
            if rank <= most:
                return rank

    return draw


def page_views(seed: int) -> Iterator[str]:
    """user, action, timespent, query_term, ip_addr, timestamp, estimated_revenue, page_info, page_links."""
    rng = random.Random(seed)
    share = rng.random
    user, term, revenue = zipf(rng, VIEWED_USERS), zipf(rng, QUERY_TERMS), zipf(rng, REVENUES)
    minutes, address, second, word = (zipf(rng, most) for most in (MINUTES, ADDRESSES, SECONDS, 1 << 20))

    def pairs() -> str:
        return f"a:{word()},b:{word()}"

    while True:
        columns = (
            "" if share() < NO_USER else user_name(user()),
            str(1 + rng.getrandbits(1)),
            str(minutes()),
            "" if share() < NO_TERM else f"term{term():06d}",
            str(address()),
            str(second() - 1),
            "" if share() < NO_REVENUE else f"{revenue() / 4:.2f}",
            pairs(),
            "" if share() < NO_LINKS else f"{{{pairs()}}}|{{{pairs()}}}",
        )
        yield "\t".join(columns)


def users(seed: int) -> Iterator[str]:
    """name, phone, address, city, state, zip: one line for each."""
    rng = random.Random(seed)
    for rank in range(1, USERS + 1):
        yield _user(rng, rank)


def power_users(seed: int) -> Iterator[str]:
    """As `users`: some of them, by rank."""
    rng = random.Random(seed)
    for rank in sorted(rng.sample(range(1, USERS + 1), POWER_USERS)):
        yield _user(rng, rank)


def _user(rng: random.Random, rank: int) -> str:
    city = rng.randrange(len(CITIES))
    place = (
        f"{rng.randrange(1, 200)} Main Street\t{CITIES[city]}\tS{city}\t{10_000 + rng.randrange(ZIP_CODES)}"
    )
    return f"{user_name(rank)}\t{rng.randrange(10**9, 10**10)}\t{place}"
