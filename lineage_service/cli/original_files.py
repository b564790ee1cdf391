"""The files of an application that a command runs again."""

from __future__ import annotations

from lineage_service.replays.original import Original
from lineage_service.tracing.query.service import LineageQueries

__all__ = ["changed_inputs", "input_paths", "output_paths"]


def changed_inputs(queries: LineageQueries, application_id: str) -> str | None:
    """Which input files are not what the run read, and why; None if all are.

    What the job itself wrote before it read it, it writes again.
    """
    files = queries.source_files.input_files(application_id)
    changed = [file for file in files if file.changed is not None and not file.is_own]
    if not changed:
        return None
    more = f" (and {len(changed) - 1:,} more files)" if len(changed) > 1 else ""
    why = (changed[0].changed or "").partition(";")[0]
    return f"{changed[0].path}{more} is not what the run read: {why}"


def input_paths(queries: LineageQueries, original: Original) -> list[str]:
    """The files and folders that the application read."""
    files = queries.source_files.input_files(original.application_id)
    folders = (node.location for node in original.sources.values())
    return [path for path in (*(file.path for file in files), *folders) if path]


def output_paths(queries: LineageQueries, original: Original) -> list[str]:
    """Those that it wrote and did not read."""
    inputs = set(input_paths(queries, original))
    return [path for path in queries.source_files.output_paths(original.application_id) if path not in inputs]
