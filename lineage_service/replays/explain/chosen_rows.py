"""Some of the rows of a row set as a row set: by position, and for people by file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from lineage_service.replays.sift.candidate_sets import SourceRows
from lineage_service.replays.specification import Source
from spark_agent.contract.row_cover import Row
from spark_agent.contract.row_sets import ranges_of

__all__ = ["chosen_rows"]


def chosen_rows(
    application_id: str, sources: Sequence[Source], rows: Iterable[Row], texts: SourceRows
) -> list[Source]:
    """All of the sources, with these rows alone. Those that are meant as a whole stay so."""
    positions: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for node, split, position in rows:
        positions[node][split].append(position)
    return [
        source if source["whole"] else _with(application_id, source, positions[source["node"]], texts)
        for source in sources
    ]


def _with(
    application_id: str, source: Source, positions: Mapping[int, Sequence[int]], texts: SourceRows
) -> Source:
    states = {file["path"]: file for file in source.get("files", ())}
    rows: dict[str, list[int]] = defaultdict(list)
    for split, of_split in positions.items():
        for row in texts.rows(application_id, source["node"], split, sorted(of_split)).values():
            rows[row.path].append(row.row)
    return {
        **source,
        "splits": [{"split": split, "positions": ranges_of(positions[split])} for split in sorted(positions)],
        "files": [
            {**states.get(path, {}), "path": path, "rows": ranges_of(rows[path])} for path in sorted(rows)
        ],
    }
