"""Documents of words by Zipf's law: lines `DOCUMENT<TAB>WORDS`. Many rare words come in one document only."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count

WORDS = 20
#: Word k is drawn as often as 1/k says, up to this one.
VOCABULARY = 10_000_000


def documents(seed: int) -> Iterator[str]:
    """Endless."""
    share = random.Random(seed).random
    for number in count():
        yield f"d{number}\t{' '.join(f'w{int(VOCABULARY ** share())}' for _ in range(WORDS))}"
