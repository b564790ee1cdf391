"""Measures replays in a running session: the time from an output row to the same row, made of its rows alone.

    python -m perf.session_replays [--megabytes 500] [--outputs 40] [--together 10 100] [--out perf/results]

This process is the session: a WordCount with lineage. Kafka, `lineage consume` and `lineage serve` of its own
run beside it. Output rows are chosen by a seed among words of at most `--most` lines, which are almost all.
Timed are `trace(FILE).row(ROW)`, and then `.replay().collect()`, which asks for the row set. Each must give
the row again. The first five are not counted. `--together` replays so many rows at once, chosen from all of
the outputs. Writes session-replays-DATE.json and .md; of another input than `wordcount`, its name stands
in theirs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from operator import add
from pathlib import Path
from typing import Any

from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.cases import CASES
from perf.capture.drivers import ROOT
from perf.ingest.members import Service
from perf.ingest.topics import Topics
from perf.tables import publish, table

SEED = 20_261_126
TARGET_S = 0.2
_WARM_UPS = 5


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder = options.folder.absolute() / "run-session-replays"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as cleanup:
        figures = measured(folder, options, cleanup)
    shutil.rmtree(folder)
    name = "session-replays" if options.input == "wordcount" else f"session-replays-{options.input}"
    publish(options.out, name, figures, page(figures))
    return 0


def measured(folder: Path, options: argparse.Namespace, cleanup: ExitStack) -> dict[str, Any]:
    about = about_machine("perf.session_replays", options.note)
    broker = Broker(folder / "stack", options.jars)
    cleanup.callback(broker.stop)
    topics = Topics(broker.bootstrap_servers, "session-replays")
    topics.create()
    service = Service(topics, folder / "service")
    cleanup.callback(service.consume(0).stop)
    api = service.serve()
    cleanup.callback(api.process.stop)
    (source,) = CASES[options.input].inputs
    text = source.file(options.folder.absolute() / "data", options.megabytes, SEED)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    context = _context(topics, api.url, options)
    cleanup.callback(context.stop)
    run_s = seconds(lambda: word_count(context, text, folder / "out", options.partitions))
    outputs = Outputs(folder / "out")
    replays = [_replay(path, row) for path, row in outputs.rare(options)]
    return {
        **about,
        "input": options.input,
        "megabytes": options.megabytes,
        "partitions": options.partitions,
        "output rows": len(outputs.rows),
        "the run, s": round(run_s, 2),
        "replays": replays[_WARM_UPS:],
        "together": [_replay_together(outputs.some(count)) for count in options.together],
    }


def _context(topics: Topics, api: str, options: argparse.Namespace) -> Any:
    from pyspark import SparkConf, SparkContext

    conf = {
        "spark.master": f"local[{options.cores}]",
        "spark.app.name": "session replays",
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.lineage.enabled": "true",
        "spark.lineage.kafka.bootstrap.servers": topics.bootstrap_servers,
        "spark.lineage.topic.node": topics.node,
        "spark.lineage.topic.flow": topics.flow,
        "spark.lineage.delivery.timeout": "60",
        "spark.lineage.api": api,
    }
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())))
    context.setLogLevel("ERROR")
    return context


def word_count(context: Any, text: Path, output: Path, partitions: int) -> None:
    words = context.textFile(str(text), partitions).flatMap(lambda line: line.split(" "))
    words.map(lambda word: (word, 1)).reduceByKey(add).saveAsTextFile(str(output))


class Outputs:
    """The rows of the part files: (file, row) in `rows`, and the text of each."""

    def __init__(self, folder: Path) -> None:
        self.texts = {
            (part, row): line
            for part in sorted(folder.glob("part-*"))
            for row, line in enumerate(part.read_text().splitlines())
        }
        self.rows = list(self.texts)

    def rare(self, options: argparse.Namespace) -> list[tuple[Path, int]]:
        """Of words that are in at most so many lines."""
        rare = [row for row, line in self.texts.items() if _count_of(line) <= options.most]
        return random.Random(SEED).sample(rare, min(options.outputs + _WARM_UPS, len(rare)))

    def some(self, count: int) -> list[tuple[Path, int]]:
        return random.Random(SEED).sample(self.rows, min(count, len(self.rows)))


def _count_of(line: str) -> int:
    return int(line.rpartition(" ")[2].rstrip(")"))


def _replay(path: Path, row: int) -> dict[str, Any]:
    from spark_agent import trace

    text = path.read_text().splitlines()[row]
    began = time.perf_counter()
    records = trace(path, wait_s=3_600).row(row)
    asked = time.perf_counter()
    again = records.replay()
    answered = time.perf_counter()
    outputs = again.collect()
    ended = time.perf_counter()
    if text not in map(str, outputs):
        raise SystemExit(f"perf.session_replays: {path.name}:{row + 1} did not come out again: {text}")
    figures = {
        "trace_s": asked - began,
        "ask_s": answered - asked,
        "run_s": ended - answered,
        "replay_s": ended - asked,
    }
    print({"text": text, "rows": again.report.rows, **figures}, file=sys.stderr, flush=True)
    return {"rows": again.report.rows, **{name: round(value, 4) for name, value in figures.items()}}


def _replay_together(chosen: list[tuple[Path, int]]) -> dict[str, Any]:
    """Of several output rows at once: the time, and how many came out again."""
    from spark_agent import trace

    of_file = {path: trace(path, wait_s=3_600) for path in dict(chosen)}
    records = trace.many([of_file[path].row(row) for path, row in chosen])  # type: ignore[attr-defined] # functions take attributes
    began = time.perf_counter()
    again = records.replay()
    answered = time.perf_counter()
    outputs = again.collect()
    ended = time.perf_counter()
    verdicts = Counter(output.verdict or "unknown" for output in again.report.outputs)
    figures = {
        "outputs": len(chosen),
        "rows": again.report.rows,
        "of": again.report.of,
        "outputs of the replay": len(outputs),
        "verdicts": dict(verdicts),
        "ask_s": round(answered - began, 3),
        "replay_s": round(ended - began, 3),
    }
    print(figures, file=sys.stderr, flush=True)
    return figures


def seconds(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def page(figures: dict[str, Any]) -> str:
    replays = figures["replays"]
    run_s, of = figures["the run, s"], [replay["rows"] for replay in replays]
    names = {
        "trace_s": "`trace(FILE).row(ROW)`",
        "ask_s": "`.replay()`: the row set, and the RDD",
        "run_s": "`.collect()`",
        "replay_s": "`.replay().collect()`",
    }
    rows = [
        [title, *(f"{value:.3f}" for value in spread([replay[name] for replay in replays]))]
        for name, title in names.items()
    ]
    median = statistics.median(replay["replay_s"] for replay in replays)
    about = [[key, str(value)] for key, value in figures.items() if isinstance(value, str | int | float)]
    return f"""# Replays in a running session

{table(["", ""], about)}

A WordCount of {figures["megabytes"]:g} MB, and {len(replays)} of its output rows.
Each was made again of its {min(of)} to {max(of)} input rows alone, and came out again.

{table(["seconds", "median", "90th percentile", "longest"], rows)}

The median of a replay is {median / run_s:.1%} of the time of the run. Target: at most {TARGET_S:g} s.
{_together(figures)}"""


def _together(figures: dict[str, Any]) -> str:
    if not figures["together"]:
        return ""
    rows = [
        [
            f"{replay['outputs']:,}",
            f"{replay['rows']:,}",
            f"{replay['rows'] / replay['of']:.2%}" if replay["of"] else "-",
            f"{replay['verdicts'].get('reproduced', 0) / replay['outputs']:.1%}",
            f"{replay['outputs of the replay']:,}",
            f"{replay['replay_s']:.2f}",
            f"{replay['replay_s'] / figures['the run, s']:.1%}",
        ]
        for replay in figures["together"]
    ]
    titles = [
        "output rows",
        "input rows",
        "of all",
        "reproduced",
        "rows of the replay",
        "seconds",
        "of the run",
    ]
    return f"""
## Several rows at once

Chosen at random from all output rows. Target: 10,000 rows in at most 15 % of the time of the run.

{table(titles, rows)}
"""


def spread(values: list[float]) -> tuple[float, float, float]:
    ordered = sorted(values)
    return statistics.median(ordered), ordered[int(0.9 * (len(ordered) - 1))], ordered[-1]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.session_replays", description="What a replay in a session takes."
    )
    parser.add_argument("--megabytes", type=float, default=500.0, help="size of the input (default: 500)")
    parser.add_argument(
        "--input", choices=("wordcount", "newt-wordcount"), default="wordcount", help="the lines"
    )
    parser.add_argument("--outputs", type=int, default=40, help="output rows (default: 40)")
    parser.add_argument(
        "--together", type=int, nargs="*", default=[], metavar="N", help="so many output rows at once, too"
    )
    parser.add_argument("--most", type=int, default=1_000, help="words of at most so many occurrences")
    parser.add_argument("--partitions", type=int, default=30, help="of the input (default: 30)")
    parser.add_argument("--cores", type=int, default=2, help="local[N] (default: 2)")
    parser.add_argument("--note", default="", help="a sentence for the result")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results", help="for the result files")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache" / "perf", help="of inputs and of the run"
    )
    parser.add_argument(
        "--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars", help="Kafka's jars"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
