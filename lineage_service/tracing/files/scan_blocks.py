"""The blocks of files that a scan of a DataFrame read, and which records of each are meant. Pure.

A record of a scan is known by its block and its place in it. So another run finds it again, whatever tasks
read the blocks, as long as it reads the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lineage_service.tracing.files.file_parts import plain_path

__all__ = ["UnknownBlockError", "blocks_of"]

Ranges = Sequence[Sequence[int]]


class UnknownBlockError(Exception):
    """The blocks of a scan are not known. The text says why."""


def blocks_of(
    partitions: Mapping[int, Mapping[str, Any]], splits: Mapping[int, Ranges]
) -> list[dict[str, Any]]:
    """All blocks of a scan, in the order of its partitions, as a replay's spec has them.

    `splits` are ranges of positions by partition. Raises UnknownBlockError.
    """
    blocks: list[dict[str, Any]] = []
    for number, info in sorted(partitions.items()):
        blocks += _of_partition(info, splits.get(number, ()))
    if len({(block["path"], block["start"], block["length"]) for block in blocks}) < len(blocks):
        raise UnknownBlockError("it read a file twice, and which of both a row is of is not known")
    without = [number for number in splits if number not in partitions or not _parts(partitions[number])]
    if without:
        raise UnknownBlockError(f"which files its partition {min(without)} read is not known")
    named = sum(count for ranges in splits.values() for _, count in ranges)
    if sum(count for block in blocks for _, count in block["rows"]) != named:
        raise UnknownBlockError("which files some of its rows are of is not known")
    return blocks


def _parts(info: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return info.get("parts") or ()


def _of_partition(info: Mapping[str, Any], ranges: Ranges) -> Iterable[dict[str, Any]]:
    parts = _parts(info)
    ends: list[int | None] = [*(int(part["first"]) for part in parts[1:]), None]
    for part, end in zip(parts, ends, strict=bool(parts)):
        if "start" not in part or "length" not in part:
            raise UnknownBlockError(f"where its block of {plain_path(str(part['path']))} ends is not known")
        block = {
            "path": str(part["path"]),
            "start": int(part["start"]),
            "length": int(part["length"]),
            "rows": _within(ranges, int(part["first"]), end),
        }
        yield block if part.get("row") is None else {**block, "row": int(part["row"])}


def _within(ranges: Ranges, first: int, end: int | None) -> list[list[int]]:
    """The ranges from `first` to before `end`, counted from `first`."""
    cut: list[list[int]] = []
    for begin, count in ranges:
        last = begin + count if end is None else min(begin + count, end)
        begin = max(begin, first)
        if begin < last:
            cut.append([begin - first, last - begin])
    return cut
