"""Which values the elements of an input have in columns of few values, as hashes, to learn routes from.

A column whose value may decide into which output a row goes has few values, each of several rows. Of at most
`MOST_COLUMNS` such columns the hash of each element's value is kept, not the value. Preferred are keys of the
outputs, then the columns that were kept the wave before, then texts, then those with the fewest values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lineage_service.errors import InvalidQueryError
from lineage_service.triggering.changes.changed_elements import Elements, Keys, Places, value_hashes
from lineage_service.triggering.dependence.read_rows import Codes

__all__ = ["MOST_COLUMNS", "MOST_VALUES", "codes_of_elements"]

#: Columns, and values of each: what does not fit has too many values to decide anything.
MOST_COLUMNS, MOST_VALUES = 12, 4_096
#: Rows by which columns are chosen.
_LOOKED_AT = 1 << 14


def codes_of_elements(
    table: pa.Table,
    elements: Elements,
    places: Places | None,
    keys: Collection[str] = (),
    before: Sequence[str] = (),
) -> Codes:
    """Of each element, in the order of its key. `places` say of each row of the table which element it is.

    `keys` are those of the outputs, `before` the columns of the wave before.
    """
    nothing = Codes((), np.zeros((len(elements), 0), np.uint64))
    if places is None or not table.num_columns:
        return nothing
    row_of = np.zeros(len(elements), np.int64)
    kept = np.flatnonzero(places >= 0)
    row_of[places[kept]] = kept
    columns: dict[str, Keys] = {}
    for name in _candidates(table, keys, before):
        values = _hashes(table.select([name]).take(pa.array(row_of)), name)
        if values is not None:
            columns[name] = values
        if len(columns) == MOST_COLUMNS:
            break
    return Codes(tuple(columns), np.column_stack(list(columns.values()))) if columns else nothing


def _candidates(table: pa.Table, keys: Collection[str], before: Sequence[str]) -> list[str]:
    """The preferred first. A column of one value decides nothing, unless it was kept before."""
    ranks: list[tuple[bool, bool, bool, int, str]] = []
    for name in dict.fromkeys(table.column_names):
        if table.column_names.count(name) > 1:
            continue
        count = pc.count_distinct(table.column(name).slice(0, _LOOKED_AT), mode="all").as_py()
        if count > MOST_VALUES or (count < 2 and name not in before):
            continue
        kind = table.schema.field(name).type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        ranks.append((name not in keys, name not in before, not is_text, count, name))
    return [name for *_, name in sorted(ranks)]


def _hashes(table: pa.Table, name: str) -> Keys | None:
    """None: the column has too many values, or such as cannot be compared."""
    column = table.column(name)
    try:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if len(encoded.dictionary) > MOST_VALUES:
        return None
    try:
        hashes = value_hashes(pa.table({name: encoded.dictionary}), name)
    except InvalidQueryError:
        return None
    chosen: Keys = hashes[encoded.indices.to_numpy()]
    return chosen
