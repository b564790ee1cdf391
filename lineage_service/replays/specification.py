"""What a replay is to do: from a row set to the spec that the agent reads.

Refuses rows that the application does not have, by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lineage_service.lineage import AskedRecord, ReplayMode, ReplayStrategy, RowSet, UsedRows
from lineage_service.replays.errors import ReplayError
from lineage_service.replays.original import Original
from lineage_service.replays.sandbox import Sandbox
from lineage_service.result_json import json_value
from spark_agent.contract.errors import ContractError
from spark_agent.contract.replay_spec import REPLAY_SPEC
from spark_agent.contract.row_sets import count_rows, rows_in

__all__ = [
    "Plan",
    "RowTexts",
    "SavedRow",
    "asked_records",
    "changed_rows",
    "check_rows",
    "row_set_json",
    "spec_of",
    "watched_sources",
    "with_blocks",
    "with_places",
    "with_texts",
]

#: Ranges of rows whose ways are followed: they travel to every task.
_MOST_RANGES = 5_000

Source = dict[str, Any]
"""A source in the JSON shape of a row set."""


class RowTexts(Protocol):
    """Where the rows of sources are, and their texts (`tracing.query.source_files`)."""

    def texts(self, application_id: str, sources: Sequence[Mapping[str, Any]]) -> Mapping[int, Any]: ...

    def blocks(self, application_id: str, source: Mapping[str, Any]) -> Any: ...

    def named(self, application_id: str, rows: Sequence[tuple[str, int]]) -> RowSet: ...


class SavedRow(NamedTuple):
    """A row that a sink saved. `kept` are actions whose records are the same without one of its rows."""

    node: int
    text: str
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The sources of one run of the command."""

    mode: ReplayMode
    sources: tuple[Source, ...]
    strategy: ReplayStrategy = "rows"
    skips_failing: bool = False
    runs_foreach: bool = False
    allows_processes: bool = False
    #: Are values captured, to show steps? `watched` are the sources to whose rows they are limited.
    has_steps: bool = False
    watched: tuple[Source, ...] = ()
    #: The kept rows of a partition have the positions that they had, in a program that read them itself.
    keeps_positions: bool = False
    #: Paths, and the folders of earlier replays that are read in their place.
    stand_ins: tuple[tuple[str, str], ...] = ()
    #: What is it without each of the rows?
    saved_row: SavedRow | None = None

    @property
    def restricted(self) -> tuple[Source, ...]:
        """Those of which rows are named."""
        return tuple(source for source in self.sources if not source["whole"])

    @property
    def rows(self) -> int:
        return sum(map(count_rows, self.restricted))

    @property
    def total(self) -> int | None:
        """How many rows these sources have; None where that is not known."""
        totals = [source.get("total") for source in self.restricted]
        return None if None in totals else sum(total or 0 for total in totals)

    def places(self, source: Source, split: Mapping[str, Any]) -> Iterable[int]:
        """The positions that rows of a partition of a source have in the replay. Scans keep theirs."""
        positions = split["positions"]
        if self.mode != "only" or self.keeps_positions or "blocks" in source:
            return rows_in(positions)
        return range(sum(count for _, count in positions))

    def used(self) -> tuple[UsedRows, ...]:
        """For people: by file, where rows are rows of files."""
        used: list[UsedRows] = []
        for source in self.sources:
            node, name = int(source["node"]), str(source["name"])
            if source["whole"]:
                used.append(
                    UsedRows(
                        node=node, name=name, path=source.get("path"), rows=None, why=source.get("why") or ""
                    )
                )
                continue
            used += [
                UsedRows(node=node, name=name, path=file["path"], rows=_ranges(file["rows"]))
                for file in source.get("files", ())
            ]
        return tuple(used)


def _ranges(ranges: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((first, count) for first, count in ranges)


def check_rows(original: Original, row_set: Mapping[str, Any]) -> None:
    """Raises ReplayError if a row set names what the application does not have."""
    application_id = original.application_id
    if row_set["application"] != application_id:
        raise ReplayError(f"it is a row set of {row_set['application']}, not of {application_id}")
    for source in row_set["sources"]:
        node = original.sources.get(source["node"])
        if node is None:
            raise ReplayError(
                f"it names source {source['node']} ({source['name']}), which {application_id} does not have"
            )
        for split in source.get("splits", ()):
            _check_split(original, source, split)


def _check_split(original: Original, source: Mapping[str, Any], split: Mapping[str, Any]) -> None:
    count = original.records(source["node"], split["split"])
    if count is None and split["split"] in original.sources[source["node"]].partitions:
        return  # its task failed, so nobody has counted its records
    if count is None:
        raise ReplayError(
            f"it names partition {split['split']} of source {source['node']} ({source['name']}), "
            f"which {original.application_id} did not read"
        )
    first, length = split["positions"][-1] if split["positions"] else (0, 0)
    if first + length > count:
        raise ReplayError(
            f"it names record {first + length - 1:,} in partition {split['split']} of source "
            f"{source['node']} ({source['name']}), which has {count:,} records"
        )


def with_texts(application_id: str, sources: Sequence[Source], texts: RowTexts) -> tuple[Source, ...]:
    """Sources with the lines to read in the place of their files, where these are known for sure."""
    restricted = [source for source in sources if not source["whole"]]
    of_node = texts.texts(application_id, restricted)
    return tuple(
        source
        if source["whole"] or of_node[source["node"]].texts is None
        else {
            **source,
            "texts": {split: list(lines) for split, lines in of_node[source["node"]].texts.items()},
        }
        for source in sources
    )


def with_places(application_id: str, sources: Sequence[Source], texts: RowTexts) -> tuple[Source, ...]:
    """Sources with what a run on their rows alone reads: their lines, or the blocks of their files."""
    return with_texts(application_id, with_blocks(application_id, sources, texts), texts)


def with_blocks(application_id: str, sources: Sequence[Source], texts: RowTexts) -> tuple[Source, ...]:
    """Sources, those that are scans of DataFrames with the blocks of their files, where these are known."""
    scanned = [texts.blocks(application_id, source) for source in sources]
    return tuple(
        source
        if scan is None
        else {**source, "why": scan.why}
        if scan.blocks is None
        else {**source, "blocks": scan.blocks}
        for source, scan in zip(sources, scanned, strict=True)
    )


def watched_sources(sources: Sequence[Mapping[str, Any]]) -> tuple[Source, ...]:
    """The rows of sources whose ways are to be followed; none if they are too many: then those of all are."""
    named = [
        {name: source[name] for name in ("node", "name", "whole", "splits")}
        for source in sources
        if not source["whole"] and source.get("splits")
    ]
    count = sum(len(split["positions"]) for source in named for split in source["splits"])
    return tuple(named) if count <= _MOST_RANGES else ()


def changed_rows(
    original: Original, replacements: Sequence[tuple[str, int, str]], texts: RowTexts
) -> tuple[Source, ...]:
    """Sources with new texts of rows, (path, row, text). Raises ReplayError, LineageError."""
    application_id, sources = original.application_id, dict[int, Source]()
    for path, row, text in replacements:
        row_set = row_set_json(texts.named(application_id, [(path, row)]))
        try:
            check_rows(original, row_set)
        except ReplayError as error:
            raise ReplayError(f"{path}:{row + 1}: {error}") from None
        for source in row_set["sources"]:
            merged = sources.setdefault(source["node"], {**source, "files": [], "splits": [], "replaced": {}})
            merged["files"] += source["files"]
            for split in source["splits"]:
                by_position = merged["replaced"].setdefault(str(split["split"]), {})
                by_position.update(dict.fromkeys(map(str, rows_in(split["positions"])), text))
    for source in sources.values():
        source["splits"] = [
            {"split": int(split), "positions": [[position, 1] for position in sorted(map(int, by_position))]}
            for split, by_position in sorted(source["replaced"].items(), key=lambda item: int(item[0]))
        ]
        source["files"] = _joined(source["files"])
        why = texts.texts(application_id, [source])[source["node"]]
        if why.texts is None:
            raise ReplayError(
                f"rows of source {source['node']} ({source['name']}) cannot be replaced: {why.why}"
            )
    return tuple(sources.values())


def _joined(files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each file once, with its rows in order."""
    by_path: dict[str, dict[str, Any]] = {}
    for file in files:
        joined = by_path.setdefault(file["path"], {**file, "rows": []})
        joined["rows"] = sorted([*joined["rows"], *file["rows"]])
    return list(by_path.values())


def row_set_json(row_set: RowSet) -> dict[str, Any]:
    """In the shape of the contract, without the rows that are only listed for people."""
    value: dict[str, Any] = json_value(row_set)
    for source in value["sources"]:
        source.pop("listed", None)
    return value


def asked_records(row_set: Mapping[str, Any]) -> tuple[AskedRecord, ...]:
    """The records that a row set was traced from."""
    names = ("path", "row", "text", "key")
    return tuple(
        AskedRecord(
            node=record["node"],
            record_id=record["record_id"],
            **{name: record.get(name) for name in names},
        )
        for record in row_set["asked"]
    )


def spec_of(
    original: Original,
    plan: Plan,
    sandbox: Sandbox,
    round_number: int,
    protected: Sequence[str],
    outputs: Sequence[str],
    *,
    is_silent: bool = False,
    is_compact: bool = False,
) -> dict[str, Any]:
    """Raises ReplayError where the agent would not understand it. `is_silent`: nothing is captured.

    `is_compact`: there are few partitions.
    """
    spec = {
        "version": 1,
        "replay": sandbox.id,
        "of": original.application_id,
        "name": original.name,
        "mode": plan.mode,
        "strategy": plan.strategy,
        "round": round_number,
        "sandbox": str(sandbox.folder),
        "sources": list(plan.sources) if plan.mode == "only" else list(plan.restricted),
        "protected": list(protected),
        "outputs": list(outputs),
        "skip_failing": plan.skips_failing,
        "step": plan.has_steps,
        "run_foreach": plan.runs_foreach,
        "allow_processes": plan.allows_processes,
        **({"silent": True} if is_silent else {}),
        **({"compact": True} if is_compact else {}),
        **(
            {}
            if plan.saved_row is None
            else {"influence": plan.saved_row._asdict() | {"kept": list(plan.saved_row.kept)}}
        ),
    }
    if plan.watched:
        spec["watched"] = list(plan.watched)
    if plan.stand_ins:
        spec["stand_ins"] = [{"path": path, "folder": folder} for path, folder in plan.stand_ins]
    try:
        REPLAY_SPEC.check(spec)
    except ContractError as error:
        raise ReplayError(f"no replay can be made of this row set: {error}") from None
    return spec
