"""Which rows the functions of a window take their values from."""

from __future__ import annotations

from typing import Any

import pytest

from spark_agent.sql.rewrite.window_frames import Frame, WindowFunction, frame_of, other_rows


def function(
    kind: str, start: Any = None, end: Any = 0, unit: str | None = "rows", **more: Any
) -> WindowFunction:
    return WindowFunction.parse(
        {
            "kind": kind,
            "name": kind,
            "unit": unit,
            "from": start,
            "to": end,
            "offset": None,
            "ignores_nulls": False,
            **more,
        }
    )


def test_a_rank_takes_nothing_of_other_rows() -> None:
    rows = other_rows([function("rank")])
    assert (rows.count, rows.frames, rows.is_all, rows.reason) == (0, [], False, "")
    assert frame_of([function("rank")]) is None


def test_offsets_and_narrow_frames_are_single_rows() -> None:
    rows = other_rows([function("offset", -2, -2, offset=-2), function("aggregate", -1, 1)])
    assert rows.distances == {-2, -1, 1}
    assert rows.frames == []


def test_more_single_rows_than_are_cheap_become_frames() -> None:
    functions = [function("offset", -n, -n, offset=-n) for n in range(1, 7)]
    rows = other_rows(functions, most=4)
    assert rows.distances == {-1, -2, -3, -4}
    assert rows.frames == [Frame(4, True, -5, -5), Frame(5, True, -6, -6)]
    assert other_rows(functions, most=6).frames == []


@pytest.mark.parametrize(
    ("start", "end", "unit", "frame"),
    [
        (None, 0, "rows", Frame(0, True, None, 0)),
        (3, None, "rows", Frame(0, True, 3, None)),
        (-100, 100, "rows", Frame(0, True, -100, 100)),
        (None, 0, "range", Frame(0, False, None, 0)),
        ("-3", "INTERVAL '1' MONTH", "range", Frame(0, False, 0, 0)),
        (0, None, "range", Frame(0, False, 0, None)),
    ],
)
def test_wide_frames_and_ranges_are_followed_by_their_ends(
    start: Any, end: Any, unit: str, frame: Frame
) -> None:
    rows = other_rows([function("aggregate", start, end, unit), function("aggregate", start, end, unit)])
    assert rows.frames == [frame]
    assert (rows.count, rows.is_all, rows.reason) == (0, False, "")


def test_what_sees_all_of_a_partition_is_made_of_all_of_it() -> None:
    for unit in ("rows", "range"):
        assert other_rows([function("rank"), function("aggregate", None, None, unit)]).is_all


def test_functions_that_pick_the_same_row_pick_it_once() -> None:
    picks = [
        function("pick", None, 0),
        function("pick", None, 0),
        function("pick", None, 0, ignores_nulls=True),
    ]
    assert other_rows(picks).picks == [0, 2]
    assert other_rows([function("pick", None, None)]).is_all is False


def test_what_is_not_known_is_said() -> None:
    assert "other" in other_rows([function("other")]).reason
    assert other_rows([function("offset", unit=None)]).reason
    assert other_rows([function("aggregate", "n", 0)]).reason


def test_the_frame_of_a_node_is_that_of_all_functions_with_one() -> None:
    one, other = function("aggregate", -2, 0), function("aggregate", None, 0, "range")
    assert frame_of([function("rank"), one, one]) == {"unit": "rows", "from": -2, "to": 0}
    assert frame_of([one, other]) is None
