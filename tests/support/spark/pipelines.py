"""Many small pipelines in one application: each is saved, and traced by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.spark import naive_interpreter as naive
from tests.support.spark.application import Application, check_against, run_application
from tests.support.spark.naive_interpreter import Data

AWKWARD = ["plain", "a#b", "c,d", 'e"f', "it's", "ünïcödé", "", " ", "read#0#0", "\\n"]

#: (in Spark, naively); both take (left, right), datasets of (key, int).
Pipeline = tuple[Callable[..., Any], Callable[[Data, Data], Data]]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def pair(line: str) -> tuple[str, int]:
    key, _, value = line.rpartition("|")
    return key, int(value)


def show(record: Any) -> str:
    return repr(record)


@dataclass(frozen=True)
class Traced:
    """What became of the pipelines, whose outputs are folders of their names' numbers."""

    pipelines: Mapping[str, Pipeline]
    folder: Path
    application: Application
    failures: Mapping[str, Exception]

    def check(self, name: str) -> None:
        """Both ways, every trace of a pipeline equals the naive interpreter's."""
        if name in self.failures:
            raise self.failures[name]
        paths = [self.folder / "left.txt", self.folder / "right.txt"]
        data = [naive.map_(naive.text_file(path), pair) for path in paths]
        expected = Counter((show(value), sources) for value, sources in self.pipelines[name][1](*data))
        files = {file for _, sources in expected for file, _ in sources}
        output = self.folder / f"out-{list(self.pipelines).index(name)}"
        check_against(self.application, output, [path for path in paths if path.name in files], expected)


def trace_pipelines(kafka: Any, folder: Path, pipelines: Mapping[str, Pipeline], **conf: str) -> Traced:
    left = write(folder / "left.txt", [f"{AWKWARD[i % 7]}|{i % 11}" for i in range(21)])
    right = write(folder / "right.txt", [f"{AWKWARD[i % 10]}|{i}" for i in range(3, 12)])
    failures: dict[str, Exception] = {}

    def job(context: Any) -> None:
        context.setCheckpointDir(str(folder / "checkpoints"))
        # 7 splits of 3 lines: some of them hold nothing after a filter.
        lines = [context.textFile(str(path), splits) for path, splits in ((left, 7), (right, 2))]
        datasets = [text.filter(lambda line: line != "").map(pair) for text in lines]
        datasets[0].lines = lines[0]
        for at, (name, (in_spark, _)) in enumerate(pipelines.items()):
            try:
                in_spark(*datasets).map(show).saveAsTextFile(str(folder / f"out-{at}"))
            except Exception as error:  # noqa: BLE001 - the test of this pipeline raises it
                failures[name] = error

    _, application = run_application(kafka.bootstrap_servers, folder / "store", job, **conf)
    assert application is not None
    return Traced(pipelines, folder, application, failures)
