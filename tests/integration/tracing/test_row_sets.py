"""Row sets from what is stored: which rows of which files, what is meant as a whole, and their texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lineage_service.errors import InvalidQueryError, LineageError, NotFoundError
from lineage_service.lineage import RowSet
from lineage_service.queries import RowSetQuery, StartQuery
from lineage_service.result_json import json_bytes, json_value
from lineage_service.tracing.query.row_sets import MOST_RANGES
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from spark_agent.contract.row_sets import decode_row_set
from tests.support.copying_applications import APP, Source, copying, query_of, sink_of
from tests.support.file_applications import splits_of

ROWS = [f"row {number}" for number in range(40)]
STARTS, COUNTS = (0, 100, 107, 108, 250), [16, 1, 0, 21, 2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "rows.txt"
    path.parent.mkdir()
    path.write_text("".join(f"{row}\n" for row in ROWS))
    return path


@pytest.fixture
def text(path: Path) -> Source:
    return Source(splits_of(path, *STARTS), COUNTS)


def rows_of(row_set: RowSet, node: int = 0) -> dict[str, list[int]]:
    """By the names of files."""
    (source,) = [source for source in row_set.sources if source.node == node]
    assert not source.whole
    return {
        Path(file.path).name: [row for first, count in file.rows for row in range(first, first + count)]
        for file in source.files
    }


def test_rows_of_all_partitions_are_ranges_of_their_file(text: Source, tmp_path: Path, path: Path) -> None:
    row_set = copying(tmp_path, text).row_set(APP, query_of(0, (0, 14), (0, 15), (1, 0), (4, 1)))
    assert decode_row_set(json_bytes(row_set)) == json_value(row_set)
    (source,) = row_set.sources
    (file,) = source.files
    assert file.rows == ((14, 3), (39, 1))
    assert (file.path, file.size) == (str(path), path.stat().st_size)
    assert file.modified == path.stat().st_mtime_ns // 1_000_000
    assert [(split.split, split.positions) for split in source.splits] == [
        (0, ((14, 2),)),
        (1, ((0, 1),)),
        (4, ((1, 1),)),
    ]
    assert (source.partitions, source.total, source.count, source.whole) == (5, 40, 4, False)
    assert [row.text for row in source.listed] == [ROWS[14], ROWS[15], ROWS[16], ROWS[39]]
    assert [(asked.node, asked.record_id) for asked in row_set.asked] == [
        (sink_of(0), f"write#{place}") for place in ("0#14", "0#15", "1#0", "4#1")
    ]
    assert (row_set.exact, row_set.complete, row_set.how) == (True, True, None)


def test_positions_are_known_where_the_file_is_gone(text: Source, tmp_path: Path, path: Path) -> None:
    questions = copying(tmp_path, text)
    path.unlink()
    (source,) = questions.row_set(APP, query_of(0, (3, 2))).sources
    assert (source.files, [split.positions for split in source.splits]) == ((), [((2, 1),)])
    assert "it is gone" in (source.why or "")
    assert not source.whole


def test_a_source_off_the_way_is_meant_as_a_whole(text: Source, tmp_path: Path, path: Path) -> None:
    stop = tmp_path / "stop.txt"
    stop.write_text("the\n")
    row_set = copying(tmp_path, text, Source(splits_of(stop), [1])).row_set(APP, query_of(0, (0, 0)))
    assert rows_of(row_set, 0) == {"rows.txt": [0]}
    other = row_set.sources[1]
    assert (other.whole, other.files, other.splits, other.listed) == (True, (), (), ())
    assert "may have taken values of it" in (other.why or "")


@pytest.mark.parametrize(
    ("source", "is_whole", "said"),
    [
        (Source(counts=[3], name="parallelize", format=None), False, None),
        (Source(counts=[3], name="newAPIHadoopRDD", format=None), True, "no rows of files"),
        (Source(counts=[3], name="jdbc", format="jdbc"), True, "no rows of files"),
        (Source(counts=[3], name="sequenceFile", format="hadoop"), False, None),
        (Source((), [3], "x", None, fields={"exact": False, "reason": "unseen"}), True, "unseen"),
        (
            Source(name="kafka", format="kafka", fields={"relation": contract.CARRIED, "reason": "a stream"}),
            True,
            "a stream",
        ),
    ],
)  # fmt: skip
def test_what_another_run_may_read_otherwise_is_meant_as_a_whole(
    source: Source, is_whole: bool, said: str | None, text: Source, tmp_path: Path
) -> None:
    questions = copying(tmp_path, text, source)
    starts = [
        StartQuery(node=str(sink_of(at)), partition=0, offset=1) for at in (0, 1)[: 1 + len(source.counts)]
    ]
    answer = questions.row_set(APP, RowSetQuery(starts=tuple(starts))).sources[1]
    assert answer.whole is is_whole
    if not source.counts:
        return  # off the way, since nothing can be asked of it
    assert (said is None) == (answer.why is None)
    assert said is None or said in (answer.why or "")
    assert is_whole or [split.positions for split in answer.splits] == [((1, 1),)]


def test_rows_of_whole_files_and_records_of_bytes(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.write_text("x" * 10)
    whole = Source(
        [{"split": 0, "files": [{"path": str(file), "size": 10, "modified": None} for file in files]}],
        [3],
        "wholeTextFiles",
        "file",
    )
    fixed = Source(
        [
            {"split": 0, "path": str(files[0]), "start": 0, "length": 5, "record_length": 2},
            {"split": 1, "path": str(files[0]), "start": 5, "length": 5, "record_length": 2},
        ],
        [3, 2],
        "binaryRecords",
        "binary",
    )
    questions = copying(tmp_path, whole, fixed)
    assert rows_of(questions.row_set(APP, query_of(0, (0, 0), (0, 2)))) == {"a": [0], "c": [0]}
    assert rows_of(questions.row_set(APP, query_of(1, (0, 2), (1, 0), (1, 1))), 1) == {"a": [2, 3, 4]}


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("csv+header", ["a,b", "", "1,2", "3,4", "  ", "5,6", "7,8"]),
        ("csv", ["1,2", "", "3,4", "5,6", "7,8"]),
        ("json", ['{"a": 1}', "", '[{"a": 2}, {"a": 3}]', '{"a": 4}']),
        ("text", ["x", "", "y", "z"]),
    ],
)
def test_rows_have_the_numbers_that_records_show(format: str, lines: list[str], tmp_path: Path) -> None:
    """Two files in one partition, the second one in two pieces."""
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_text("".join(f"{line}\n" for line in lines))
    half = paths[1].stat().st_size // 2
    questions = copying(
        tmp_path,
        Source(
            [
                {
                    "split": 0,
                    "parts": [
                        {"path": str(paths[0]), "start": 0, "first": 0, "row": 0},
                        {"path": str(paths[1]), "start": 0, "first": 4, "row": 0},
                    ],
                },
                {"split": 1, "parts": [{"path": str(paths[1]), "start": half, "first": 0, "row": None}]},
            ],
            [6, 1],
            "Scan",
            format,
            fields={"by_id": False},
        ),
    )
    places = [(0, at) for at in range(6)] + [(1, 0)]
    for place in places:
        row_set = questions.row_set(APP, query_of(0, place))
        (row,) = row_set.sources[0].listed
        assert row.warning is None
        assert rows_of(row_set) == {Path(row.path).name: [row.row]}


def test_a_row_of_an_input_is_a_record_of_every_source_that_read_it(
    text: Source, tmp_path: Path, path: Path
) -> None:
    questions = copying(tmp_path, text, text)
    starts = (StartQuery(path=str(path), row=16), StartQuery(path=str(path), row=0, node="1"))
    row_set = questions.row_set(APP, RowSetQuery(starts=starts))
    assert rows_of(row_set, 0) == {"rows.txt": [16]}
    assert rows_of(row_set, 1) == {"rows.txt": [0, 16]}
    named = questions.source_files.named(APP, [(str(path), 16), (str(path), 0)], limit=1)
    assert rows_of(named, 0) == rows_of(named, 1) == {"rows.txt": [0, 16]}
    assert [row.text for row in named.sources[0].listed] == [ROWS[0]]
    assert decode_row_set(json_bytes(named))["asked"] == []
    with pytest.raises(NotFoundError, match="has 40 rows; row 40 is not there"):
        questions.source_files.named(APP, [(str(path), 40)])
    with pytest.raises(InvalidQueryError, match=f"no source of {APP} read the file /x: .*{path}"):
        questions.source_files.named(APP, [("/x", 0)])


def test_all_rows_that_fulfil_a_condition_are_starts(text: Source, tmp_path: Path, path: Path) -> None:
    questions = copying(tmp_path, text)
    starts = (StartQuery(where="value like 'row 1_'", path=str(path)), StartQuery(path=str(path), row=39))
    row_set = questions.row_set(APP, RowSetQuery(starts=starts))
    assert rows_of(row_set) == {"rows.txt": [*range(10, 20), 39]}


def test_a_query_without_records_is_refused(text: Source, tmp_path: Path) -> None:
    questions = copying(tmp_path, text)
    with pytest.raises(InvalidQueryError, match="say which records"):
        questions.row_set(APP, RowSetQuery(starts=()))
    with pytest.raises(InvalidQueryError, match="more than a trace may have"):
        questions.row_set(APP, RowSetQuery(starts=(StartQuery(record="write#0#0"),) * 10_001))
    with pytest.raises(NotFoundError, match="offset 99"):
        questions.row_set(APP, query_of(0, (0, 0), (0, 99)))


def test_a_row_set_of_too_many_pieces_is_refused(
    text: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_RANGES == 1_000_000
    monkeypatch.setattr("lineage_service.tracing.query.row_sets.MOST_RANGES", 5)
    questions = copying(tmp_path, text)
    with pytest.raises(InvalidQueryError, match="more than 5 pieces"):
        questions.row_set(APP, query_of(0, (0, 0), (0, 2), (0, 4)))


def test_an_application_that_is_not_complete_says_so(text: Source, tmp_path: Path) -> None:
    row_set = copying(tmp_path, text, ended=None).row_set(APP, query_of(0, (0, 0)))
    assert not row_set.complete
    assert "rows may be missing" in (row_set.how or "")


# -- input files and their texts ------------------------------------------------------------------------


def texts_of(questions: LineageQueries, row_set: RowSet) -> Any:
    return questions.source_files.texts(APP, json_value(row_set)["sources"])


def test_texts_are_by_partition_in_the_order_of_positions(text: Source, tmp_path: Path) -> None:
    questions = copying(tmp_path, text, Source(counts=[1], name="parallelize", format=None))
    row_set = questions.row_set(APP, query_of(0, (0, 15), (0, 14), (3, 0)))
    texts = texts_of(questions, row_set)
    assert texts[0].texts == {"0": [ROWS[14], ROWS[15]], "3": [ROWS[17]]}
    assert (texts[1].texts, texts[1].why) == (None, "all of its rows are meant")
    assert questions.source_files.row_texts(APP, 0, 3, [0, 20]) == {0: ROWS[17], 20: ROWS[37]}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xef\xbb\xbfa\nb\n", "byte order mark"),
        (b"\xff\nb\n", "not all UTF-8"),
        (b"x" * 100_001 + b"\nb\n", "more than 100,000 bytes"),
    ],
)
def test_texts_that_may_be_others_are_not_given(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_bytes(data)
    questions = copying(tmp_path, Source(splits_of(path), [2]))
    both = texts_of(questions, questions.row_set(APP, query_of(0, (0, 0), (0, 1))))[0]
    assert both.texts is None
    assert said in both.why
    second = texts_of(questions, questions.row_set(APP, query_of(0, (0, 1))))[0]
    assert second.texts == {"0": ["b"]}


def test_no_texts_of_a_file_that_has_changed_and_no_more_than_fit(
    text: Source, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = copying(tmp_path, text)
    row_set = questions.row_set(APP, query_of(0, (0, 0), (0, 1)))
    assert [file.changed for file in questions.source_files.input_files(APP)] == [None]
    monkeypatch.setattr("lineage_service.tracing.query.source_files.MOST_ROWS", 1)
    assert "more than 1 rows" in texts_of(questions, row_set)[0].why
    monkeypatch.undo()
    monkeypatch.setattr("lineage_service.tracing.query.source_files.MOST_BYTES", 3)
    assert "more than 3 bytes" in texts_of(questions, row_set)[0].why
    monkeypatch.undo()
    path.write_text("".join(f"{row}\n" for row in ROWS[:-1]))
    assert "has changed since the run" in texts_of(questions, row_set)[0].why
    (file,) = questions.source_files.input_files(APP, [0])
    assert (file.node, file.path) == (0, str(path))
    assert "has changed since the run" in (file.changed or "")
    path.unlink()
    assert "it is gone" in (questions.source_files.input_files(APP)[0].changed or "")
    assert questions.source_files.input_files(APP, [7]) == ()


def test_what_is_no_line_of_text_has_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps({"a": 1}) + "\n")
    parts = [{"split": 0, "parts": [{"path": str(path), "start": 0, "first": 0, "row": 0}]}]
    questions = copying(tmp_path, Source(parts, [1], "Scan", "json"))
    texts = texts_of(questions, questions.row_set(APP, query_of(0, (0, 0))))[0]
    assert (texts.texts, texts.why) == (None, "its records are no lines of text files")


def test_errors_are_of_the_service(text: Source, tmp_path: Path) -> None:
    with pytest.raises(LineageError, match="no application nobody"):
        copying(tmp_path, text).row_set("nobody", query_of(0, (0, 0)))
