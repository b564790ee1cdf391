"""What people type for outputs that are bad, and for others that are good."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lineage_service.cli.query.start import start_of
from lineage_service.queries import StartQuery

__all__ = ["add_outputs", "outputs_of"]


def add_outputs(parser: argparse.ArgumentParser) -> None:
    for kind in ("bad", "good"):
        parser.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="START",
            help=f"a {kind} output: FILE:LINE, lines counted from 1, or a record id such as 30#write#0#12; "
            "repeatable",
        )
        parser.add_argument(
            f"--{kind}-where",
            action="append",
            default=[],
            metavar="CONDITION",
            help=f"all rows of the one output whose columns fulfil it are {kind}; repeatable",
        )


def outputs_of(texts: Sequence[str], conditions: Sequence[str]) -> tuple[StartQuery, ...]:
    """Raises InvalidQueryError."""
    named = [StartQuery(**start_of(text, None, None)) for text in texts]
    return (*named, *(StartQuery(where=condition) for condition in conditions))
