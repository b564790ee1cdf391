"""Which values are kept to route new rows by: of few columns of few values, whatever the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lineage_service.triggering.changes.changed_elements import elements, value_hashes
from lineage_service.triggering.dependence.read_rows import Codes
from lineage_service.triggering.weighing.coded_columns import MOST_COLUMNS, MOST_VALUES, codes_of_elements
from lineage_service.triggering.weighing.element_plans import Plan, elements_of, places_of


def codes(
    table: pa.Table, keys: Sequence[str] = (), before: Sequence[str] = (), plan: Plan | None = None
) -> Codes:
    plan = plan or Plan(path="/in", is_output=False, keys=("id",), values=())
    of = elements_of(table, plan)
    return codes_of_elements(table, of, places_of(table, plan, of), keys, before)


def sales(count: int = 40) -> pa.Table:
    at = np.arange(count)
    return pa.table(
        {
            "id": at,
            "town": [["Graz", "Linz", None][one % 3] for one in at],
            "kind": at % 2,
            "country": ["AT"] * count,
            "price": at / 7,
        }
    )


def test_each_element_has_the_hashes_of_its_values() -> None:
    table = sales()
    known = codes(table)
    assert known.names == ("town", "kind", "id", "price")
    by_key = np.argsort(value_hashes(table.select(["id"]), "id"))  # as one column is not the key of its rows
    assert len(by_key) == len(known)
    of = elements(table, ["id"], ["kind"])
    town = known.values[:, known.names.index("town")]
    assert len(np.unique(town)) == 3
    kinds = known.values[:, known.names.index("kind")]
    assert set(zip(of.values[:, 0].tolist(), kinds.tolist(), strict=True)) == {
        (0.0, int(value_hashes(pa.table({"x": [0]}), "x")[0])),
        (1.0, int(value_hashes(pa.table({"x": [1]}), "x")[0])),
    }


def test_the_order_of_rows_changes_nothing() -> None:
    table = sales()
    backward = table.take(pa.array(np.arange(len(table))[::-1]))
    one, other = codes(table), codes(backward)
    assert one.names == other.names
    assert np.array_equal(one.values, other.values)


def test_columns_of_many_values_are_not_kept() -> None:
    known = codes(sales(MOST_VALUES + 1))
    assert known.names == ("town", "kind")


def test_keys_of_outputs_and_columns_of_before_are_preferred() -> None:
    flags = {f"flag{at}": np.arange(40) % 2 for at in range(MOST_COLUMNS)}
    table = sales()
    for name, values in flags.items():
        table = table.append_column(name, pa.array(values))
    known = codes(table, ["price"], ["flag7", "country"])
    assert known.names[:4] == ("price", "country", "flag7", "town")
    assert len(known.names) == MOST_COLUMNS
    assert "id" not in known.names


def test_rows_without_a_key_and_tables_without_rows_have_values_too() -> None:
    table = sales().select(["town", "kind"])
    known = codes(table, plan=Plan(path="/in", is_output=False))
    assert known.values.shape == (6, 2)
    assert codes(pa.table({}), plan=Plan(path="/in", is_output=False, is_empty=True)).values.shape == (0, 0)
