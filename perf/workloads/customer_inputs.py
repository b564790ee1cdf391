"""Records of customers as several systems have them: the same people again and again, with typos and gaps.

The guests of one hotel have left its telephone number with their bookings: `HOTEL`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

PEOPLE = 3_000
#: So many people have a record with the number of the hotel's reception.
GUESTS = 12
HOTEL = "+43 1 5550100"
GIVEN_NAMES = (
    "Anna", "Ben", "Carla", "David", "Elena", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Kaja", "Luis",
    "Marta", "Nils", "Olga", "Paul", "Rosa", "Simon", "Tilda", "Viktor",
)  # fmt: skip
SURNAMES = (
    "Adler", "Berger", "Conti", "Dvorak", "Eriksen", "Fischer", "Gruber", "Horvat", "Ivanov", "Jansen",
    "Kovacs", "Lindner", "Moreau", "Novak", "Olsen", "Petrov", "Quintana", "Rossi", "Schuster", "Tanaka",
    "Ulrich", "Vogel", "Wagner", "Yilmaz", "Zelenka",
)  # fmt: skip
STREETS = (
    "Lindengasse", "Hafenweg", "Marktplatz", "Bergstrasse", "Am Kanal", "Schulgasse", "Rosenweg",
    "Bahnhofstrasse", "Gartengasse", "Muehlweg", "Kirchplatz", "Ringstrasse",
)  # fmt: skip
CITIES = ("Wien", "Graz", "Linz", "Salzburg", "Innsbruck", "Bregenz", "Klagenfurt", "Villach")
MOST_RECORDS = 4
#: Shares of records with a typo in the name or in the street, and of those that lack an e-mail or a number.
TYPO_SHARE, GAP_SHARE = 0.15, 0.4


def records(seed: int) -> Iterator[str]:
    """record, name, e-mail, phone, street, city: one line for each; those of one person are far apart."""
    rng = random.Random(seed)
    lines = [line for number in range(PEOPLE) for line in _of_person(rng, number)]
    rng.shuffle(lines)
    for number, line in enumerate(lines):
        yield f"r{number:05d},{line}"


def _of_person(rng: random.Random, number: int) -> Iterator[str]:
    """Without the name of the record. A guest has at least two, and the hotel's number in the last one."""
    name = f"{rng.choice(GIVEN_NAMES)} {rng.choice(SURNAMES)}"
    email = f"{name.lower().replace(' ', '.')}{number}@example.org"
    phone = f"+43 664 {1_000_000 + number}"
    street = f"{rng.choice(STREETS)} {1 + rng.randrange(90)}"
    city = rng.choice(CITIES)
    is_guest = number % (PEOPLE // GUESTS) == 0
    count = max(1 + rng.randrange(MOST_RECORDS), 2 * is_guest)
    for at in range(count):
        is_booking = is_guest and at == count - 1
        shown = HOTEL if is_booking else _or_nothing(rng, phone)
        yield ",".join(
            [_typed(rng, name), _or_nothing(rng, email), shown, _typed(rng, street), city],
        )


def _typed(rng: random.Random, text: str) -> str:
    """As people type it: at times two letters change places, or one is missing."""
    at = 1 + rng.randrange(len(text) - 3)
    kind, is_typo = rng.randrange(2), rng.random() < TYPO_SHARE
    if not is_typo or not text[at : at + 2].islower() or not text[at : at + 2].isalpha():
        return text
    return text[:at] + (text[at + 1] + text[at] + text[at + 2 :] if kind else text[at + 1 :])


def _or_nothing(rng: random.Random, text: str) -> str:
    return "" if rng.random() < GAP_SHARE else text
