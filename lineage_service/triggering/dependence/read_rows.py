"""The rows that an execution read, as elements: which key each row of its files has.

Rows are numbered over all files: those of the first file in the order in which they stand there, then those
of the second. So a record of the lineage, which is a row of a file, is an element. Values in, values out:
reads no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lineage_service.errors import InvalidQueryError
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.triggering.changes.changed_elements import (
    Changes,
    Elements,
    Flags,
    Keys,
    Numbers,
    row_keys,
    value_hashes,
)
from lineage_service.triggering.changes.impact import LARGEST

__all__ = [
    "MOST_SAMPLED",
    "NOT_KEPT",
    "Codes",
    "Integers",
    "ReadRows",
    "chosen_by_key",
    "codes_of",
    "finite",
    "read_rows",
]

Integers = npt.NDArray[np.int64]

#: Rows whose columns are kept to learn from.
MOST_SAMPLED = 1 << 18
#: The keys that are kept of many are the smallest.
NOT_KEPT = np.uint64((1 << 64) - 1)


@dataclass(frozen=True, slots=True)
class Codes:
    """Values of some rows as hashes: `values` (rows, columns)."""

    names: tuple[str, ...]
    values: Keys

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class ReadRows:
    """`firsts` (files + 1) are the numbers of the first rows of each file, and of all rows. `keys` (rows) may
    repeat: rows without a key are a multiset.

    `codes` are of the rows `sampled`, which a hash of the key chooses. Rows with the key NOT_KEPT are of
    elements of which nothing is known, and are not followed. `elements`: ascending keys, and which of them
    each row has; None: it is found out.
    """

    paths: tuple[str, ...]
    firsts: Integers
    keys: Keys
    sampled: Integers
    codes: Codes
    elements: tuple[Keys, Integers] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def _elements(self) -> tuple[Keys, Integers]:
        """(ascending keys, which of them each row has)."""
        if self.elements is not None:
            return self.elements
        keys, at = np.unique(self.keys, return_inverse=True)
        return keys, at.astype(np.int64)

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        ends = self.firsts.tolist()
        return {path: (ends[at], ends[at + 1] - ends[at]) for at, path in enumerate(self.paths)}

    def file(self, path: str) -> tuple[int, int] | None:
        """(number of its first row, how many it has); None: it was not read."""
        return self._places.get(normal_path(path))

    def changed(self, changes: Changes) -> Flags:
        """Which rows changed or were removed. Of equal rows, all: which of them is gone cannot be said."""
        stayed = changes.keys[~changes.added]
        return self.placed(stayed, np.ones((len(stayed), 1)))[:, 0] > 0

    def numbers(self, elements: Elements) -> Numbers:
        """(rows, columns): the numbers of each row, by a state of elements; 0 where it has none."""
        return self.placed(elements.keys, finite(elements.values))

    def changed_numbers(self, changes: Changes) -> Numbers:
        """(rows, columns): the numbers now of rows that changed, 0 of those that are gone, and of others."""
        stayed = ~changes.added
        return self.placed(changes.keys[stayed], finite(changes.new[stayed]))

    def placed(self, keys: Keys, values: Numbers) -> Numbers:
        """Numbers of elements with ascending keys, at all rows of each; 0 at those of others."""
        own, element = self._elements
        at = own.searchsorted(keys)
        is_own = at < len(own)
        is_own[is_own] = own[at[is_own]] == keys[is_own]
        of_elements = np.zeros((len(own), values.shape[1]))
        of_elements[at[is_own]] = values[is_own]
        return of_elements[element]


def read_rows(tables: Mapping[str, pa.Table], keys: Sequence[str] = ()) -> ReadRows:
    """Of files by path, each as a table of its rows in the order in which they stand there. Without keys, a
    row is its own key.

    Raises InvalidQueryError for a column that is not there.
    """
    paths = tuple(map(normal_path, tables))
    parts = [row_keys(table, keys) for table in tables.values()]
    firsts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    every = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    sampled = chosen_by_key(every, MOST_SAMPLED)
    table = pa.concat_tables(tables.values(), promote_options="permissive") if parts else pa.table({})
    return ReadRows(paths, firsts, every, sampled, codes_of(table.take(pa.array(sampled))))


def codes_of(table: pa.Table) -> Codes:
    """Without columns that cannot be compared, such as structs."""
    columns: dict[str, Keys] = {}
    for name in dict.fromkeys(table.column_names):
        try:
            columns[name] = value_hashes(table, name)
        except InvalidQueryError:
            continue
    values = np.column_stack(list(columns.values())) if columns else np.zeros((table.num_rows, 0), np.uint64)
    return Codes(tuple(columns), values)


def chosen_by_key(keys: Keys, most: int) -> Integers:
    """About `most` rows at most, the same ones each time: those whose key ends with so many zeros."""
    bits = max(-(-len(keys) // most) - 1, 0).bit_length()
    return np.flatnonzero(keys & np.uint64((1 << bits) - 1) == 0)


def finite(numbers: Numbers) -> Numbers:
    """0 for what is no number, and none so large that sums of a million are infinite."""
    return np.clip(np.where(np.isfinite(numbers), numbers, 0.0), -LARGEST, LARGEST)
