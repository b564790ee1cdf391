"""Whether the records that were asked for came out again; without Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from spark_agent.client.replay_report import ReplayReport, verified
from spark_agent.driver.replay.rebuilt_rdds import SourceRead
from spark_agent.worker.record_choices import OutputTexts, RowsSeen


def asked(*texts: str | None) -> list[dict[str, Any]]:
    return [{"path": "/out/part-00000", "row": row, "text": text} for row, text in enumerate(texts)]


def seen(texts: list[str | None], *parts: list[str]) -> list[RowsSeen]:
    look = OutputTexts([text for text in texts if text is not None], 1_000)
    return [one for part in parts for one in look(part)]


@pytest.mark.parametrize(
    ("was", "now", "verdicts", "extra"),
    [
        (["a,1"], ["a,1"], ["reproduced"], 0),
        (["a,1"], ["a,2", "b,1"], ["changed"], 1),
        (["a,1"], [], ["no"], 0),
        (["a,1"], ["b,1", "c,1"], ["no"], 2),
        (["a,0.1"], ["a,0.10000000000001"], ["close"], 0),
        (["a,1", "a,1"], ["a,1"], ["reproduced", "no"], 0),
        (["a,1", "a,1"], ["a,1", "a,1", "a,1"], ["reproduced", "reproduced"], 1),
        (
            ["a,1", "b,5", "c,0.3"],
            ["c,0.30000000000000004", "b,6", "a,1"],
            ["reproduced", "changed", "close"],
            0,
        ),
    ],
)
def test_rows_are_compared_as_multisets(was: Any, now: Any, verdicts: list[str], extra: int) -> None:
    outputs, more = verified(asked(*was), seen(was, now[::2], now[1::2]))
    assert [output.verdict for output in outputs] == verdicts
    assert more == extra
    assert all(output.now == output.was for output in outputs if output.verdict == "reproduced")


def test_the_verdict_is_that_of_the_worst() -> None:
    class Dataset:
        def mapPartitions(self, look: OutputTexts) -> Dataset:
            self.seen = list(look(["a,1", "b,2"]))
            return self

        def collect(self) -> list[RowsSeen]:
            return self.seen

    report = ReplayReport("only", 2, 7, (), False, (), asked("a,1", "b,1"), Dataset())
    assert report.verdict == "changed"
    assert [str(output) for output in report.outputs] == [
        "reproduced  /out/part-00000:1  a,1",
        "changed     /out/part-00000:2  b,1 -> b,2 (the same key: b)",
    ]


def test_what_has_no_text_cannot_be_compared() -> None:
    for texts, dataset in ((("a,1", None), object()), (("a,1",), None), ((), object())):
        report = ReplayReport("only", 1, None, (), False, (), asked(*texts), dataset)
        assert (report.verdict, report.outputs, report.extra) == (None, (), None)


def test_it_says_what_was_read() -> None:
    sources = (SourceRead(0, "textFile", "literal"), SourceRead(4, "rdd", "whole", "it was made elsewhere"))
    report = ReplayReport("only", 2, 7, sources, False, ("a note",))
    assert str(report).splitlines() == [
        "replay of 2 of 7 rows of the inputs",
        "rdd is read whole: it was made elsewhere",
        "a note",
    ]
    assert str(ReplayReport("without", 1, 7, (), False, ())) == "replay of all but 1 of 7 rows of the inputs"
    assert str(ReplayReport("all", 0, None, (), False, ())) == "replay of all rows of the inputs"
    assert Counter(source.way for source in sources) == {"literal": 1, "whole": 1}


@pytest.mark.parametrize(
    ("was", "verdict"), [("a,1", "reproduced"), ("a,2", "changed"), ("z", None), ("7", None)]
)
def test_where_not_all_rows_were_compared_no_row_is_said_to_be_gone(was: str, verdict: str | None) -> None:
    seen = list(OutputTexts([was], 2)(["a,1", "8", "c", "d"]))
    (output,), _ = verified(asked(was), seen)
    assert output.verdict == verdict
    assert verdict or "only the first 1,000 other rows" in str(output)
