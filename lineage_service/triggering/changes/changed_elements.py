"""Which elements of a container changed between two waves, and by how much.

An element is a key with one or more numbers (Esteves, Galhardas, Veiga, INESC-ID TR 9/2016, section 2).
Its key is a hash of 64 bits of the key columns: among a million keys, two are taken for one with a
probability of 3e-8. Rows without a key are a multiset: the key is the whole row, and its number is how
often the row occurs. The order of rows changes nothing. Changes compose: those of two waves after one
another are the difference of the outer states, so what was changed back is no change. Values in, values
out: reads no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lineage_service.errors import InvalidQueryError

Keys = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
#: Which of the elements each row is, -1 of none that is kept.
Places = npt.NDArray[np.int32]

#: The column of a multiset: how often a row occurs.
OCCURRENCES = "occurrences"

_NULL = np.uint64(0x9E3779B97F4A7C15)
#: Bytes of a word, and of a text that is not hashed word by word.
_WORD, _LONG = 8, 64


@dataclass(frozen=True, slots=True)
class Elements:
    """A container at one wave. `keys` (n) ascend and are unique; `values` (n, columns), NaN where no number
    is. `places` are of the rows of the table that it was read of; None: it was not.
    """

    keys: Keys
    values: Numbers
    places: Places | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Changes:
    """The m elements that differ between two waves, by ascending key.

    `old` and `new` (m, columns) are the numbers then and now, 0 on the side where the element is not.
    """

    keys: Keys
    old: Numbers
    new: Numbers
    added: Flags
    removed: Flags

    def __len__(self) -> int:
        return len(self.keys)

    def differs(self) -> Flags:
        """(m, columns): the columns in which an element changed; an added or removed one did in all."""
        presence = self.added | self.removed
        return ~equal_numbers(self.old, self.new) | presence[:, None]

    def then(self, later: Changes) -> Changes:
        """These and the later ones as one: the first old number of each element, and its last new one."""
        keys = _union(self.keys, later.keys)
        columns = self.old.shape[1]
        old, new = np.zeros((len(keys), columns)), np.zeros((len(keys), columns))
        was, remains = np.zeros(len(keys), bool), np.zeros(len(keys), bool)
        places, later_places = np.searchsorted(keys, self.keys), np.searchsorted(keys, later.keys)
        # In this order: what came first decides the old side, what came last the new one.
        old[later_places], was[later_places] = later.old, ~later.added
        old[places], was[places] = self.old, ~self.added
        new[places], remains[places] = self.new, ~self.removed
        new[later_places], remains[later_places] = later.new, ~later.removed
        return _changes(keys, old, new, was, remains)


def elements(
    table: pa.Table,
    keys: Sequence[str],
    values: Sequence[str],
    classes: Sequence[str] = (),
    below: int | None = None,
) -> Elements:
    """The elements of a table: `values` are its columns of numbers, `classes` those that only equal or
    differ.

    Without keys, the rows are a multiset, and `values` and `classes` are not looked at. With `below`, those
    with a smaller key only.

    Raises `InvalidQueryError` for a column that is not there, one without numbers, and keys that are not
    unique.

    """
    for name in (*keys, *values, *classes):
        if name not in table.column_names:
            raise InvalidQueryError(
                f"no column {name!r}; the columns are {', '.join(table.column_names) or 'none'}"
            )
    if not keys:
        hashes = _hashes(table, table.column_names)
        chosen = _below(hashes, below)
        rows, at, counts = np.unique(hashes[chosen], return_inverse=True, return_counts=True)
        places: Places = np.full(len(hashes), -1, np.int32)
        places[chosen] = at
        return Elements(rows, counts.astype(np.float64)[:, None], places)
    hashes = _hashes(table, keys)
    _check_unique(table, keys, hashes)
    chosen = _below(hashes, below)
    order = chosen[np.argsort(hashes[chosen])]
    columns = [_numbers(table, name) for name in values] + [_codes(table, name) for name in classes]
    # Column by column: a row of all of them is copied once.
    numbers = np.empty((len(order), len(columns)))
    for number, column in enumerate(columns):
        numbers[:, number] = column[order]
    places = np.full(len(hashes), -1, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return Elements(hashes[order], numbers, places)


def _below(hashes: Keys, below: int | None) -> npt.NDArray[np.int64]:
    return np.arange(len(hashes)) if below is None else np.flatnonzero(hashes < np.uint64(below))


def _check_unique(table: pa.Table, keys: Sequence[str], hashes: Keys) -> None:
    """Raises InvalidQueryError. It costs half of what the order of the rows does, which the error names."""
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    first = int(np.argmax(ordered[1:] == ordered[:-1]))
    pair = table.select(list(keys)).take(pa.array(order[first : first + 2]))
    raise InvalidQueryError(
        f"the key {', '.join(keys)} is not unique: rows {order[first]} and {order[first + 1]} have "
        f"{pair.to_pylist()[0]}; name further columns, or none for rows without a key"
    )


def difference(before: Elements, now: Elements) -> Changes:
    """What changed from one wave to another."""
    return _changes(*aligned(before, now))


def aligned(before: Elements, now: Elements) -> tuple[Keys, Numbers, Numbers, Flags, Flags]:
    """All elements of two waves by key: the numbers of then and of now (0 where absent), and who was, and
    is."""
    if len(before) == len(now) and np.array_equal(before.keys, now.keys):
        everywhere = np.ones(len(now), bool)
        return now.keys, before.values, now.values, everywhere, everywhere
    keys = _union(before.keys, now.keys)
    (was, old), (remains, new) = (_placed(side, keys) for side in (before, now))
    return keys, old, new, was, remains


def equal_numbers(one: Numbers, other: Numbers) -> Flags:
    """Element by element; NaN equals NaN and nothing else."""
    equal: Flags = (one == other) | (np.isnan(one) & np.isnan(other))
    return equal


def _union(one: Keys, other: Keys) -> Keys:
    """Of keys that ascend: two runs, which a stable sort merges. NumPy's own union hashes them: 15 times as
    long for 262,144.
    """
    keys = np.concatenate([one, other])
    keys.sort(kind="stable")
    union: Keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
    return union


def _placed(side: Elements, keys: Keys) -> tuple[Flags, Numbers]:
    places = np.searchsorted(keys, side.keys)
    present, numbers = np.zeros(len(keys), bool), np.zeros((len(keys), side.values.shape[1]))
    present[places], numbers[places] = True, side.values
    return present, numbers


def _changes(keys: Keys, old: Numbers, new: Numbers, was: Flags, remains: Flags) -> Changes:
    changed = (was != remains) | (was & remains & ~equal_numbers(old, new).all(axis=1))
    kept = np.flatnonzero(changed)
    return Changes(
        keys[kept], old[kept], new[kept], (remains & ~was)[kept], (was & ~remains)[kept]
    )  # fmt: skip


def row_keys(table: pa.Table, keys: Sequence[str]) -> Keys:
    """The key of the element that each row of a table is, in the order of the rows.

    Raises `InvalidQueryError` as `elements` does; keys may repeat.

    """
    for name in keys:
        if name not in table.column_names:
            raise InvalidQueryError(
                f"no column {name!r}; the columns are {', '.join(table.column_names) or 'none'}"
            )
    return _hashes(table, keys or table.column_names)


def value_hashes(table: pa.Table, name: str) -> Keys:
    """A hash of the value of each row in one column; equal values have one. Raises `InvalidQueryError`."""
    return _column_hashes(table, name)


# -- keys and numbers of columns ---------------------------------------------------------------------


def _hashes(table: pa.Table, names: Sequence[str]) -> Keys:
    """A hash of the named columns of each row; it depends on values, not on widths of types."""
    together = np.zeros(table.num_rows, np.uint64)
    for name in names:
        together = _mixed(together * np.uint64(0x100000001B3) + _column_hashes(table, name))
    return together


def _column_hashes(table: pa.Table, name: str) -> Keys:
    column = table.column(name)
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        numbers = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        hashes = _mixed(numbers.astype(np.int64).view(np.uint64))
    else:
        try:
            texts = array if pa.types.is_binary(array.type) else array.cast(pa.string())
            hashes = _text_hashes(texts.cast(pa.binary()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidQueryError(
                f"column {name!r} is {array.type}, of which there is no key: name other columns"
            ) from error
    hashes[nulls] = _NULL
    return hashes


def _text_hashes(texts: pa.BinaryArray) -> Keys:
    """A hash of each text: word after word for all texts at once, and one by one for long ones."""
    if not len(texts):
        return np.zeros(0, np.uint64)
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    # Behind the last text there is room for a whole word.
    content = np.zeros(int(offsets[-1]) + _WORD, np.uint8)
    content[: offsets[-1]] = np.frombuffer(data, np.uint8)[: offsets[-1]] if offsets[-1] else 0
    words = np.lib.stride_tricks.sliding_window_view(content, _WORD)
    hashes = _mixed(lengths.astype(np.uint64) + _NULL)
    short = lengths <= _LONG
    for at in range(0, int(lengths[short].max(initial=0)), _WORD):
        rows = np.flatnonzero(short & (lengths > at))
        word = words[offsets[rows] + at].view("<u8").ravel()
        unused = (_WORD - np.minimum(lengths[rows] - at, _WORD)).astype(np.uint64) * np.uint64(8)
        word = (word << unused) >> unused
        hashes[rows] = _mixed(hashes[rows] * np.uint64(0x100000001B3) ^ word)
    for row in np.flatnonzero(~short):
        digest = hashlib.blake2b(texts[int(row)].as_py(), digest_size=8).digest()
        hashes[row] = int.from_bytes(digest, "big")
    return hashes


def _mixed(numbers: Keys) -> Keys:
    """splitmix64's finaliser: each bit of the input moves half of the output's."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _numbers(table: pa.Table, name: str) -> Numbers:
    column = table.column(name)
    kind = column.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        raise InvalidQueryError(f"column {name!r} is {kind} and holds no numbers")
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    numbers = pc.cast(column, pa.float64(), safe=False).to_numpy()
    return np.asarray(numbers, np.float64)


def _codes(table: pa.Table, name: str) -> Numbers:
    """Classes as whole numbers below 2^53, which a float holds exactly."""
    return (_column_hashes(table, name) >> np.uint64(11)).astype(np.float64)
