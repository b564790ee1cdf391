"""How far new rows will move outputs: of sums, means and counts by group, exactly as far as they do move."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.triggering.changes.changed_elements import Elements, difference, elements, row_keys
from lineage_service.triggering.changes.output_error import relative_error
from lineage_service.triggering.dependence.lineage_features import (
    Lineage,
    keys_of_new_rows,
    lineage_features,
)
from lineage_service.triggering.dependence.read_rows import Codes, codes_of, read_rows
from lineage_service.triggering.dependence.relation import Relation
from lineage_service.triggering.dependence.routes import learned

Row = tuple[int, str, float]
"""Number, town, amount."""
COLUMNS = ("number", "town", "amount")
TOWNS = "GLWX"
AMOUNTS = st.floats(0.5, 100) | st.just(float("nan"))


@dataclass
class Job:
    """Sums, means or counts of the amounts of each town."""

    measure: str

    def output(self, rows: list[Row]) -> dict[str, float]:
        amounts = {
            town: [row[2] for row in rows if row[1] == town] for town in sorted({row[1] for row in rows})
        }
        numbers = {town: [one for one in of if one == one] for town, of in amounts.items()}
        if self.measure == "count":
            return {town: float(len(of)) for town, of in amounts.items()}
        if self.measure == "sum":
            return {town: sum(of) for town, of in numbers.items()}
        return {town: sum(of) / len(of) for town, of in numbers.items() if of}

    def lineage(self, rows: list[Row]) -> Lineage:
        output = self.output(rows)
        towns = list(output)
        pairs = [(at, towns.index(row[1])) for at, row in enumerate(rows) if row[1] in output]
        row, of = np.array(pairs, np.int64).reshape(-1, 2).T
        relation = Relation(len(rows), len(output), row, of, np.ones(len(rows), bool))
        read = read_rows({"/in": table(rows)}, ["number"])
        return Lineage(read, relation, learned(read, relation), state(rows), np.array(list(output.values())))


def table(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = [pa.int64(), pa.string(), pa.float64()]
    return pa.table([pa.array(of, type) for of, type in zip(columns, types, strict=True)], names=COLUMNS)


def state(rows: list[Row]) -> Elements:
    return elements(table(rows), ["number"], ["amount"])


def features(lineage: Lineage, now: list[Row]) -> dict[str, float]:
    changes = difference(lineage.then, state(now))
    places = {int(key): at for at, key in enumerate(row_keys(table(now), ["number"]))}
    added = [now[places[int(key)]] for key in keys_of_new_rows(["amount"], changes)]
    values = codes_of(table(added).select(["town"]))
    known = lineage_features(["amount"], lineage, changes, values).features
    names = (name.removeprefix("lineage.") for name in known.names)
    return dict(zip(names, known.values.tolist(), strict=True))


def error(then: dict[str, float], now: dict[str, float]) -> float:
    keys = sorted({*then, *now})
    sides = (
        Elements(
            np.array([at for at, key in enumerate(keys) if key in side], np.uint64),
            np.array([[side[key]] for key in keys if key in side]),
        )
        for side in (then, now)
    )
    return relative_error(*sides)


@pytest.mark.parametrize("measure", ["sum", "mean", "count"])
@given(st.data())
def test_outputs_move_as_far_as_their_rows_say(measure: str, data: st.DataObject) -> None:
    """With rows that are new, some of them of a new group, that are gone, and that are others now."""
    job, count = Job(measure), data.draw(st.integers(3, 9))
    amounts = iter(data.draw(st.lists(AMOUNTS, min_size=4 * count + 20, max_size=4 * count + 20)))
    # Two of each group stay as they are, and have a number.
    sure = [(2 * at + twice, town, 1.5 + at) for at, town in enumerate(TOWNS) for twice in range(2)]
    rows = sure + [(10 + at, TOWNS[at % 4], next(amounts)) for at in range(3 * count)]
    gone = data.draw(st.sets(st.integers(10, 9 + 3 * count)))
    others = data.draw(st.sets(st.integers(10, 9 + 3 * count)))
    towns = data.draw(st.lists(st.sampled_from("GLWXYZ"), max_size=6))
    now = [
        (row[0], row[1], next(amounts) if row[0] in others else row[2]) for row in rows if row[0] not in gone
    ]
    now += [(100 + at, town, next(amounts)) for at, town in enumerate(towns)]
    # A group of which nobody has a number is in no mean.
    now += [(200 + at, town, 5.0 + at) for at, town in enumerate(sorted(set(towns) - set(TOWNS)))]
    lineage = job.lineage(rows)
    known = features(lineage, now)
    name = "routed_error_count" if measure == "count" else f"amount.routed_error_{measure}"
    assert np.isclose(known[name], error(job.output(rows), job.output(now)), rtol=1e-6, atol=1e-9)
    old_counts = Job("count").output(rows)
    new = [row for row in now if row[0] >= 100]
    shares = [
        sum(row[1] == town for row in new) / (old_counts[town] + sum(row[1] == town for row in new))
        for town in TOWNS
    ]
    assert np.isclose(known["routed_share_most"], max(shares))
    assert np.isclose(known["routed_share_mean"], sum(shares) / len(shares))
    assert known["routed_reach"] == len({row[1] for row in new} & set(TOWNS)) / 4
    beyond = {row[1] for row in new} - set(TOWNS)
    assert known["new_outputs"] == len(beyond) / (4 + len(beyond))
    assert known["unroutable"] == 0
    if now == rows:
        assert known[name] == 0


def test_of_rows_of_which_half_are_followed_the_other_half_is_thought_alike() -> None:
    rows = [(at, TOWNS[at % 4], 1.0 + at % 4) for at in range(64)]
    now = [*rows, *[(100 + at, "G", 1.0) for at in range(16)]]
    lineage = Job("count").lineage(rows)
    relation = lineage.relation
    walked = np.arange(64) < 32
    inside = walked[relation.row]
    half = Relation(64, 4, relation.row[inside], relation.output[inside], walked)
    known = features(replace(lineage, relation=half, routing=learned(lineage.rows, half)), now)
    expected = error(Job("count").output(rows), Job("count").output(now))
    assert np.isclose(known["routed_error_count"], expected)
    assert np.isclose(known["routed_share_most"], 0.5)


def test_of_equal_rows_those_that_are_more_are_new() -> None:
    then = Elements(np.array([1, 2], np.uint64), np.array([[2.0], [3.0]]))
    now = Elements(np.array([1, 2, 3], np.uint64), np.array([[4.0], [2.0], [1.0]]))
    changes = difference(then, now)
    assert keys_of_new_rows(["occurrences"], changes).tolist() == [1, 3]
    rows = replace(
        read_rows({"/in": pa.table({"x": [1, 1, 2, 2, 2]})}), keys=np.array([1, 1, 2, 2, 2], np.uint64)
    )
    relation = Relation(5, 2, np.arange(5), np.array([0, 0, 1, 1, 1]), np.ones(5, bool))
    lineage = Lineage(rows, relation, learned(rows, relation), then, np.array([2.0, 3.0]))
    values = codes_of(pa.table({"x": [1, 1]}))
    known = lineage_features(["occurrences"], lineage, changes, values).features
    named = dict(zip(known.names, known.values.tolist(), strict=True))
    assert named["lineage.routed_share_most"] == 3 / 5
    assert named["lineage.routed_reach"] == 1 / 2


def test_what_is_not_known_of_new_rows_is_said() -> None:
    rows = [(at, TOWNS[at % 4], 1.0) for at in range(16)]
    lineage, now = Job("mean").lineage(rows), [*rows, (100, "G", 1.0)]
    changes = difference(lineage.then, state(now))
    unknown = lineage_features(["amount"], lineage, changes, None).features
    routed = [name for name in unknown.names if "rout" in name or "new_outputs" in name]
    values = dict(zip(unknown.names, unknown.values.tolist(), strict=True))
    assert np.isnan([values[name] for name in routed]).all()
    other = Codes(("kind",), np.zeros((1, 1), np.uint64))
    known = lineage_features(["amount"], lineage, changes, other).features
    values = dict(zip(known.names, known.values.tolist(), strict=True))
    assert values.pop("lineage.unroutable") == 1
    assert np.isnan([values[name] for name in routed if name in values]).all()
