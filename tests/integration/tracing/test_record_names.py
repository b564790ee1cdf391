"""Names that people give to records and files: of which operation, of which application, of which folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import RecordQuery, RowSetQuery, StartQuery, TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from tests.support.file_applications import APP, MAP, SOURCE, questions_of, splits_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    (made / "a.txt").write_text("one\ntwo\n")
    return made


@pytest.fixture
def asked(tmp_path: Path, folder: Path) -> LineageQueries:
    return questions_of(tmp_path, splits_of(folder / "a.txt"), [2])


def start_of(asked: LineageQueries, **start: object) -> tuple[str, int]:
    trace = asked.trace(APP, TraceQuery(direction="forward", **start))  # type: ignore[arg-type]
    return trace.start_node, trace.start[0].offset


def test_a_record_is_there_though_an_action_before_took_only_the_first(tmp_path: Path, folder: Path) -> None:
    asked = questions_of(tmp_path, splits_of(folder / "a.txt"), [2], taken=1)
    for node in (SOURCE, MAP):
        assert asked.records(APP, RecordQuery(node=str(node))).total == 2
        trace = asked.trace(APP, TraceQuery(direction="backward", node=str(node), partition=0, offset=1))
        assert trace.start[0].offset == 1
    assert [node.records for node in asked.graph(APP).nodes] == [2, 2, 2, 1]
    assert asked.row_set(APP, RowSetQuery(starts=(StartQuery(record=f"{MAP}#0#1"),))).sources[0].total == 2


@pytest.mark.parametrize("name", ["0#1", f"{MAP}#0#1", f"{APP}#{MAP}#0#1"])
def test_a_record_is_named_alone_behind_its_node_or_as_in_neo4j(asked: LineageQueries, name: str) -> None:
    node = str(MAP) if name == "0#1" else None
    assert start_of(asked, record=name, node=node) == (f"{APP}#{MAP}", 1)
    assert asked.values(APP, name, node).node_id == f"{APP}#{MAP}"


@pytest.mark.parametrize("name", ["0#read#0#1", f"{APP}#0#read#0#1", "read#0#1"])
def test_a_record_of_a_source_too(asked: LineageQueries, name: str) -> None:
    assert start_of(asked, record=name) == (f"{APP}#0", 1)


def test_a_record_of_another_application_is_told_apart(asked: LineageQueries) -> None:
    with pytest.raises(InvalidQueryError, match=rf"is of application other, and {APP} was asked for"):
        start_of(asked, record="other#1#0#1")


def test_a_record_id_and_a_node_that_contradict_each_other_are_refused(asked: LineageQueries) -> None:
    assert start_of(asked, record=f"{MAP}#0#1", node=str(MAP)) == (f"{APP}#{MAP}", 1)
    with pytest.raises(InvalidQueryError, match="names node 1, and node is 0"):
        start_of(asked, record=f"{MAP}#0#1", node="0")


def test_a_folder_with_one_file_stands_for_it(asked: LineageQueries, folder: Path) -> None:
    assert start_of(asked, path=str(folder), row=1) == (f"{APP}#0", 1)
    assert start_of(asked, path=f"{folder}/", row=1) == (f"{APP}#0", 1)


def test_of_a_folder_with_several_files_one_is_to_be_named(tmp_path: Path, folder: Path) -> None:
    names = [folder / f"{name}.txt" for name in "abcde"]
    for name in names:
        name.write_text("one\n")
    partitions = [{**splits_of(name)[0], "split": split} for split, name in enumerate(names)]
    asked = questions_of(tmp_path, partitions, [1] * 5)
    with pytest.raises(InvalidQueryError) as refused:
        start_of(asked, path=str(folder), row=0)
    listed = ", ".join(map(str, names[:3]))
    assert str(refused.value) == (
        f"{folder} is a folder with 5 files: name one of them, or a condition (where): {listed} and 2 more"
    )


def test_a_file_that_nothing_has_is_told_with_those_that_are_there(
    asked: LineageQueries, folder: Path
) -> None:
    with pytest.raises(NotFoundError, match=rf"has the file /nowhere; it has {folder / 'a.txt'}$"):
        start_of(asked, path="/nowhere", row=0)
