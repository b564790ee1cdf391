"""Ratings, movies and users, with the three faults of Newt's movies (De, thesis, UCSD 2012).

Some users have the day of their registration as their birthday, some movies name their first genre several
times, and some of `broken_movies` have a genre with a comma in it, which jobs take for two.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

USERS, MOVIES = 20_000, 2_000
GENRES = ("Action", "Comedy", "Crime", "Drama", "Fantasy", "Horror", "Musical", "Romance", "Western")
COMMA = "Crime, noir"
#: One user in so many has registered on the day that stands for the birthday, and so on.
REGISTERED, REPEATED, COMMAS = 200, 100, 250
REGISTRATION_YEAR = 2011


def ratings(seed: int) -> Iterator[str]:
    """Endless lines: number, user, movie, stars."""
    rng = random.Random(seed)
    for number in count(1):
        user, movie = rng.randrange(USERS), rng.randrange(MOVIES)
        yield f"{number},u{user:05d},m{movie:04d},{1 + rng.randrange(5)}"


def movies(seed: int) -> Iterator[str]:
    """movie, title, genres: one line for each, tab-separated, genres with `|` between them."""
    rng = random.Random(seed)
    for number in range(MOVIES):
        genres = rng.sample(GENRES, 1 + rng.randrange(3))
        if number % REPEATED == REPEATED // 2:
            genres = [genres[0]] * 5 + genres[1:]
        yield f"m{number:04d}\tMovie {number}\t{'|'.join(genres)}"


def broken_movies(seed: int) -> Iterator[str]:
    """As `movies`, some with a genre that has a comma."""
    for number, line in enumerate(movies(seed)):
        yield f"{line}|{COMMA}" if number % COMMAS == COMMAS // 2 else line


def users(seed: int) -> Iterator[str]:
    """user, birthday: one line for each."""
    rng = random.Random(seed)
    for number in range(USERS):
        year = REGISTRATION_YEAR if number % REGISTERED == 3 else 1940 + rng.randrange(55)
        yield f"u{number:05d},{year}-{1 + rng.randrange(12):02d}-{1 + rng.randrange(28):02d}"


def is_registration(line: str) -> bool:
    return line.split(",")[1].startswith(str(REGISTRATION_YEAR))


def repeats_genre(line: str) -> bool:
    genres = line.split("\t")[2].split("|")
    return genres.count(genres[0]) > 1
