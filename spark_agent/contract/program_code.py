"""What tells one execution of a job from another: its wave, and the hash of its code.

The agent takes the hash when the program starts, and the service before the next run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

__all__ = ["MAX_CODE_BYTES", "MAX_CODE_FILES", "WAVE_VARIABLE", "hash_of_files"]

#: The environment variable that names the wave that a job runs for.
WAVE_VARIABLE = "LINEAGE_WAVE"
#: The code of more or larger files is not known.
MAX_CODE_FILES = 1_000
MAX_CODE_BYTES = 32 << 20


def hash_of_files(paths: Sequence[str]) -> str:
    """`sha256:` and the hash of the paths and contents of these files, in this order. Raises OSError."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read(MAX_CODE_BYTES + 1)).digest()
        total.update(hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest() + content)
    return f"sha256:{total.hexdigest()}"
