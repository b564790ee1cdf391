"""Traces that go on from a file that one application wrote into the one that read it, and back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lineage_service.decode.batches import event_batch
from lineage_service.lineage import Trace
from spark_agent import contract
from tests.support.lineage_messages import event, messages
from tests.support.linked_applications import Applications, described

ROWS = ["red", "green", "blue", "yellow", "black", "white"]


@pytest.fixture
def applications(tmp_path: Path) -> Applications:
    return Applications(tmp_path / "home")


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    path = tmp_path / "colours.txt"
    path.write_text("".join(f"{row}\n" for row in ROWS))
    return path


def listed(trace: Trace) -> dict[str, list[str]]:
    """Node id -> texts of its records."""
    return {
        node.node_id: [record.source.text or "" for record in node.records if record.source is not None]
        for node in trace.nodes
    }


def test_a_trace_goes_through_files_to_the_first_source_and_back(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b", starts=(0, 12))
    applications.copy("third", 300, tmp_path / "b-1", tmp_path / "c")
    backward = applications.trace("third", direction="backward", path=str(tmp_path / "c-0"), row=1)
    row = ["black"]
    assert listed(backward) == {
        "third#1": row,
        "third#0": row,
        "second#1": row,
        "second#0": row,
        "first#1": row,
        "first#0": row,
    }
    assert backward.exact
    assert backward.nodes[-1].records[0].source.row == ROWS.index("black")  # type: ignore[union-attr]
    assert [(flow.hash_in, flow.node_id) for flow in backward.flows if flow.node_id.endswith("#0")] == [
        ("second#1#write#1#1", "third#0"),
        ("first#1#write#0#4", "second#0"),
    ]
    forward = applications.trace("first", direction="forward", path=str(colours), row=4)
    assert listed(forward) == listed(backward)
    other = applications.trace("first", direction="forward", path=str(colours), row=0)
    assert set(listed(other)) == {"first#0", "first#1", "second#0", "second#1"}


def test_depth_to_and_a_wish_keep_a_trace_in_its_application(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b")
    for wish in ({"depth": 9}, {"to": "0"}, {"across": False}):
        trace = applications.trace("second", direction="backward", record="write#0#2", **wish)
        assert set(listed(trace)) == {"second#0", "second#1"}


def test_a_file_that_a_query_read_which_was_not_followed_may_lead_on_unseen(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    applications.copy("first", 1000, colours, copied)
    applications.end("first")
    question: dict[str, Any] = {"direction": "forward", "path": str(colours), "row": 2}

    def is_complete(**more: Any) -> bool:
        return applications.trace("first", **{**question, **more}).complete

    before = is_complete()
    applications.read_unfollowed("earlier", 500, str(tmp_path))
    applications.read_unfollowed("elsewhere", 2000, str(tmp_path / "cop"))
    assert is_complete() is before
    applications.read_unfollowed("later", 2000, str(tmp_path))
    assert before
    assert not is_complete()
    assert is_complete(across=False)
    assert is_complete(direction="backward", path=f"{copied}-0")


def test_a_sink_whose_files_are_not_known_may_lead_on_unseen(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.write_unseen("writer", 1000, str(tmp_path))
    trace = applications.trace("writer", direction="forward", record="0#2", node="0")
    assert not trace.complete
    assert trace.exact
    assert [node.reason for node in trace.nodes if node.kind == "sink"] == ["nobody knows"]
    assert applications.trace("writer", direction="backward", record="write#0#2").complete


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_file_of_which_no_writer_is_known_may_be_of_a_sink_whose_files_are_not_known(
    applications: Applications, colours: Path, tmp_path: Path, *, is_followed: bool
) -> None:
    now = int(colours.stat().st_mtime * 1000)
    applications.copy("reader", now + 2000, colours, tmp_path / "a")
    applications.end("reader")
    question: dict[str, Any] = {"direction": "backward", "record": "write#0#2"}

    def reasons(application: str = "reader", **more: Any) -> list[str]:
        trace = applications.trace(application, **question, **more)
        reasons = [node.reason for node in trace.nodes if node.reason]
        assert trace.complete is not bool(reasons)
        return reasons

    assert not reasons()
    applications.write_unseen("elsewhere", now, str(tmp_path / "col"), is_followed=is_followed)
    applications.write_unseen("later", now + 60_000, str(tmp_path), is_followed=is_followed)
    assert not reasons()
    applications.write_unseen("earlier", now - 1000, str(tmp_path), is_followed=is_followed)
    assert reasons() == [
        "operation 1 of earlier may have written these records: it is not known what it wrote where"
    ]
    assert not reasons(across=False)
    applications.copy("copy", now + 3000, tmp_path / "a-0", tmp_path / "b")
    applications.end("copy")
    assert len(reasons("copy")) == 1  # of what `reader` read: who wrote its output is known


def test_a_file_that_was_written_anew_links_nothing(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    (tmp_path / "a-0").write_text("other\n" * 6)
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b")
    trace = applications.trace("second", direction="backward", record="write#0#2")
    assert set(listed(trace)) == {"second#0", "second#1"}
    assert trace.exact


def test_of_two_runs_of_one_script_the_last_before_the_reader_counts(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("old", 100, colours, tmp_path / "a")
    applications.copy("new", 150, colours, tmp_path / "a")
    applications.copy("reader", 200, tmp_path / "a-0", tmp_path / "b")
    applications.copy("later", 300, colours, tmp_path / "c")
    trace = applications.trace("reader", direction="backward", record="write#0#0")
    assert set(listed(trace)) == {"reader#0", "reader#1", "new#0", "new#1"}
    forward = applications.trace("old", direction="forward", path=str(colours), row=0)
    assert set(listed(forward)) == {"old#0", "old#1"}


def test_a_session_goes_on_to_what_a_younger_application_wrote(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("job", 200, colours, tmp_path / "a")
    applications.copy("session", 100, tmp_path / "a-0", tmp_path / "b")
    backward = applications.trace("session", direction="backward", record="write#0#1")
    assert set(listed(backward)) == {"session#0", "session#1", "job#0", "job#1"}
    forward = applications.trace("job", direction="forward", path=str(colours), row=1)
    assert set(listed(forward)) == set(listed(backward))


def test_where_nobody_knows_its_state_a_file_is_not_what_was_written_to_its_place_afterwards(
    applications: Applications, tmp_path: Path
) -> None:
    remote = "s3a://bucket/part-00000"
    for name, began in (("first", 100), ("second", 200), ("third", 300)):
        applications.rewrite(name, began, remote)
    backward = applications.trace("second", direction="backward", record="write#0#1")
    assert {node.node_id for node in backward.nodes} == {"second#0", "second#1", "first#0", "first#1"}
    forward = applications.trace("second", direction="forward", record="read#0#1")
    assert {node.node_id for node in forward.nodes} == {"second#0", "second#1", "third#0", "third#1"}


def test_a_walk_that_is_kept_does_not_hold_a_trace_to_an_application_that_was_deleted(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b")
    asked = {"direction": "backward", "record": "write#0#2"}
    assert "first#0" in listed(applications.trace("second", **asked))
    applications.store.delete("first")
    assert set(listed(applications.trace("second", **asked))) == {"second#0", "second#1"}


@pytest.mark.parametrize("is_whole", [False, True])
def test_splits_that_were_read_whole_are_told_apart_when_their_file_is_gone(
    is_whole: bool, applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b", starts=(0, 8), whole=is_whole)
    (tmp_path / "a-0").unlink()
    trace = applications.trace("second", direction="backward", record="write#1#1")
    assert trace.exact is is_whole
    nodes = {node.node_id: [record.record_id for record in node.records] for node in trace.nodes}
    assert nodes.get("first#0", []) == (["read#0#3"] if is_whole else [])


def test_a_record_of_several_rows_links_nothing_and_the_trace_says_so(
    applications: Applications, colours: Path, tmp_path: Path
) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    written = tmp_path / "a-0"
    status = written.stat()
    written.write_text("\n" * 7 + "x" * (status.st_size - 7))
    os.utime(written, ns=(status.st_atime_ns, status.st_mtime_ns))
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b")
    trace = applications.trace("second", direction="backward", record="write#0#0")
    assert set(listed(trace)) == {"second#0", "second#1"}
    assert not trace.exact


def test_pages_go_through_files(applications: Applications, colours: Path, tmp_path: Path) -> None:
    applications.copy("first", 100, colours, tmp_path / "a")
    applications.copy("second", 200, tmp_path / "a-0", tmp_path / "b")
    found: list[str] = []
    cursor = None
    while True:
        page = applications.trace("second", direction="backward", record="write#0#3", limit=1, cursor=cursor)
        found += listed(page)["first#0"]
        cursor = page.next
        if cursor is None:
            break
    assert found == ["yellow"]


class Piece:
    """A piece of a file in a partition of `Copies`: which of its rows, and whether `row` tells so."""

    def __init__(self, path: Path, count: int, start: int = 0, row: int | None = None) -> None:
        self.path, self.count, self.start, self.row = path, count, start, row


class Copies(Applications):
    """Applications that copy records one by one; partitions are made of pieces of files."""

    def copied(
        self,
        application_id: str,
        began: int,
        formats: tuple[str, str],
        read: list[list[Piece]],
        written: list[list[Piece]],
    ) -> None:
        def told(event_type: str, **fields: Any) -> bytes:
            return event(event_type, application_id=application_id, time=began, **fields)

        events = [told(contract.APPLICATION_STARTED, name=application_id)]
        for number, kind, relation, splits in (
            (0, "source", contract.SOURCE, read),
            (1, "sink", contract.IDENTITY, written),
        ):
            dataset = {"namespace": "file", "name": "x", "format": formats[number]}
            events.append(
                told(
                    contract.NODE_REGISTERED,
                    node=number,
                    name=kind,
                    kind=kind,
                    relation=relation,
                    exact=True,
                    dataset=dataset,
                )
            )
            events.append(
                told(contract.PARTITIONS, node=number, partitions=list(map(self.parts, *_numbered(splits))))
            )
        events.append(told(contract.LINK, source=0, target=1, port=0))
        for split, pieces in enumerate(read):
            count = sum(piece.count for piece in pieces)
            assert count == sum(each.count for each in written[split])
            events.append(
                told(
                    contract.RUN_COMMITTED,
                    run=began + split,
                    split=split,
                    input=0,
                    nodes=[1],
                    inputs=count,
                    outputs=count,
                )
            )
        self.store.write_events(event_batch("topic/0", messages(*events, first=self._written)))
        self._written += len(events)

    @staticmethod
    def parts(split: int, pieces: list[Piece]) -> dict[str, Any]:
        parts, first = [], 0
        for piece in pieces:
            row = {} if piece.row is None else {"row": piece.row}
            parts.append({"start": piece.start, "first": first, **described(piece.path), **row})
            first += piece.count
        return {"split": split, "parts": parts}

    def reached(self, application_id: str, direction: Any, record: str) -> list[str]:
        """node#split#offset of all other records on the way."""
        trace = self.trace(application_id, direction=direction, record=record)
        assert trace.exact
        return [
            f"{node.node_id}#{record.partition}#{record.offset}"
            for node in trace.nodes[1:]
            for record in node.records
        ]


def _numbered(splits: list[list[Piece]]) -> tuple[range, list[list[Piece]]]:
    return range(len(splits)), splits


def lines(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
def test_rows_with_numbers_lead_from_one_application_to_the_next_whatever_the_pieces(
    format: str, tmp_path: Path
) -> None:
    copies = Copies(tmp_path / "home")
    a, b, c, source = (lines(tmp_path / name, name * 9) for name in ("a", "b", "c", "in"))
    copies.copied(
        "first",
        100,
        (format, format),
        [[Piece(source, 7, row=0)], [Piece(source, 2, row=7)]],
        [[Piece(a, 3, row=0), Piece(b, 4, row=0)], [Piece(c, 2, row=0)]],
    )
    out = lines(tmp_path / "out", "out")
    copies.copied(
        "second",
        200,
        (format, format),
        [[Piece(c, 1, row=1), Piece(b, 2, row=2)], [Piece(a, 2, row=1)]],
        [[Piece(out, 3, row=0)], [Piece(out, 2, row=0)]],
    )
    ways = {(0, 0): (1, 1), (0, 1): (0, 5), (0, 2): (0, 6), (1, 0): (0, 1), (1, 1): (0, 2)}
    for (split, at), (of, there) in ways.items():
        assert copies.reached("second", "backward", f"write#{split}#{at}") == [
            f"second#0#{split}#{at}",
            f"first#1#{of}#{there}",
            f"first#0#{of}#{there}",
        ]
    for of, there in [(0, at) for at in range(7)] + [(1, 0), (1, 1)]:
        expected = [f"first#1#{of}#{there}"]
        for (split, at), place in ways.items():
            if place == (of, there):
                expected += [f"second#0#{split}#{at}", f"second#1#{split}#{at}"]
        assert copies.reached("first", "forward", f"read#{of}#{there}") == expected
    trace = copies.trace("second", direction="backward", record="write#0#1")
    assert ("first#1#write#0#5", "second#0#read#0#1") in {
        (flow.hash_in, flow.hash_out) for flow in trace.flows
    }


def test_rows_of_a_file_may_be_several_pieces_of_what_a_task_wrote(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "home")
    a, b, source = (lines(tmp_path / name, name * 9) for name in ("a", "b", "in"))
    copies.copied(
        "first",
        100,
        ("parquet", "iceberg"),
        [[Piece(source, 8, row=0)]],
        [[Piece(a, 2, row=0), Piece(b, 1, row=0), Piece(a, 3, row=2), Piece(b, 2, row=1)]],
    )
    out = lines(tmp_path / "out", "out")
    copies.copied(
        "second",
        200,
        ("iceberg", "parquet"),
        [[Piece(b, 3, row=0)], [Piece(a, 5, row=0)]],
        [[Piece(out, 3, row=0)], [Piece(out, 5, row=0)]],
    )
    ways = dict(
        zip(((0, 0), (0, 1), (0, 2), *((1, at) for at in range(5))), (2, 6, 7, 0, 1, 3, 4, 5), strict=True)
    )
    for (split, at), there in ways.items():
        assert copies.reached("second", "backward", f"write#{split}#{at}") == [
            f"second#0#{split}#{at}",
            f"first#1#0#{there}",
            f"first#0#0#{there}",
        ]
        assert copies.reached("first", "forward", f"read#0#{there}") == [
            f"first#1#0#{there}",
            f"second#0#{split}#{at}",
            f"second#1#{split}#{at}",
        ]


def test_lines_that_are_no_records_do_not_count_between_applications(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "home")
    rows = ["h", "1", "", "2", " ", "3", "4"]
    source, a = lines(tmp_path / "in", *rows), lines(tmp_path / "a", *rows)
    copies.copied("first", 100, ("csv+header",) * 2, [[Piece(source, 4)]], [[Piece(a, 4, row=0)]])
    out = lines(tmp_path / "out", "x")
    begin = a.read_text().index("2")
    copies.copied(
        "second",
        200,
        ("csv+header",) * 2,
        [[Piece(a, 2)], [Piece(a, 2, start=begin)]],
        [[Piece(out, 2)], [Piece(out, 2)]],
    )
    for split, at, there in ((0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)):
        assert copies.reached("second", "backward", f"write#{split}#{at}") == [
            f"second#0#{split}#{at}",
            f"first#1#0#{there}",
            f"first#0#0#{there}",
        ]


def test_lines_of_another_format_lead_on_where_each_is_a_record(tmp_path: Path) -> None:
    copies = Copies(tmp_path / "home")
    source = lines(tmp_path / "in", "h", "1", "2")
    whole, holed = lines(tmp_path / "whole", "h", "1", "2"), lines(tmp_path / "holed", "h", "", "2")
    for name, began, written in (("first", 100, whole), ("holes", 110, holed)):
        copies.copied(name, began, ("text", "text"), [[Piece(source, 3)]], [[Piece(written, 3)]])
    out = lines(tmp_path / "out", "x")
    copies.copied("second", 200, ("csv+header", "json"), [[Piece(whole, 2)]], [[Piece(out, 2)]])
    copies.copied("other", 210, ("csv+header", "json"), [[Piece(holed, 1)]], [[Piece(out, 1)]])
    assert copies.reached("second", "backward", "write#0#1") == ["second#0#0#1", "first#1#0#2", "first#0#0#2"]
    trace = copies.trace("other", direction="backward", record="write#0#0")
    assert {node.node_id for node in trace.nodes} == {"other#0", "other#1"}
    assert not trace.exact
