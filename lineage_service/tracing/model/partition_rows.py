"""Which rows of a text file its partitions have, by what the tasks read that read them to their end. Pure.

So a row's number needs no look at what is before it, however large the file is. It is the number that the row
had when the job read it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

__all__ = ["rows_of_partitions"]

#: Its partitions begin somewhere in compressed bytes.
_COMPRESSED = ".bz2"


def rows_of_partitions(
    partitions: Mapping[int, Mapping[str, Any]], counts: Mapping[int, int]
) -> dict[int, range]:
    """By partition, of files with several: those without a gap before them, as far as `counts` goes.

    `counts` are all rows of a partition, as it was read.
    """
    by_path: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for partition, info in partitions.items():
        path, start, length = (info.get(name) for name in ("path", "start", "length"))
        if not isinstance(path, str) or path.endswith(_COMPRESSED) or "record_length" in info:
            continue
        if isinstance(start, int) and isinstance(length, int):
            by_path[path].append((start, length, partition))
    rows: dict[int, range] = {}
    for several in by_path.values():
        if len(several) < 2:
            continue
        end = first = 0
        for start, length, partition in sorted(several):
            if start != end or partition not in counts:
                break
            end = start + length
            rows[partition] = range(first, first := first + counts[partition])
    return rows
