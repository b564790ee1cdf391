"""How `lineage trigger --probe` runs a job on some rows: in the sandbox of replays, by its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lineage_service.cli.original_files import input_paths, output_paths
from lineage_service.cli.stores import open_lineage
from lineage_service.replays.original import Original
from lineage_service.replays.stood_in_run import StoodInRun, stood_in_run
from lineage_service.settings import Settings
from lineage_service.store.flow_store import existing_store
from lineage_service.triggering.probing.prober import RunOnRows

__all__ = ["run_on_rows"]


def run_on_rows(settings: Settings, words: Sequence[str]) -> RunOnRows:
    """Of the command of a job."""

    @contextmanager
    def run(
        application_id: str, write: Callable[[Path], Mapping[str, str]], seconds: float
    ) -> Iterator[StoodInRun]:
        queries = open_lineage(settings)
        original = Original(existing_store(settings), application_id)
        with stood_in_run(
            original,
            settings.home,
            words,
            write,
            inputs=input_paths(queries, original),
            outputs=output_paths(queries, original),
            seconds=seconds,
        ) as of_rows:
            yield of_rows

    return run
