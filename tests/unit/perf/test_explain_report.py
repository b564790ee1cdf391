"""What perf.explain makes of measured values, and how it keeps explanations apart in one run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from perf.explain import report
from perf.explain.asking import Asked, Explained, Start
from perf.explain.cases import NAMES, workloads
from perf.explain.enough import Enough
from perf.explain.proof import Proof
from perf.explain.report import EnoughTested, Measured
from perf.explain.stores import Stored
from perf.explain.sufficiency import Sufficient


def measured(name: str, sizes: list[int], *, verified: int, ms: float = 10.0, edges: int = 1_000) -> Measured:
    start = Start(path=Path("out/part-00000"), row=0, text="('n7', 'n0')")
    asked = Asked(
        explained=[
            Explained(
                start=start, rows=(), total=size, of=1_000, kind="concise", exact=True, turns=3, first_ms=ms
            )
            for size in sizes
        ],
        new_ms=[20 * ms],
        cold_ms=[10 * ms],
        warm_ms=[ms for _ in sizes],
        plain=[900],
    )
    stored = Stored(
        folder=Path(), workload=name, application_id="app", source=Path(), output=Path(),
        job_s=6.0, stored_s=6.0, flows_bytes=10**6,
    )  # fmt: skip
    proof = Proof(tested=len(sizes), verified=verified, rows=sum(sizes))
    return Measured(workload=workloads(edges, 6)[name], stored=stored, asked=asked, proof=proof, proof_s=2.0)


def test_figures_stand_beside_what_was_asked_for_and_the_papers() -> None:
    page = report.page({"machine": "two"}, [measured("components", [3, 4, 9], verified=3)])
    assert (
        "| Connected components, 1,000 edges, 6 turns | 1,000 | 900 (of 1) | 4, **met**: 3 to 5 | 9 | 9 |"
        in page
    )
    assert "0.4000 %, **met**: <= 0.01" in page
    assert "3 of 3, **met**: all" in page
    assert "100.0 / 100.0, **met**: <= 150" in page
    assert "| 3 to 5, at most the diameter | median 4, largest 9 |" in page
    assert "10,000,000 edges" not in page
    large = measured("components", [3], verified=1, edges=1_000_000)
    assert "10,000,000 edges, at these rates: 2 minutes and 0.0 GB" in report.page({}, [large])


def test_rows_that_were_added_stand_apart() -> None:
    result = measured("unique-counts", [1], verified=0)
    added = [
        Sufficient(is_verified=True, rows=rows, added=rows - 1, runs=3, seconds=30.0) for rows in (4, 5, 9)
    ]
    page = report.page({}, [replace(result, sufficient=added)])
    assert "| 3 of 3 | 5, 9 | 0.9000 % | 3 | 30 |" in page
    assert "With rows that" not in report.page({}, [result])


def test_rows_that_a_session_added_stand_with_how_they_were_tested() -> None:
    start = Start(path=Path("out/part-00000"), row=0, text="p1,a2")
    row = (Path("pairs.txt"), "p1\ta2\t0\t9")
    answers = [
        Enough(
            start=start, rows=(row,) * total, demanded=4, added=total - 4, runs=runs, seconds=seconds,
            why_not="", checked_s=checked_s,
        )
        for total, runs, seconds, checked_s in ((4, 1, 0.1, 1.5), (5, 2, 0.2, None), (9, 12, 0.4, None))
    ]  # fmt: skip
    result = measured("matching", [1, 1, 1], verified=3)
    tested = EnoughTested(answers=answers, proof=Proof(tested=3, verified=2, rows=18))
    page = report.page({}, [replace(result, enough=tested)])
    assert "| 2 of 3, missed: all | 5 | 9 | 9 | 4 | 0.9000 %, **met**: <= 1 | 2 | 12, missed: <= 10 |" in page
    assert "| 0.20, **met**: <= 1 | 0.40 | 1.50 (of 1) |" in page
    assert "median 2, most 12, with the list of who proposes" in page


def test_what_is_missed_is_said() -> None:
    results = [measured("components", [7], verified=0, ms=30), measured("unique-counts", [1], verified=0)]
    page = report.page({}, results)
    assert "7, missed: 3 to 5" in page
    assert "0 of 1, missed: all" in page
    assert "300.0 / 300.0, missed: <= 150" in page
    assert "30.0 / 30.0, missed: <= 20" in page
    assert "0 of 1: needs rows of other documents, too" in page


@pytest.mark.parametrize(
    ("name", "row", "marked", "output", "marked_output"),
    [
        ("components", "n5\tn0", "x3.n5\tx3.n0", "('n5', 'n0')", "('x3.n5', 'x3.n0')"),
        ("customers", "r1,r2,same phone 7", "x3.r1,x3.r2,same phone 7", "r2,r1", "x3.r2,x3.r1"),
        (
            "customers",
            "r1,Ann Lee,,,Am Kanal 7,Wien",
            "x3.r1,Ann Lee,,,Am Kanal 7,Wien",
            "r2,r1",
            "x3.r2,x3.r1",
        ),
        ("matching", "p1\ta2\t0\t77", "x3.p1\tx3.a2\t0\t77", "p1,a2", "x3.p1,x3.a2"),
        ("unique-words", "d1\tw1 w2", "x3.d1\tx3.w1 x3.w2", "w1,d1", "x3.w1,x3.d1"),
        ("unique-counts", "d1\tw1 w2", "x3.d1\tx3.w1 x3.w2", "d1,2", "x3.d1,2"),
    ],
)
def test_a_mark_stands_before_each_name(
    name: str, row: str, marked: str, output: str, marked_output: str
) -> None:
    workload = workloads(1_000, 6)[name]
    assert workload.mark("x3.", row) == marked
    assert workload.mark_output("x3.", output) == marked_output


def test_no_input_of_a_try_is_large() -> None:
    assert all(0 < workload.rows <= 50 for workload in workloads(40, 6, 50).values())
    assert set(workloads(40, 6)) == set(NAMES)
