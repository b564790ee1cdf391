"""Applications that are replayed one after the other: what the replay of one wrote is read by the next ones.

Which rows of an earlier application are needed follows from the rows that later ones read of its outputs.
Such a source is then read whole, from the sandbox of the earlier replay: its stand-in. Knows nothing of
commands and sandboxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lineage_service.lineage import Replay
from lineage_service.queries import StartQuery
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.specification import Source
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from spark_agent.contract.row_sets import count_rows, rows_in

__all__ = ["MOST_STARTS", "ChainedJob", "StandIn", "replay_chain", "with_stand_ins"]

#: Of more rows that were read of an application's outputs, all of its rows are replayed.
MOST_STARTS = 10_000


@dataclass(frozen=True, slots=True)
class StandIn:
    """The source `node` reads the replay's `folder` in the place of `path`."""

    node: int
    path: str
    folder: str


class ChainedJob(Protocol):
    """An application of the chain, and how it is run again."""

    @property
    def original(self) -> Original: ...

    def input_files(self, node: int) -> Iterable[str]:
        """The files that a source read."""

    def row_set(self, starts: Sequence[StartQuery]) -> dict[str, Any]:
        """The rows of its sources that these records were made of."""

    def replay(self, row_set: Mapping[str, Any] | None, stand_ins: Sequence[StandIn]) -> Replay:
        """On these rows, or on all."""

    def written(self, replay: Replay, sink: int) -> str | None:
        """The folder in which a replay has what this sink of the original wrote; None if it wrote nothing."""


@dataclass(frozen=True, slots=True)
class _Link:
    """The source `node` of the application at `reader` of the chain read what a sink of another one wrote."""

    reader: int
    node: int
    writer: int
    sink: int
    path: str


def replay_chain(jobs: Sequence[ChainedJob], starts: Sequence[StartQuery]) -> tuple[Replay, ...]:
    """Of records of the last application. Ends with the first replay that was refused or failed.

    Raises ReplayError where an application has no part in it.
    """
    links = _links(jobs)
    _check(jobs, links)
    row_sets: dict[int, dict[str, Any] | None] = {len(jobs) - 1: jobs[-1].row_set(starts)}
    for writer in reversed(range(len(jobs) - 1)):
        rows = _rows_of([link for link in links if link.writer == writer], row_sets)
        row_sets[writer] = None if rows is None else jobs[writer].row_set(rows)
    replays: list[Replay] = []
    for at, job in enumerate(jobs):
        own = [link for link in links if link.reader == at]
        stand_ins = [StandIn(link.node, link.path, _folder(jobs, replays, link)) for link in own]
        replays.append(job.replay(row_sets[at], stand_ins))
        if replays[-1].verdict == "refused" or replays[-1].exit_code:
            break
    return tuple(replays)


def with_stand_ins(sources: Iterable[Source], stand_ins: Sequence[StandIn]) -> list[Source]:
    """Sources, those with a stand-in as ones that are read whole."""
    folders = {stand_in.node: stand_in.folder for stand_in in stand_ins}
    return [
        {**source, "whole": True, "files": [], "splits": [], "why": f"it was read from {folder}"}
        if (folder := folders.get(source["node"])) is not None
        else source
        for source in sources
    ]


def _links(jobs: Sequence[ChainedJob]) -> list[_Link]:
    """Which sources read what. Raises ReplayError where one read more than one application wrote."""
    written = [_outputs(job.original) for job in jobs]
    links = []
    for reader, job in enumerate(jobs):
        for node, source in job.original.sources.items():
            files = {normal_path(path) for path in job.input_files(node)}
            for writer in reversed(range(reader)):
                link = _link(jobs, written[writer], _Reader(reader, node, source.name, files), writer)
                if link is not None:
                    links.append(link)
                    break
    return links


@dataclass(frozen=True, slots=True)
class _Reader:
    at: int
    node: int
    name: str
    files: set[str]


def _link(
    jobs: Sequence[ChainedJob],
    outputs: Mapping[int, tuple[str, frozenset[str]]],
    reader: _Reader,
    writer: int,
) -> _Link | None:
    for sink, (path, files) in outputs.items():
        if reader.files and reader.files <= files:
            return _Link(reader.at, reader.node, writer, sink, path)
        if reader.files & files:
            other = min(reader.files - files)
            ids = [jobs[at].original.application_id for at in (reader.at, writer)]
            raise ReplayError(
                f"source {reader.node} ({reader.name}) of {ids[0]} read {other}, too, which {ids[1]} did not "
                f"write with {path}: these cannot be replayed one after the other"
            )
    return None


def _outputs(original: Original) -> dict[int, tuple[str, frozenset[str]]]:
    """(path, files) of each sink whose files are as it left them."""
    files = FileSystems()
    outputs = {}
    for number, sink in original.sinks.items():
        path = original.place_of(sink)
        if path is not None:
            try:
                written = original.output(sink, files).files
            except UnreadableError:
                continue
            outputs[number] = path.rstrip("/"), frozenset(map(normal_path, written))
    return outputs


def _check(jobs: Sequence[ChainedJob], links: Sequence[_Link]) -> None:
    ids = [job.original.application_id for job in jobs]
    for writer, id in enumerate(ids[:-1]):
        if all(link.writer != writer for link in links):
            later = " and ".join(ids[writer + 1 :])
            raise ReplayError(
                f"{later} read nothing that {id} wrote and that is still there: name the applications in the "
                "order in which they ran, and only those that read each other's outputs"
            )


def _rows_of(
    links: Sequence[_Link], row_sets: Mapping[int, dict[str, Any] | None]
) -> list[StartQuery] | None:
    """The rows that were read by these sources; None where all are to be replayed."""
    starts: dict[StartQuery, None] = {}
    for link in links:
        row_set = row_sets[link.reader]
        source = next((one for one in (row_set or {}).get("sources", ()) if one["node"] == link.node), None)
        if source is None or source["whole"] or count_rows(source) > MOST_STARTS:
            return None
        rows = [(file["path"], row) for file in source["files"] for row in rows_in(file["rows"])]
        if len(rows) < count_rows(source):  # of some it is not known which rows of the file they are
            return None
        starts.update(dict.fromkeys(StartQuery(path=path, row=row) for path, row in rows))
    return list(starts) or None


def _folder(jobs: Sequence[ChainedJob], replays: Sequence[Replay], link: _Link) -> str:
    job, replay = jobs[link.writer], replays[link.writer]
    folder = job.written(replay, link.sink)
    if folder is None:
        raise ReplayError(
            f"the replay of {job.original.application_id} wrote nothing in the place of {link.path}, which "
            f"{jobs[link.reader].original.application_id} read: {replay.sandbox} has what it printed"
        )
    return folder
