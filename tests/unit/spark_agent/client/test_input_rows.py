"""Row sets as a replay in a session asks for them, over a service that answers as docs/api.md says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_agent.client.input_rows import input_rows
from spark_agent.client.trace_starts import start_of


def source(
    node: int, positions: dict[int, list[list[int]]], texts: list[Any] | None = None, **more: Any
) -> Any:
    return {
        "node": node,
        "name": "textFile",
        "whole": False,
        "why": None,
        "total": 9,
        "splits": [{"split": split, "positions": ranges} for split, ranges in positions.items()],
        "files": [],
        "listed": [
            {"text": text, "warning": None} if isinstance(text, str) else text for text in texts or ()
        ],
        **more,
    }


class Api:
    """Answers one row set after the other."""

    def __init__(self, *answers: list[Any], **fields: Any) -> None:
        self.answers, self.fields, self.asked = list(answers), fields, list[dict[str, Any]]()

    def get(self, *path: str, **query: Any) -> dict[str, Any]:
        assert path == ("applications", "app", "rowset")
        self.asked.append(query)
        fields = {"asked": [{"text": "x"}], "exact": True, "complete": True, "how": None, **self.fields}
        return {"sources": self.answers.pop(0), **fields}


STARTS = [start_of(node="app#3", partition=0, offset=1)]


def rows(*answers: list[Any], starts: Any = STARTS, **fields: Any) -> Any:
    return input_rows(Api(*answers, **fields), "app", starts)  # type: ignore[arg-type]


def test_texts_stand_by_partition_in_the_order_of_positions() -> None:
    one = rows([source(0, {1: [[2, 2]], 4: [[0, 1]]}, ["a", "b", "c"]), source(1, {})])
    assert one.of_source[0].texts == {"1": ["a", "b"], "4": ["c"]}
    assert one.of_source[1].texts == {}
    assert (one.count, one.of) == (3, 18)


@pytest.mark.parametrize(
    "listed",
    [
        ["a"],
        ["a", {"text": None, "warning": None}],
        ["a", {"text": "b", "warning": "the file changed"}],
        ["\ufeffa", "b"],
        ["a", "b" * 25_001],
    ],
)
def test_a_text_that_is_not_sure_is_none(listed: list[Any]) -> None:
    one = rows([source(0, {0: [[0, 2]]}, listed)])
    assert one.of_source[0].texts is None
    assert one.taken(lambda text: True) is None


def test_a_source_that_is_meant_as_a_whole_has_no_texts() -> None:
    one = rows([source(0, {}, whole=True), source(1, {0: [[0, 1]]}, ["a"])])
    assert one.of_source[0].texts is None
    assert one.count == 1
    assert list(one.of_sources([0, 1]).of_source) == [1]


def test_a_condition_takes_rows_by_their_texts() -> None:
    one = rows([source(0, {0: [[0, 3]], 2: [[5, 1]]}, ["a", "b", "a", "a"])])
    taken = one.taken(lambda text: text == "a")
    assert taken.of_source[0].texts == {"0": ["a", "a"], "2": ["a"]}
    assert taken.of_source[0].source["splits"] == [
        {"split": 0, "positions": [[0, 1], [2, 1]]},
        {"split": 2, "positions": [[5, 1]]},
    ]
    nothing = one.taken(lambda text: False)
    assert nothing.count == 0
    assert nothing.of_sources([0]).of_source == {}


def test_several_answers_are_one() -> None:
    file = {"path": "/in", "rows": [], "size": 1, "modified": 1}
    starts = [start_of(node="app#3", key=key) for key in ("k", "l")]
    one = rows(
        [source(0, {0: [[0, 2]]}, ["a", "b"], files=[file])],
        [source(0, {0: [[1, 1]], 3: [[7, 1]]}, ["b", "z"], files=[file])],
        starts=starts,
    )
    assert one.of_source[0].source["splits"] == [
        {"split": 0, "positions": [[0, 2]]},
        {"split": 3, "positions": [[7, 1]]},
    ]
    assert one.of_source[0].texts == {"0": ["a", "b"], "3": ["z"]}
    assert len(one.asked) == 2
    unsure = rows([source(0, {0: [[0, 1]]}, ["a"])], [source(0, {0: [[1, 1]]}, [])], starts=starts)
    assert unsure.of_source[0].texts is None
    whole = rows([source(0, {0: [[0, 1]]}, ["a"])], [source(0, {}, whole=True)], starts=starts)
    assert whole.of_source[0].source["whole"]


def test_what_is_not_known_is_said_once() -> None:
    one = rows([source(0, {})], exact=False, complete=False, how="Rows may be missing.")
    assert (one.exact, one.complete, one.how) == (False, False, ("Rows may be missing.",))


def test_files_that_changed_are_named(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("a\n")
    stat = path.stat()
    file = {"path": f"file:{path}", "size": stat.st_size, "modified": stat.st_mtime_ns // 1_000_000}
    gone = {"path": str(tmp_path / "gone"), "size": 1, "modified": 1}
    one = rows([source(0, {0: [[0, 1]]}, files=[file, gone]), source(1, {0: [[0, 1]]}, files=[file])])
    assert one.changed_files([0, 1]) == []
    path.write_text("another\n")
    assert one.changed_files([0]) == [file["path"]]


def test_many_starts_are_a_few_queries() -> None:
    api = Api(*([source(0, {})] for _ in range(3)))
    input_rows(api, "app", [start_of(node="app#3", partition=0, offset=at) for at in range(10_000)])  # type: ignore[arg-type]
    assert [len(json.loads(asked["starts"])[0]["offsets"]) for asked in api.asked] == [4_000, 4_000, 2_000]


def test_records_with_more_texts_than_the_api_gives_are_asked_for_in_halves() -> None:
    texts = ["x"] * 10_000
    cut = [source(0, {0: [[0, 10_001]]}, texts)]
    halves = [[source(0, {0: [[first, 6_000]]}, texts[:6_000])] for first in (0, 5_000)]
    starts = [start_of(node="app#3", partition=0, offset=at) for at in range(1_000)]
    one = rows(cut, *halves, starts=starts)
    assert one.of_source[0].texts == {"0": ["x"] * 11_000}
    assert len(one.asked) == 2


def test_few_records_with_more_texts_are_not() -> None:
    cut = [source(0, {0: [[0, 10_001]]}, ["x"] * 10_000)]
    starts = [start_of(node="app#3", partition=0, offset=at) for at in range(499)]
    assert rows(cut, starts=starts).of_source[0].texts is None
    # Nor are others, once some have too many.
    key = start_of(node="app#3", key="k")
    many = [start_of(node="app#3", partition=0, offset=at) for at in range(1_000)]
    assert rows(cut, cut, starts=[key, *many]).count == 10_001


def test_rows_without_texts_are_asked_for_once() -> None:
    starts = [start_of(node="app#3", partition=0, offset=at) for at in range(1_000)]
    assert rows([source(0, {0: [[0, 20_000]]}, [])], starts=starts).count == 20_000
