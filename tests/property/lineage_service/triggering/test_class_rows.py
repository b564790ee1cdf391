"""Which classes of rows changed, and their rows in files: compared with plain Python."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.lineage import Column, Dataset
from lineage_service.tracing.files.file_systems import FileSystems
from lineage_service.tracing.model.elements import TopologyNode
from lineage_service.triggering.certain.file_looks import FileLook, FileLooks
from lineage_service.triggering.probing.class_rows import ClassRows, classes_of, rows_of

ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-3, 3)), max_size=12)


def source(path: Path) -> TopologyNode:
    return TopologyNode(
        number=0,
        name="Scan csv",
        description=str(path),
        kind="source",
        relation="source",
        exact=True,
        reason="",
        call_site="",
        dataset=Dataset(namespace="file", name=str(path), format="csv"),
        parents=(),
        partitions={},
        schema=(Column(name="shop", type="string"), Column(name="amount", type="int")),
        options={},
    )


def look(path: Path) -> FileLook:
    return FileLooks(FileSystems(), 10).at(str(path))


def written(folder: Path, rows: list[tuple[str, int]], files: int) -> ClassRows:
    folder.mkdir()
    for number in range(files):
        lines = [f"{shop},{amount}\n" for shop, amount in rows[number::files]]
        (folder / f"{number}.csv").write_text("".join(lines))
    return rows_of(look(folder), source(folder), ["shop"])


@given(ROWS, ROWS, st.integers(1, 3))
def test_classes_are_those_with_another_multiset_of_rows_and_files_have_just_their_rows(
    before: list[tuple[str, int]], after: list[tuple[str, int]], files: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        then, now = written(folder / "then", before, files), written(folder / "now", after, 1)
        changed = classes_of(then).changed(classes_of(now))
        shops = {shop for shop, _ in (Counter(before) - Counter(after)) + (Counter(after) - Counter(before))}
        assert len(changed) == len(shops)
        now.write(np.isin(now.classes, changed), folder / "subset")
        [path] = (folder / "subset").iterdir()
        expected = [f"{shop},{amount}" for shop, amount in after if shop in shops]
        assert path.read_text().splitlines() == expected
        assert classes_of(now).count(changed) == len(expected)
        assert path.stat().st_mtime_ns // 1_000_000 == now.files[0].modified
