"""The snapshots of an Iceberg table up to the newest of a branch, by what each changed.

Each is compared with the one before it, by the files that their manifests list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from lineage_service.errors import UnavailableError
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from lineage_service.tracing.tables.iceberg_deletes import PositionDeletes
from lineage_service.tracing.tables.iceberg_manifests import DATA, POSITION_DELETES, Manifests
from lineage_service.tracing.tables.iceberg_metadata import IcebergMetadata, Snapshot, read_metadata
from lineage_service.tracing.tables.iceberg_version import snapshot_version
from lineage_service.tracing.tables.table_log import AddedFile, Commit, TableLog
from lineage_service.tracing.tables.table_version import TableVersion

__all__ = ["iceberg_log"]

_MAIN = "main"


def iceberg_log(files: FileSystems, version: TableVersion, check: Check) -> TableLog:
    """Of the table of a snapshot. Raises UnavailableError, and what `check` raises."""
    try:
        metadata = read_metadata(files, version.table)
        snapshot = metadata.snapshots[version.number]
        head, warnings = _head(metadata, snapshot)
        snapshots = list(metadata.ancestors(head))[::-1]
        manifests = Manifests(files, check)
        is_whole = _is_first(metadata, snapshots[0])
        commits = _commits(files, snapshots, manifests, check, is_whole=is_whole)
    except (UnreadableError, ValueError, KeyError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise UnavailableError(f"the metadata of {version.table} cannot be read: {said}") from error
    by_number = {commit.version: snapshot for commit, snapshot in zip(commits, snapshots, strict=True)}

    def read(number: int) -> TableVersion:
        of_number = by_number[number]
        number_of_schema = metadata.current_schema if of_number.schema is None else of_number.schema
        schema = metadata.schemas[number_of_schema]
        try:
            return snapshot_version(files, version.table, metadata, of_number, schema, manifests)
        except (UnreadableError, ValueError, KeyError, TypeError) as error:
            raise UnavailableError(f"the metadata of {version.table} cannot be read: {error}") from error

    return TableLog(
        commits=commits,
        number=next(number for number, of_number in by_number.items() if of_number.id == snapshot.id),
        is_whole=is_whole,
        read=read,
        warnings=(*version.warnings, *warnings),
    )


def _head(metadata: IcebergMetadata, snapshot: Snapshot) -> tuple[Snapshot, Sequence[str]]:
    """The newest of a branch that the snapshot is of, the main one if that is one; and what is not known."""
    for name in sorted(metadata.branches, key=lambda name: (name != _MAIN, name)):
        head = metadata.snapshots.get(metadata.refs[name])
        if head is not None and any(other.id == snapshot.id for other in metadata.ancestors(head)):
            return head, [] if name == _MAIN else [f"these are the versions of the branch {name}"]
    return snapshot, [f"snapshot {snapshot.id} is on no branch: what came after it is not known"]


def _is_first(metadata: IcebergMetadata, snapshot: Snapshot) -> bool:
    """Was the table empty before? One that was replaced has older snapshots, which are no parents.

    Who expires a snapshot may leave its children without a parent.
    """
    older = any(other.sequence < snapshot.sequence for other in metadata.snapshots.values())
    return snapshot.parent is None and (snapshot.sequence <= 1 or older)


def _commits(
    files: FileSystems,
    snapshots: Sequence[Snapshot],
    manifests: Manifests,
    check: Check,
    *,
    is_whole: bool,
) -> list[Commit]:
    states = []
    for snapshot in snapshots:
        check()
        states.append(_state(files, snapshot, manifests, check))
    sequences = [snapshot.sequence for snapshot in snapshots]
    is_ascending = all(before < after for before, after in pairwise(sequences))
    numbers = sequences if is_ascending else range(1, len(snapshots) + 1)  # format 1 has none
    commits: list[Commit] = []
    before: Mapping[str, AddedFile] = {}
    for number, snapshot, state in zip(numbers, snapshots, states, strict=True):
        changed = {path for path in before.keys() & state.keys() if before[path].vector != state[path].vector}
        new = state.keys() - before.keys()
        is_unknown = not commits and not is_whole
        commits.append(
            Commit(
                version=number,
                name=str(snapshot.id),
                time=snapshot.time,
                operation="" if is_unknown else str(snapshot.summary.get("operation") or ""),
                engine="" if is_unknown else _engine(snapshot.summary),
                added={path: state[path] for path in changed | new},
                removed=frozenset((before.keys() - state.keys()) | changed),
            )
        )
        before = state
    return commits


def _state(
    files: FileSystems, snapshot: Snapshot, manifests: Manifests, check: Check
) -> dict[str, AddedFile]:
    """The data files of a snapshot."""
    listed = list(manifests.files_of(snapshot.manifests))
    deletes = PositionDeletes(files, (file for file in listed if file.content == POSITION_DELETES))
    state = {}
    for file in listed:
        if file.content == DATA:
            check()
            path = normal_path(file.path)
            vectors = [(other.path, other.offset) for other in deletes.that_may_be_of(file)]
            vector = repr(sorted(vectors, key=repr)) if vectors else ""
            state[path] = AddedFile(path=path, rows=file.rows, first_row_id=file.first_row_id, vector=vector)
    return state


def _engine(summary: Mapping[str, str]) -> str:
    said: Iterable[str | None] = (summary.get("engine-name"), summary.get("engine-version"))
    return "/".join(filter(None, said))
