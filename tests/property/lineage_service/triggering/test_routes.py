"""Where new rows will go, by columns that decided it before: against loops over the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.triggering.dependence.read_rows import ReadRows, codes_of, read_rows
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.dependence.routed_outputs import NewRows, routed, sums_of_rows
from lineage_service.triggering.dependence.routes import Routing, learned

Row = tuple[int, str, str]
"""Number, town, kind."""


def table(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = [pa.int64(), pa.string(), pa.string()]
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["number", "town", "kind"])


def related(rows: Sequence[Row], outputs_of: Callable[[Row], Sequence[str]]) -> tuple[ReadRows, Relation]:
    names = sorted({name for row in rows for name in outputs_of(row)})
    pairs = [(at, names.index(name)) for at, row in enumerate(rows) for name in outputs_of(row)]
    row, output = np.array(pairs, np.int64).reshape(-1, 2).T
    relation = Relation(len(rows), len(names), row, output, np.ones(len(rows), bool))
    return read_rows({"/in": table(rows)}, ["number"]), relation


def features(routing: Routing | None, added: Sequence[Row], relation: Relation) -> dict[str, float]:
    ones, nothing = np.ones(relation.rows), np.zeros((relation.rows, 0))
    sums = sums_of_rows(relation, ones, nothing, nothing)
    new = NewRows(codes_of(table(added)), np.zeros((len(added), 0)), np.ones(len(added)))
    known = routed([], routing, new, sums, sums, None)
    return {
        name: value
        for name, value in zip(known.names, known.values.tolist(), strict=True)
        if "error" not in name
    }


ROWS = [(at, "GLWX"[at % 4], "ab"[at // 4 % 2]) for at in range(64)]


def test_the_column_of_a_group_decides_and_an_id_does_not() -> None:
    rows, relation = related(ROWS, lambda row: [row[1]])
    routing = learned(rows, relation)
    assert routing is not None
    assert (routing.columns, routing.is_grouping) == (("town",), True)
    known = features(routing, [(100, "W", "a"), (101, "W", "b"), (102, "G", "a"), (103, "Y", "a")], relation)
    assert known["routed_live"] == 1
    assert known["routed_reach"] == 0.5
    assert np.isclose(known["routed_share_most"], 2 / 18)
    assert np.isclose(known["new_outputs"], 1 / 5)
    assert known["unroutable"] == 0


def test_a_filter_and_a_group_decide_together() -> None:
    rows, relation = related(ROWS, lambda row: [row[1]] if row[2] == "a" else [])
    routing = learned(rows, relation)
    assert routing is not None
    assert set(routing.columns) == {"town", "kind"}
    known = features(routing, [(100, "W", "a"), (101, "W", "b")], relation)
    assert (known["routed_live"], known["routed_reach"], known["unroutable"]) == (0.5, 0.25, 0)


def test_a_row_goes_to_all_outputs_of_its_value() -> None:
    rows, relation = related(ROWS, lambda row: [row[1], "all"])
    routing = learned(rows, relation)
    assert routing is not None
    assert features(routing, [(100, "W", "a")], relation)["routed_reach"] == 2 / 5


def test_where_all_rows_go_to_the_same_outputs_no_column_is_needed() -> None:
    rows, relation = related(ROWS, lambda row: ["sum", "count"])
    routing = learned(rows, relation)
    assert routing is not None
    assert routing.columns == ()
    known = features(routing, [(100, "Y", "c")], relation)
    assert (known["routed_reach"], known["new_outputs"], known["unroutable"]) == (1, 0, 0)


def test_of_columns_that_decide_alike_those_with_the_fewest_values_are_taken() -> None:
    """A number of a flight says its town as well as the town does, and nothing of a new number."""
    many = [(at % 16, "GLWX"[at % 4], "ab"[at // 32]) for at in range(64)]
    rows, relation = related(many, lambda row: [row[1] + row[2]])
    routing = learned(rows, relation)
    assert routing is not None
    assert set(routing.columns) == {"town", "kind"}


def test_an_unknown_value_that_is_no_group_cannot_be_routed() -> None:
    rows, relation = related(ROWS, lambda row: ["east" if row[1] in "GL" else "west"])
    known = features(learned(rows, relation), [(100, "W", "a"), (101, "Y", "a")], relation)
    assert (known["routed_live"], known["new_outputs"], known["unroutable"]) == (0.5, 0, 0.5)


def test_where_no_column_decides_rows_cannot_be_routed() -> None:
    rows, relation = related(ROWS, lambda row: [f"{row[0] * 7919 % 13}"])
    assert learned(rows, relation) is None
    known = features(None, [(100, "W", "a")], relation)
    assert known.pop("unroutable") == 1
    assert np.isnan(list(known.values())).all()
    assert set(features(None, [], relation).values()) == {0}


@given(st.data())
def test_rows_are_routed_as_most_rows_of_their_values_went(data: st.DataObject) -> None:
    drawn = data.draw(
        st.lists(st.tuples(st.sampled_from("GLW"), st.sampled_from("ab")), min_size=1, max_size=30)
    )
    rows: list[Row] = [(at, *row) for at, row in enumerate(drawn)]
    nowhere = data.draw(st.sampled_from(["", "a", "G"]))
    column = data.draw(st.sampled_from([1, 2]))

    def outputs_of(row: Row) -> list[str]:
        return [] if nowhere and nowhere in row[1:] else [str(row[column])]

    read, relation = related(rows, outputs_of)
    routing = learned(read, relation)
    if routing is None:
        return
    values = st.tuples(st.sampled_from("GLWY"), st.sampled_from("abc"))
    added: list[Row] = [(100 + at, *data.draw(values)) for at in range(5)]
    names = sorted({name for row in rows for name in outputs_of(row)})
    columns = [["number", "town", "kind"].index(name) for name in routing.columns]
    went: dict[tuple[object, ...], list[list[str]]] = defaultdict(list)
    for row in rows:
        went[tuple(row[at] for at in columns)].append(outputs_of(row))
    reached: set[str] = set()
    live = unroutable = 0
    for row in added:
        value = tuple(row[at] for at in columns)
        led = {name for name in names if 2 * sum(name in of for of in went[value]) > len(went[value])}
        dead = 2 * sum(not of for of in went[value]) > len(went[value])
        is_new = not went[value] and routing.is_grouping
        reached |= led
        live += bool(led) or is_new
        unroutable += not led and not dead and not is_new
    known = features(routing, added, relation)
    assert known["routed_live"] == live / 5
    assert known["routed_reach"] == len(reached) / max(len(names), 1)
    assert np.isclose(known["unroutable"], unroutable / 5)
    assert all(0 <= value <= 1 for value in known.values())
    assert features(routing, list(reversed(added)), relation) == known
