"""The rows of files in the graph of a whole application: their texts, files and lines, within bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.graph.application_rows import ApplicationGraph, NodeRecords
from lineage_service.graph_export.application_reader import application_graph
from lineage_service.graph_export.file_rows import FileRowReader
from tests.support.file_applications import APP, MAP, SINK, SOURCE, questions_of, splits_of

LINES = ["Graz,1990", "Linz,5.00", "Wien,20.50 and a little more"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def columns(folder: Path, source: Path, reader: FileRowReader | None, **more: Any) -> dict[int, NodeRecords]:
    written = [{"split": 0, "start": 0, "length": None, "path": str(source), "size": None, "modified": None}]
    questions = questions_of(folder, splits_of(source), [len(LINES)], written=written, **more)
    graph = application_graph(questions._applications.open(APP), 1_000, reader)
    assert isinstance(graph, ApplicationGraph)
    return {column.node: column for column in graph.columns}


def test_input_and_output_rows_have_text_file_and_line(tmp_path: Path, source: Path) -> None:
    by_node = columns(tmp_path, source, FileRowReader(1_000), values={0: [("str", "a")] * 3}, detailed=True)
    for node in (SOURCE, SINK):
        assert by_node[node].vals == LINES
        assert by_node[node].files == [str(source)] * 3
        assert by_node[node].lines == [1, 2, 3]
    assert (by_node[MAP].vals, by_node[MAP].files, by_node[MAP].lines) == (["a"] * 3, (), ())


def test_long_texts_are_cut(tmp_path: Path, source: Path) -> None:
    assert columns(tmp_path, source, FileRowReader(9))[SOURCE].vals == [LINES[0], LINES[1], "Wien,20.5…"]


@pytest.mark.parametrize("reader", [None, FileRowReader(0), FileRowReader(9, seconds=0)])
def test_without_a_reader_or_time_no_row_is_read(
    tmp_path: Path, source: Path, reader: FileRowReader | None
) -> None:
    for column in columns(tmp_path, source, reader).values():
        assert not any(column.vals)
        assert not any(column.files)


def test_a_file_that_is_gone_has_places_and_no_texts(tmp_path: Path, source: Path) -> None:
    questions = questions_of(tmp_path, splits_of(source), [len(LINES)])
    source.unlink()
    graph = application_graph(questions._applications.open(APP), 1_000, FileRowReader(9))
    assert isinstance(graph, ApplicationGraph)
    assert (graph.columns[0].vals, graph.columns[0].lines) == ([None] * 3, [1, 2, 3])
