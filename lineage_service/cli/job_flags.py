"""Flags of the commands that run a job again in a sandbox: once, or again and again (sift, influence)."""

from __future__ import annotations

import argparse

from lineage_service.cli.query.start import whole_number
from lineage_service.replays.sift.guarded_runs import JobOptions
from lineage_service.replays.specification import Plan

__all__ = ["add_job_flags", "add_run_flags", "job_options"]


def add_run_flags(parser: argparse.ArgumentParser) -> None:
    """What a run may do, and what is kept and shown of it."""
    parser.add_argument(
        "--run-foreach",
        action="store_true",
        help="call the functions of foreach and foreachPartition, which are left out else",
    )
    parser.add_argument(
        "--allow-processes", action="store_true", help="let the job start other programs, within the guard"
    )
    parser.add_argument("--anyway", action="store_true", help="go on though input files have changed")
    parser.add_argument("--keep", action="store_true", help="keep the sandbox for more than a day")
    parser.add_argument("--show", action="store_true", help="show what the command prints while it runs")


def add_job_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", type=whole_number(1), metavar="N", help="end after so long, with the best answer so far"
    )
    add_run_flags(parser)
    parser.add_argument("--json", action="store_true", help="answer as JSON")
    parser.set_defaults(csv=False)


def job_options(options: argparse.Namespace) -> JobOptions:
    return JobOptions(
        words=tuple(options.words),
        template=Plan(
            mode="only",
            sources=(),
            runs_foreach=options.run_foreach,
            allows_processes=options.allow_processes,
        ),
        seconds=options.seconds,
        is_kept=options.keep,
        is_shown=options.show,
    )
