"""Elements and pairs of waves: as they were, from this machine and from an object store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lineage_service.store.late_table import LateTable
from lineage_service.store.location import StoreLocation
from lineage_service.triggering.changes import impact
from lineage_service.triggering.changes.changed_elements import Elements, difference
from lineage_service.triggering.changes.impact import Features
from lineage_service.triggering.dependence.read_rows import Codes
from lineage_service.triggering.weighing import kept_elements
from lineage_service.triggering.weighing.kept_elements import KeptContainer, KeptElements, KeptPairs, Pair

JOB, OTHER = "0123456789abcdef", "fedcba9876543210"


def container(seed: int, *, is_output: bool = False) -> KeptContainer:
    chance = np.random.default_rng(seed)
    keys = np.unique(chance.integers(0, 2**64, 50, np.uint64))
    of = Elements(keys, np.where(chance.random((len(keys), 2)) < 0.1, np.nan, chance.random((len(keys), 2))))
    if is_output:
        return KeptContainer(path="/out", is_output=True, elements=of)
    level = impact.level(of)
    since = impact.impact(difference(Elements(keys, of.values + 1), of), level)
    names = ("town", "kind")[: seed % 3]
    hashes = chance.integers(0, 2**64, 7, np.uint64)[chance.integers(0, 7, (len(keys), len(names)))]
    codes = Codes(names, hashes)
    return KeptContainer(
        path=f"/in{seed}", is_output=False, elements=of, level=level, impact=since, codes=codes
    )


def numbers(kept: KeptContainer) -> list[Any]:
    parts = [kept.elements.keys, kept.elements.values]
    if kept.level is not None and kept.impact is not None:
        parts += [kept.level.quantiles, kept.level.zeros, kept.level.mean, kept.impact.total]
    if kept.codes is not None:
        return [kept.path, kept.codes.names, *(part.tolist() for part in [*parts, kept.codes.values])]
    return [kept.path, kept.is_output, *(part.tolist() for part in parts)]


def pair(reference: int, step: int, error: float | None, names: tuple[str, ...] = ("a", "b")) -> Pair:
    values = np.array([reference, step], np.float64)
    return Pair(
        reference=reference, step=step, number=step + 10, error=error, features=Features(names, values)
    )


@pytest.fixture(params=["folder", "object store"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StoreLocation:
    if request.param == "folder":
        return StoreLocation(tmp_path / "flows")
    return StoreLocation(f"{request.getfixturevalue('bucket')}/flows", tmp_path / "copies")


def files_of(location: StoreLocation, table: str) -> list[str]:
    from pyarrow.fs import FileSelector

    infos = location.filesystem(table).get_file_info(FileSelector("", recursive=True))
    return [info.path for info in infos if info.path.endswith(".parquet")]


def test_what_is_kept_is_given_back_and_forgotten(location: StoreLocation) -> None:
    kept, pairs = KeptElements(location), KeptPairs(location)
    part, other = kept.new_part(JOB, 0), kept.new_part(OTHER, 0)
    containers = [container(1), container(2), container(3), container(4, is_output=True)]
    kept.add(JOB, {part: containers, other: containers[:1]})
    again = KeptElements(location)
    stored = sorted(again.of(part), key=lambda one: one.path)
    expected = sorted(containers, key=lambda one: one.path)
    assert repr([numbers(one) for one in stored]) == repr([numbers(one) for one in expected])  # with NaN
    without = sorted(again.of(part, has_rows=False), key=lambda one: one.path)
    assert repr([one.elements for one in without]) == repr([one.elements for one in stored])
    assert [None if one.codes is None else one.codes.names for one in without] == [
        None if one.codes is None else one.codes.names for one in stored
    ]
    assert {(one.files, one.places) for one in without} == {((), None)}
    assert again.impacts(part).keys() == {"/in1", "/in2", "/in3"}
    pairs.add(JOB, [pair(0, 1, None), pair(0, 1, 0.5), pair(0, 2, None), pair(1, 2, 0.25)])
    pairs.add(OTHER, [pair(0, 1, 0.1)])
    learned = KeptPairs(location).of(JOB, {})
    assert learned is not None
    assert list(zip(learned.references, learned.waves, learned.errors, strict=True)) == [
        (0, 1, 0.5),
        (1, 2, 0.25),
    ]
    assert learned.features.tolist() == [[0, 1], [1, 2]]
    said = pairs.of(JOB, {12: 0.75, 11: 0.9})  # of the pair that an answer was given upon
    assert said is not None
    assert list(zip(said.references, said.waves, said.errors, strict=True)) == [
        (0, 1, 0.9),
        (0, 2, 0.75),
        (1, 2, 0.25),
    ]
    kept.forget(JOB)
    pairs.forget(JOB)
    assert kept.of(part) == []
    assert pairs.of(JOB, {}) is None
    assert not [
        path for name in ("wave_elements", "wave_pairs") for path in files_of(location, name) if JOB in path
    ]
    assert len(kept.of(other)) == 1
    assert pairs.of(OTHER, {}) is not None


def test_pairs_of_other_features_are_left_out_and_old_parts_go(tmp_path: Path) -> None:
    location = StoreLocation(tmp_path)
    kept, pairs = KeptElements(location), KeptPairs(location)
    pairs.add(JOB, [pair(0, 1, 0.5, ("a", "c")), pair(0, 2, 0.5)])
    learned = pairs.of(JOB, {})
    assert learned is not None
    assert (learned.names, len(learned)) == (("a", "b"), 1)
    parts = [kept.new_part(JOB, step) for step in range(4)]
    for part in parts:
        kept.add(JOB, {part: [container(1)]})
    kept.clear(JOB, 3, [parts[1]])
    assert [bool(kept.of(part)) for part in parts] == [False, True, False, True]


def test_a_table_of_an_earlier_version_has_no_values_and_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, schema, rows = StoreLocation(tmp_path), kept_elements._ELEMENTS, kept_elements._element_rows
    earlier = pa.schema([field for field in schema if field.name not in kept_elements._LATER])
    with monkeypatch.context() as patch:
        before = KeptElements(location)
        part = before.new_part(JOB, 0)
        patch.setattr(kept_elements, "LateTable", lambda *args: LateTable(*args[:2], earlier, "key"))
        patch.setattr(kept_elements, "_element_rows", lambda of: rows(of).select(earlier.names))
        KeptElements(location).add(JOB, {part: [container(2)]})
    kept = KeptElements(location)
    (old,) = kept.of(part)
    assert old.codes is None
    assert repr(numbers(replace(container(2), codes=None))) == repr(numbers(old))
    later = kept.new_part(JOB, 1)
    kept.add(JOB, {later: [container(2)]})
    (new,), (still,) = KeptElements(location).of(later), KeptElements(location).of(part)
    assert still.codes is None
    assert repr(numbers(new)) == repr(numbers(container(2)))
    kept.clear(JOB, 1, [])
    assert (kept.of(part), len(kept.of(later))) == ([], 1)


def test_pairs_of_an_earlier_version_lack_features(tmp_path: Path) -> None:
    pairs = KeptPairs(StoreLocation(tmp_path))
    earlier = Pair(reference=0, step=1, number=11, error=0.5, features=Features(("b",), np.array([7.0])))
    pairs.add(JOB, [earlier, pair(0, 2, 0.25)])
    learned = pairs.of(JOB, {})
    assert learned is not None
    assert learned.names == ("a", "b")
    assert repr(learned.features.tolist()) == "[[nan, 7.0], [0.0, 2.0]]"
