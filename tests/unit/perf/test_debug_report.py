"""The page of perf.debug, of measured values."""

from __future__ import annotations

from pathlib import Path

from perf.capture.cases import CASES, PIGMIX
from perf.capture.report import Run
from perf.debug import report
from perf.debug.cases import RDD, SQL, TRACED
from perf.debug.traces import Stored, Traced, stored_bytes
from perf.trace.stores import Store


def run(mode: str, cpu_s: float, *, sha: str = "a", sent: int = 0) -> Run:
    return Run(
        case="pigmix-L3", megabytes=2.0, round=1, mode=mode, cpu_s=cpu_s, workers_s=1.0, wall_s=cpu_s,
        kafka_cpu_s=0.1, load=0.5, input_bytes=1_000, output_rows=3, output_sha256=sha, sent_bytes=sent,
        blocks=2, dropped=0,
    )  # fmt: skip


def test_every_case_is_one_of_capture() -> None:
    assert {f"{prefix}{query}" for prefix in (RDD, SQL) for query in PIGMIX} | set(TRACED) <= set(CASES)


def test_a_ratio_stands_beside_what_was_asked_for() -> None:
    runs = [run("stock", 2.0), run("lineage", 2.4, sent=70), run("nolin", 2.0)]
    page = report.page({"machine": "two cores"}, runs, [], [], [])
    assert "| PigMix L3 | 1.20 (1.20-1.20), **met**: <= 1.25 | 1.20 (1.20-1.20) |" in page
    assert "7.0 %" in page
    assert "equal, byte for byte" in page
    assert "- machine: two cores" in page
    missed = report.page({}, [run("lineage", 3.0, sha="b"), run("nolin", 2.0)], ["PigMix L5, nolin"], [], [])
    assert "1.50 (1.50-1.50), missed: <= 1.25" in missed
    assert "2 different outputs" in missed
    assert "- PigMix L5, nolin" in missed


def test_stored_bytes_are_a_share_of_what_was_read(tmp_path: Path) -> None:
    for name, size in (("in", 100), ("out/part-00000", 50), ("flows/a/b", 20), ("flows/c", 5)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    size = stored_bytes(Store(tmp_path, "pigmix-L6", 0.1, "app-1", (tmp_path / "in",), tmp_path / "out"))
    assert (size.input_bytes, size.output_bytes, size.store_bytes) == (100, 50, 25)
    page = report.page({}, [], [], [size, Stored(**{**_fields(size), "output_bytes": 0})], [])
    assert "| PigMix L6, 0.1 MB | 25 | 25.0 %, **met**: <= 0.3 | 50.0 % |" in page
    assert "| PigMix L6, 0.1 MB | 25 | 25.0 %, **met**: <= 0.3 | - |" in page


def _fields(size: Stored) -> dict[str, object]:
    return {name: getattr(size, name) for name in Stored.__slots__}


def test_traces_are_grouped_by_how_many_rows_they_found() -> None:
    traces = [
        Traced(case="pigmix-L7", sources=sources, first_ms=ms, again_ms=ms / 2, exact=sources < 100)
        for sources, ms in ((1, 2.0), (3, 4.0), (120, 40.0))
    ]
    page = report.page({}, [], [], [], traces)
    assert "| PigMix L7 | 1 to 3 | 2 | 3.0 / 4.0 | 1.5 / 2.0 | yes |" in page
    assert "| PigMix L7 | 120 | 1 | 40.0 / 40.0 | 20.0 / 20.0 | no |" in page
