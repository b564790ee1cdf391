"""A session in memory: a job over lines of files, of which rows are chosen as a rebuilt RDD chooses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.client import outputs_again
from spark_agent.client.application import Application
from spark_agent.client.input_rows import InputRows
from spark_agent.contract.row_sets import ranges_of, rows_in
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.rebuilt_rdds import Rebuilt, RowsOfSource, SourceRead

Job = Callable[[dict[int, list[str]]], Iterable[str]]
"""The rows of the output, of the lines by the number of their source."""


class Records:
    """Of an RDD with one partition."""

    def __init__(self, records: Iterable[Any]) -> None:
        self._records = records

    def mapPartitions(self, function: Callable[[Iterable[Any]], Iterable[Any]]) -> Records:
        return Records(function(self._records))

    def collect(self) -> list[Any]:
        return list(self._records)


class MemorySession:
    """One application: `files` has the lines of a file by its path, `reads` the path by number of the source.

    `operations` are the nodes of the graph by number, with their parents; `?` stands for an upper bound. The
    last one is the sink.
    """

    def __init__(
        self,
        job: Job,
        recipe: Recipe,
        files: Mapping[str, Sequence[str]],
        reads: Mapping[int, str],
        operations: Mapping[int, tuple[str, list[int]]],
    ) -> None:
        self._job, self._recipe, self._files, self._reads = job, recipe, files, reads
        self._operations = operations
        self.runs = 0

    def chosen(self, text: str, lineage: Mapping[int, Sequence[int]], monkeypatch: pytest.MonkeyPatch) -> Any:
        """The output row with this text, whose lineage are these rows of the sources."""
        monkeypatch.setattr(outputs_again, "rebuilt", self._rebuilt)
        nodes = {
            f"app#{number}": {
                "node_id": f"app#{number}",
                "kind": "operator" if parents else "source",
                "name": name.rstrip("?"),
                "description": "",
                "call_site": f"job.py:{number}",
                "exact": not name.endswith("?"),
            }
            for number, (name, parents) in self._operations.items()
        }
        sink = f"app#{max(self._operations)}"
        nodes[sink]["kind"] = "sink"
        edges = [
            {"source": f"app#{parent}", "target": f"app#{number}"}
            for number, (_, parents) in self._operations.items()
            for parent in parents
        ]
        client: Any = SimpleNamespace(get=self._get, wait_for=lambda *_: "")
        return SimpleNamespace(
            name="saveAsTextFile",
            node_id=sink,
            recipe=self._recipe,
            rows=self._rows(text, lineage),
            application=Application(client, "app", nodes, edges),
            session=SimpleNamespace(events=SimpleNamespace(committed_runs=1, emitted_events=1)),
        )

    def _rows(self, text: str, lineage: Mapping[int, Sequence[int]]) -> InputRows:
        of_source = {}
        for number, path in self._reads.items():
            rows = lineage.get(number, ())
            texts = {"0": [self._files[path][row] for row in rows]} if rows else {}
            of_source[number] = RowsOfSource(self._source(number, rows), texts)
        return InputRows(of_source, [{"text": text}], exact=True, complete=True, how=())

    def _source(self, number: int, rows: Sequence[int]) -> dict[str, Any]:
        path = self._reads[number]
        return {
            "node": number,
            "name": self._operations[number][0],
            "whole": False,
            "why": None,
            "total": len(self._files[path]),
            "files": [],
            "splits": [{"split": 0, "positions": ranges_of(rows)}] if rows else [],
            "listed": [
                {"path": path, "row": row, "text": self._files[path][row], "warning": None} for row in rows
            ],
        }

    def _get(self, *path: str, **query: Any) -> Any:
        if path[-1] != "rowset":
            return {"missing_blocks": 0, "counters": {}, "complete": True, "state": "ended"}
        sources = [
            self._source(number, [query["row"]] if of == query["path"] else [])
            for number, of in self._reads.items()
        ]
        return {"sources": sources, "asked": [], "exact": True, "complete": True, "how": None}

    def _rebuilt(
        self,
        session: Any,
        recipe: Recipe,
        rows: Mapping[int, RowsOfSource],
        *,
        is_without: bool,
        **then: Any,
    ) -> Rebuilt:
        assert not any(then.values())  # nothing of the job was changed, and no place decides
        self.runs += 1
        read: list[SourceRead] = []
        lines: dict[int, list[str]] = {}
        for step in recipe.lineage():
            if step.source is not None:
                named = None if step.why_whole else rows.get(step.number)
                why = step.why_whole or ("" if is_without else "the row set does not name it")
                way = SourceRead(step.number, step.name, "filter")
                read.append(way if named is not None else replace(way, way="whole", why=why))
                lines[step.number] = self._lines(step, named, is_without=is_without)
        return Rebuilt(Records(self._job(lines)), tuple(read))

    def _lines(self, step: Recipe, rows: RowsOfSource | None, *, is_without: bool) -> list[str]:
        lines = self._files[step.source]
        if rows is None:
            return list(lines)
        places = {place for split in rows.source["splits"] for place in rows_in(split["positions"])}
        return [line for number, line in enumerate(lines) if (number in places) != is_without]
