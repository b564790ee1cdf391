from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lineage_service.lineage import Remark, SourceRow
from lineage_service.tracing.query.remarks import remarks_on


def rows(texts: Sequence[str] = (), columns: Sequence[dict[str, Any]] = ()) -> list[tuple[str, SourceRow]]:
    every: list[tuple[str | None, dict[str, Any] | None]] = [
        *((text, None) for text in texts),
        *((None, values) for values in columns),
    ]
    return [
        (
            f"read#0#{at}",
            SourceRow(path="/d/k=v/w.csv", row=at, line=at + 1, text=text, warning=None, columns=values),
        )
        for at, (text, values) in enumerate(every)
    ]


def winds(count: int, *more: float | None) -> list[dict[str, Any]]:
    calm = [{"airport": "EWR", "wind": at % 43} for at in range(count)]
    return [*calm, *({"airport": "EWR", "wind": value} for value in more)]


def told(remarks: Sequence[Remark]) -> list[tuple[str, str, float]]:
    return [(remark.record_id, remark.column, remark.value) for remark in remarks]


def test_one_reading_of_1048_among_those_below_43_stands_out() -> None:
    (remark,) = remarks_on(rows(columns=winds(600, 1048.36)), {})
    assert remark == Remark(
        record_id="read#0#600",
        path="/d/k=v/w.csv",
        row=600,
        line=601,
        column="wind",
        value=1048.36,
        low=0.0,
        high=42.0,
        text="k=v/w.csv:601: wind 1,048.36, the others 0 to 42",
    )


def test_rows_of_text_are_split_where_most_of_them_are() -> None:
    texts = [f"EWR,2013,2,{at % 28},{at % 43}" for at in range(600)]
    remarks = remarks_on(rows([*texts, "EWR,2013,2,12,1048.36", "EWR,2013,2,3,NA"]), {})
    assert told(remarks) == [("read#0#600", "column 5", 1048.36)]


def test_several_stand_out_each_once_and_the_farthest_first() -> None:
    both = [{"a": at % 7, "b": at % 9} for at in range(50)]
    both += [{"a": 900, "b": 5000}, {"a": 1048, "b": 3}]
    assert told(remarks_on(rows(columns=both), {})) == [
        ("read#0#50", "b", 5000.0),
        ("read#0#51", "a", 1048.0),
    ]


def test_what_is_common_constant_few_or_no_number_does_not_stand_out() -> None:
    assert remarks_on(rows(columns=winds(600)), {}) == ()
    assert remarks_on(rows(columns=winds(3, 1048)), {}) == ()
    assert remarks_on(rows(columns=[{"n": 1}] * 50 + [{"n": 0}]), {}) == ()
    assert remarks_on(rows(columns=winds(600, *[900.0 + at for at in range(9)])), {}) == ()
    assert remarks_on(rows([f"word{at}" for at in range(50)]), {}) == ()
    assert remarks_on(rows(columns=[{"zip": f"{at}"} for at in (*range(20), 99999)]), {"zip": "string"}) == ()
    assert remarks_on([], {}) == ()


def test_a_tail_is_no_outlier_though_its_score_is_high() -> None:
    """A lognormal column has rows of a high score, and no gap before them."""
    tail = [{"n": 1.3**at} for at in range(40)]
    assert remarks_on(rows(columns=tail), {}) == ()


def test_numbers_are_judged_in_a_column_that_is_of_texts_for_its_words_for_nothing() -> None:
    values: list[dict[str, Any]] = [{"wind": "NA" if at % 10 == 0 else f"{at % 43}.5"} for at in range(100)]
    (remark,) = remarks_on(rows(columns=[*values, {"wind": "1048.36"}, {"wind": "-"}]), {"wind": "string"})
    assert (remark.row, remark.value, remark.column) == (100, 1048.36, "wind")
    assert remark.text == (
        "k=v/w.csv:101: wind 1,048.36, the others 0.5 to 42.5 "
        "(numbers of a column of texts; NA in 10 and - in 1 rows left out)"
    )


def test_a_column_of_texts_with_other_words_or_codes_is_not_judged() -> None:
    for other in ("word", "007", "1e999999", "0x10", "1_000"):
        values = [{"code": "NA"}, *({"code": f"{at % 9}"} for at in range(40)), {"code": "9999"}]
        assert remarks_on(rows(columns=[*values, {"code": other}]), {"code": "string"}) == ()
    nearly_none = [*({"n": "NA"} for _ in range(40)), *({"n": f"{at}"} for at in range(20)), {"n": "9999"}]
    assert remarks_on(rows(columns=nearly_none), {"n": "string"}) == ()


def test_exact_texts_of_numbers_count_as_numbers() -> None:
    values: list[dict[str, Any]] = [{"n": f"{at}.50"} for at in range(20)]
    assert told(
        remarks_on(rows(columns=[*values, {"n": "90071992547409930"}, {"n": None}]), {"n": "decimal(20,2)"})
    ) == [("read#0#20", "n", 90071992547409930.0)]
