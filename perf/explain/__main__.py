"""Measures explanations, and tests each by running the job on its rows alone.

    python -m perf.explain [--workloads components customers ...] [--edges 1000000] [--starts 1000] [--quick]

For each workload:
1. its job runs with lineage through a Kafka of its own, and a consumer takes that into a flow store, which is
   kept;
2. rows of its output that a seed chooses are explained over HTTP, by new processes and by one that stays;
3. PySpark without lineage runs the job on the explained rows alone, each explanation apart from the others,
   and the rows must be in its output;
4. where these are known not to be enough, or further rows are demanded, the job runs once more in a session
   that stays, which is asked for rows that are enough, `explain(...).sufficient()`; these are tested as in 3,
   and some are also asked of `lineage explain --sufficient`.

Writes explain-DATE.json and .md, with the figures of the paper beside these. On two cores the default takes
less than half an hour, most of it for the job on a graph.
"""

from __future__ import annotations

import argparse
import platform
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyspark

from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT, JobError
from perf.explain import report
from perf.explain.asking import Asked, asked, starts
from perf.explain.cases import NAMES, Workload, workloads
from perf.explain.enough import enough
from perf.explain.proof import proof
from perf.explain.report import EnoughTested, Measured
from perf.explain.stores import stored
from perf.explain.sufficiency import sufficient
from perf.tables import publish

#: Beside this size of a graph, the first rows of other inputs are enough for a try.
QUICK_ROWS, QUICK_STARTS = 2_000, 20


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.quick:
        options.edges, options.starts = min(options.edges, QUICK_ROWS), min(options.starts, QUICK_STARTS)
        options.cold, options.plain, options.checked = 4, 2, 2
    about = about_machine("perf.explain", options.note) | {
        "Spark": f"{pyspark.__version__}, local[2], driver memory {options.memory}",
        "Python": platform.python_version(),
        "seed": options.seed,
    }
    table = workloads(options.edges, options.turns, QUICK_ROWS if options.quick else None)
    measured = [_measured(table[name], options) for name in options.workloads]
    figures = {"about": about, "workloads": [_figures(result) for result in measured]}
    publish(options.out, "explain", figures, report.page(about, measured))
    return 0


def _measured(workload: Workload, options: argparse.Namespace) -> Measured:
    folder = options.folder.absolute()
    size = f"{workload.rows or 'all'}-{'-'.join((*workload.further, str(options.seed)))}"
    _say(f"{workload.title}: the job, unless it is there from before")
    source = workload.input_file(folder / "data", options.seed)
    place = folder / "explained" / f"{workload.name}-{size}"
    store = stored(place, workload, source, memory=options.memory, jars=options.jars)
    _say(f"{workload.title}: {store.job_s:g} s, stored in {store.stored_s:g} s; now it is asked")
    chosen = starts(store.output / workload.sink, options.starts, options.seed)
    answers: Asked = asked(
        store,
        chosen,
        folder / "run-explain",
        cold=options.cold,
        plain=options.plain,
        plain_s=options.plain_seconds,
        cache_bytes=options.cache_bytes,
    )
    _say(f"{workload.title}: the job on the rows of {len(chosen):,} explanations, without lineage")
    began = time.monotonic()
    proved = proof(store.source, workload, answers.explained, folder / "run-explain", memory=options.memory)
    seconds = round(time.monotonic() - began, 1)
    _say(f"{workload.title}: {proved.verified:,} of {proved.tested:,} came out again")
    added = []
    if not workload.is_sufficient:
        added = sufficient(
            store,
            workload,
            chosen[: options.commands],
            folder / "run-explain",
            memory=options.memory,
            jars=options.jars,
        )
        _say(f"{workload.title}: {sum(one.is_verified for one in added)} of {len(added)} by the command")
    return Measured(
        workload=workload,
        stored=store,
        asked=answers,
        proof=proved,
        proof_s=seconds,
        sufficient=added,
        enough=_enough(workload, source, options),
    )


def _enough(workload: Workload, source: Path, options: argparse.Namespace) -> EnoughTested | None:
    if (workload.is_sufficient and not workload.demands) or not options.proofs:
        return None
    run = options.folder.absolute() / "run-explain"
    _say(f"{workload.title}: the job in a session, which is asked for rows that are enough")
    answers = enough(
        workload,
        source,
        run,
        count=min(options.proofs, options.starts),
        checked=options.checked,
        seed=options.seed,
        memory=options.memory,
        jars=options.jars,
    )
    proved = proof(source, workload, [one for one in answers if not one.why_not], run, memory=options.memory)
    _say(f"{workload.title}: {proved.verified:,} of {len(answers):,} came out again of these")
    return EnoughTested(answers=answers, proof=proved)


def _figures(result: Measured) -> dict[str, Any]:
    """Without the rows themselves."""
    answers = result.asked
    return {
        "workload": result.workload.name,
        "title": result.workload.title,
        "job_s": result.stored.job_s,
        "stored_s": result.stored.stored_s,
        "flows_bytes": result.stored.flows_bytes,
        "of": result.of,
        "sizes": result.sizes,
        "kinds": [explained.kind for explained in answers.explained],
        "exact": all(explained.exact for explained in answers.explained),
        "new_ms": answers.new_ms,
        "cold_ms": answers.cold_ms,
        "first_ms": [explained.first_ms for explained in answers.explained],
        "warm_ms": answers.warm_ms,
        "plain": answers.plain,
        "proof": asdict(result.proof),
        "proof_s": result.proof_s,
        "sufficient": [asdict(one) for one in result.sufficient],
        "enough": None if result.enough is None else _figures_of_enough(result.enough),
    }


def _figures_of_enough(tested: EnoughTested) -> dict[str, Any]:
    answers = tested.answers
    return {
        "proof": asdict(tested.proof),
        "rows": [one.total for one in answers],
        "demanded": [one.demanded for one in answers],
        "added": [one.added for one in answers],
        "runs": [one.runs for one in answers],
        "seconds": [one.seconds for one in answers],
        "checked_s": [one.checked_s for one in answers if one.checked_s is not None],
        "why_not": sorted({one.why_not for one in answers if one.why_not}),
    }


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.explain",
        description="Measures explanations, and tests each by running the job on its rows alone.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: a try, not a measurement")
    parser.add_argument("--workloads", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME")
    parser.add_argument("--edges", type=int, default=1_000_000, help="of the graph of `components`")
    parser.add_argument("--turns", type=int, default=6, help="of its loop")
    parser.add_argument("--starts", type=int, default=1_000, help="rows of each output that are explained")
    parser.add_argument("--cache-bytes", type=int, help="of `lineage serve`, instead of its own default")
    parser.add_argument("--cold", type=int, default=30, help="of these in a new process each")
    parser.add_argument("--plain", type=int, default=5, help="of these whose plain trace is counted")
    parser.add_argument(
        "--plain-seconds", type=float, default=30.0, help="for the plain traces of a workload"
    )
    parser.add_argument(
        "--proofs",
        type=int,
        default=1_000,
        help="rows whose explanation gets further rows until it is enough, in a session",
    )
    parser.add_argument("--checked", type=int, default=20, help="of these also verified there, by Spark")
    parser.add_argument(
        "--commands", type=int, default=1, help="of the rows that need others, asked of the command, too"
    )
    parser.add_argument("--seed", type=int, default=1, help="of inputs and starts")
    parser.add_argument("--memory", default="3g", help="spark.driver.memory")
    parser.add_argument("--note", default="", help="a sentence for the result, such as what else was running")
    for name, place, help_ in (
        ("out", ROOT / "perf" / "results", "for the result files"),
        ("folder", ROOT / ".cache" / "perf", "for inputs and stores, which are kept"),
        ("jars", ROOT / ".cache" / "lineage" / "jars", "where Kafka's jars are or go"),
    ):
        parser.add_argument(f"--{name}", type=Path, default=place, metavar="FOLDER", help=help_)
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except JobError as error:
        sys.exit(f"perf.explain: {error}")
