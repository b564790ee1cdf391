"""Which rows went into which outputs, and features of it, against loops over what they were made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.tracing.files.decompression import unlimited
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.summaries import Receipts
from lineage_service.tracing.query.open_applications import OpenApplications, Opened
from lineage_service.triggering.changes.changed_elements import Elements, Numbers, difference
from lineage_service.triggering.changes.output_error import relative_error
from lineage_service.triggering.dependence.lineage_features import Lineage, lineage_features
from lineage_service.triggering.dependence.reach import reach, reach_names
from lineage_service.triggering.dependence.read_rows import ReadRows, read_rows
from lineage_service.triggering.dependence.relation import Relation, relation_of
from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP, event
from tests.support.random_runs import applications
from tests.support.run_applications import Place, RunApplication

NAMES = reach_names(["v"])
#: What is not known where the numbers of outputs are not.
OF_ZEROS = ("_of_zeros", "_of_others", "moved", "rising", "falling", "routed_error")


def input_files(application: RunApplication, folder: Path) -> dict[str, list[Place]]:
    """A file of lines for each split of each source: the records that its lines are."""
    return {
        str(folder / f"source-{stage.begin}-{split}"): [(stage.begin, split, at) for at in range(size)]
        for stage in application.stages
        if stage.kind == "file"
        for split, size in enumerate(stage.sizes)
    }


def written(files: Mapping[str, list[Place]]) -> list[bytes]:
    """The files, and what an agent says of them."""
    partitions = defaultdict(list)
    for path, places in files.items():
        Path(path).write_text("".join(f"{text_of(place)}\n" for place in places))
        node, split = (int(part) for part in path.rsplit("-", 2)[1:])
        length = Path(path).stat().st_size
        partitions[node].append({"split": split, "path": path, "start": 0, "length": length})
    return [event(contract.PARTITIONS, node=node, partitions=parts) for node, parts in partitions.items()]


def text_of(place: Place) -> str:
    return "row {} {} {}".format(*place)


def opened(application: RunApplication, files: Mapping[str, list[Place]], folder: Path) -> Opened:
    store = FileStore(folder)
    events, blocks = application.told()
    ended = event(contract.APPLICATION_ENDED)
    store.tell([*events, *written(files), ended], blocks)
    return OpenApplications(store, Receipts()).open(APP)


def origins(made: Mapping[Place, set[Place]], place: Place) -> set[Place]:
    before = set().union(*(origins(made, origin) for origin in made[place]))
    return before if made[place] else {place}


def read(files: Mapping[str, list[Place]]) -> ReadRows:
    return read_rows({path: pa.table({"line": list(map(text_of, rows))}) for path, rows in files.items()})


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_each_row_is_related_to_the_outputs_that_it_went_into(data: st.DataObject) -> None:
    application = data.draw(applications())
    with TemporaryDirectory() as name:
        files = input_files(application, Path(name))
        app = opened(application, files, Path(name))
        sinks = [sink for stage in application.stages for sink in stage.actions]
        asked = data.draw(st.lists(st.sampled_from(sorted(files)), min_size=1, unique=True))
        rows = read({path: files[path] for path in asked})
        relation = relation_of(app, sinks, rows, RecordLocations().file_rows, unlimited)
        assert isinstance(relation, Relation), relation
        made = application.made()
        outputs = sorted(place for place in made if place[0] in sinks)
        number = {text_of(place): at for at, place in enumerate(p for path in asked for p in files[path])}
        expected = {
            (number[text_of(origin)], at)
            for at, place in enumerate(outputs)
            for origin in origins(made, place)
            if text_of(origin) in number
        }
        pairs = list(zip(relation.row.tolist(), relation.output.tolist(), strict=True))
        assert relation.outputs == len(outputs)
        assert set(pairs) == expected
        assert len(pairs) == len(expected)
        assert relation.exact
        assert not relation.is_sampled


# -- features of any relation ------------------------------------------------------------------------

NUMBERS = st.sampled_from([0.0, 1.0, 2.5, -4.0, 1e200, float("nan")])


@st.composite
def lineages(draw: st.DrawFn) -> Lineage:
    """Of rows with the keys 0, 1, 2 and so on, and their relation to outputs."""
    count, outputs = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    pairs = sorted(draw(st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, outputs - 1)))))
    row, output = np.array(pairs, np.int64).reshape(-1, 2).T
    relation = Relation(count, outputs, row, output, np.ones(count, bool))
    written = draw(st.none() | st.lists(NUMBERS, min_size=outputs, max_size=outputs).map(np.array))
    table = pa.table({"v": np.zeros(count)})
    rows = read_rows({"/in": table})
    keys = np.arange(count, dtype=np.uint64)
    rows = ReadRows(rows.paths, rows.firsts, keys, rows.sampled, rows.codes)
    return Lineage(rows, relation, None, Elements(keys, np.zeros((count, 1))), written)


@st.composite
def states(draw: st.DrawFn, keys: list[int]) -> Elements:
    chosen = sorted(draw(st.sets(st.sampled_from(keys))))
    values = np.array([draw(NUMBERS) for _ in chosen], float).reshape(-1, 1)
    return Elements(np.array(chosen, np.uint64), values)


def full(lineage: Lineage, data: st.DataObject) -> Elements:
    """A state that has all of its rows."""
    values = np.array([data.draw(NUMBERS) for _ in range(len(lineage.rows))], float).reshape(-1, 1)
    return Elements(lineage.rows.keys, values)


def values_of(lineage: Lineage, then: Elements, now: Elements) -> dict[str, float]:
    lineage = replace(lineage, then=then)
    known = lineage_features(["v"], lineage, difference(then, now), None)
    assert (known.why, known.is_upper_bound, known.is_sampled) == ("", False, False)
    names = [name.removeprefix("lineage.") for name in known.features.names]
    return dict(zip(names, known.features.values.tolist(), strict=True))


@given(st.data())
def test_features_are_shares_and_none_without_a_live_row(data: st.DataObject) -> None:
    lineage = data.draw(lineages())
    then = full(lineage, data)
    now = data.draw(states(list(range(len(lineage.rows) + 2))) | st.just(then))
    features = values_of(lineage, then, now)
    for name, value in features.items():
        if lineage.written is None and any(word in name for word in OF_ZEROS):
            assert np.isnan(value), name
        elif "routed" not in name and name not in ("new_outputs", "unroutable"):
            assert (-1 if ".push" in name else 0) <= value <= 1, name
    if features["live"] == 0:
        names = ("reach", "share_most", "v.mass_most", "v.push_most", "v.moved_error_low", "v.rising")
        assert all(features[name] == 0 or np.isnan(features[name]) for name in names)
    if not len(difference(then, now)):
        assert all(value == 0 or np.isnan(value) for value in features.values())


@given(st.data())
def test_features_are_what_loops_say(data: st.DataObject) -> None:
    lineage = data.draw(lineages())
    then = full(lineage, data)
    now = data.draw(states(list(range(len(lineage.rows)))))
    features, relation = values_of(lineage, then, now), lineage.relation
    old = {key: float(np.nan_to_num(value)) for key, value in enumerate(then.values[:, 0])}
    new = dict.fromkeys(old, 0.0) | {
        int(key): float(np.nan_to_num(value)) for key, value in zip(now.keys, now.values[:, 0], strict=True)
    }
    raw = dict(zip(now.keys.tolist(), now.values[:, 0].tolist(), strict=True))
    changed = {
        key
        for key in old
        if key not in raw or not np.array_equal(raw[key], then.values[key, 0], equal_nan=True)
    }
    pairs = list(zip(relation.row.tolist(), relation.output.tolist(), strict=True))
    inputs = {at: [row for row, output in pairs if output == at] for at in range(relation.outputs)}
    shares = [len(changed & set(rows)) / max(len(rows), 1) for rows in inputs.values()]
    masses, pushes = [], []
    for rows in inputs.values():
        size = sum(max(abs(old[row]), abs(new[row])) for row in rows) or 1.0
        masses.append(min(sum(abs(new[row] - old[row]) for row in rows) / size, 1))
        pushes.append(max(min(sum(new[row] - old[row] for row in rows) / size, 1), -1))
    live = {row for row, _ in pairs} & changed
    expected = {
        "live": len(live) / max(len(changed), 1),
        "reach": sum(share > 0 for share in shares) / relation.outputs,
        "share_most": max(shares),
        "share_mean": sum(shares) / len(shares),
        "v.mass_most": max(masses),
        "v.mass_mean": sum(masses) / len(masses),
        "v.push_least": min(pushes),
        "v.push_most": max(pushes),
    }
    if lineage.written is not None:
        zeros = [number == 0 for number in lineage.written]
        of_zeros = [mass for mass, zero in zip(masses, zeros, strict=True) if zero]
        of_others = [push for push, zero in zip(pushes, zeros, strict=True) if not zero]
        expected |= {"v.mass_of_zeros_most": max(of_zeros, default=0)}
        expected |= {"v.push_of_others_least": min(of_others, default=0)}
    for name, value in expected.items():
        assert np.isclose(features[name], value, rtol=1e-6, atol=1e-9), name


@given(st.data())
def test_more_changed_rows_never_lower_reach_or_share(data: st.DataObject) -> None:
    lineage = data.draw(lineages())
    count = len(lineage.rows)
    flags = st.lists(st.booleans(), min_size=count, max_size=count).map(np.array)
    some, more = data.draw(flags), data.draw(flags)
    nothing = np.zeros((count, 1))
    few, many = (
        dict(zip(NAMES, reach(["v"], lineage.relation, changed, nothing, nothing).values, strict=True))
        for changed in (some, some | more)
    )
    for name in ("reach", "share_most", "share_mean", "share_90"):
        assert few[name] <= many[name] + 1e-12


@given(st.data())
def test_the_order_of_rows_changes_nothing(data: st.DataObject) -> None:
    lineage = data.draw(lineages())
    then = full(lineage, data)
    now = data.draw(states(list(range(len(lineage.rows)))))
    order = np.array(data.draw(st.permutations(range(len(lineage.rows)))), np.int64)
    place = np.argsort(order)
    rows, relation = lineage.rows, lineage.relation
    other = Lineage(
        ReadRows(rows.paths, rows.firsts, rows.keys[order], rows.sampled, rows.codes),
        Relation(relation.rows, relation.outputs, place[relation.row], relation.output, relation.walked),
        None,
        then,
        lineage.written,
    )
    one, two = values_of(lineage, then, now), values_of(other, then, now)
    assert one.keys() == two.keys()
    for name in one:
        assert np.isclose(one[name], two[name], rtol=1e-9, equal_nan=True), name


def test_where_there_is_no_lineage_nothing_is_known_and_nothing_raised() -> None:
    empty = Elements(np.zeros(0, np.uint64), np.zeros((0, 1)))
    known = lineage_features(["v"], "its lineage is not complete", difference(empty, empty), None)
    assert known.why == "its lineage is not complete"
    assert np.isnan(known.features.values).all()


@given(
    st.lists(st.lists(st.floats(0.5, 20), min_size=3, max_size=3), min_size=2, max_size=6),
    st.lists(st.floats(0.5, 20), min_size=18, max_size=18),
    st.floats(2, 15),
)
def test_the_error_of_means_over_a_threshold_is_between_its_two_estimates(
    groups: list[list[float]], numbers: list[float], threshold: float
) -> None:
    """Or it is both of them, where the next threshold would have decided the same."""
    count, outputs = 3 * len(groups), len(groups)
    row = np.arange(count)
    relation = Relation(count, outputs, row, row // 3, np.ones(count, bool))
    then, now = np.array(groups).ravel(), np.array(numbers[:count])

    def output(values: Numbers, limit: float) -> Numbers:
        means = values.reshape(outputs, 3).mean(axis=1)
        return np.where(means > limit, means, 0.0)

    written = output(then, threshold)
    changed = then != now
    features = dict(
        zip(
            NAMES,
            reach(["v"], relation, changed, then[:, None], now[:, None], written).values.tolist(),
            strict=True,
        )
    )
    if not written.any() or written.all():
        return
    means = then.reshape(outputs, 3).mean(axis=1)
    low, high = means[written > 0].min(), means[written == 0].max()
    keys = np.arange(outputs, dtype=np.uint64)

    def error(limit: float) -> float:
        return relative_error(*(Elements(keys, of[:, None]) for of in (written, output(now, limit))))

    after = now.reshape(outputs, 3).mean(axis=1)
    if (np.abs(after - low) < 1e-6).any() or (np.abs(after - high) < 1e-6).any():
        return
    assert np.isclose(features["v.moved_error_low"], error(low), atol=1e-6)
    assert np.isclose(features["v.moved_error_high"], error(high), atol=1e-6)
    assert np.isclose(features["v.rising"], ((written == 0) & (after >= low)).mean())
    assert np.isclose(features["v.falling"], ((written > 0) & (after <= high)).mean())
