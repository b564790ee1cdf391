"""The lineage of earlier executions, walked when a pair of waves needs it: which rows went where.

Nothing of it is kept but which rows of files the elements of a wave were, and hashes of their values in some
columns (`kept_elements`): flows are in the flow store, and a walk takes less time than a second for a million
rows. What takes longer than there is time, or is not known, is left out: then its features are not known.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

import numpy as np

from lineage_service.errors import LineageError, TimeBudgetError
from lineage_service.tracing.columns.application import StoreReader
from lineage_service.tracing.files.file_parts import normal_path
from lineage_service.tracing.files.record_location import RecordLocations
from lineage_service.tracing.model.summaries import Receipts
from lineage_service.tracing.query.open_applications import OpenApplications, Opened
from lineage_service.triggering.changes.changed_elements import Numbers
from lineage_service.triggering.dependence.lineage_features import Lineage
from lineage_service.triggering.dependence.read_rows import (
    MOST_SAMPLED,
    NOT_KEPT,
    Codes,
    ReadRows,
    chosen_by_key,
)
from lineage_service.triggering.dependence.relation import relation_of, rows_of_outputs
from lineage_service.triggering.dependence.routes import learned
from lineage_service.triggering.weighing.element_plans import Plan
from lineage_service.triggering.weighing.experience import Step
from lineage_service.triggering.weighing.kept_elements import KeptContainer

__all__ = ["ExecutionLineages"]

logger = logging.getLogger(__name__)

_NO_ROWS = np.zeros(0, np.int64)
_NO_CODES = Codes((), np.zeros((0, 0), np.uint64))


class ExecutionLineages:
    """Of one flow store, for one question. What was walked last is not walked again."""

    def __init__(self, store: StoreReader, seconds: float) -> None:
        """`seconds`: for all walks together."""
        self._applications = OpenApplications(store, Receipts())
        self._files = RecordLocations().file_rows
        self._until = time.monotonic() + seconds
        self._last: tuple[str, Mapping[str, Lineage]] = ("", {})

    def of(
        self, step: Step, containers: Sequence[KeptContainer], outputs: Sequence[Plan]
    ) -> Mapping[str, Lineage]:
        """Of the execution that followed a step, by the paths of its inputs. `containers` are what is kept of
        the step, `outputs` the plans of what it wrote.
        """
        if step.part != self._last[0]:
            lineages: Mapping[str, Lineage] = {}
            try:
                lineages = self._lineages(step, containers, outputs)
            except LineageError as error:
                logger.info("the lineage of %s is not used: %s", step.application_id, error)
            self._last = step.part, lineages
        return self._last[1]

    def _lineages(
        self, step: Step, containers: Sequence[KeptContainer], outputs: Sequence[Plan]
    ) -> dict[str, Lineage]:
        """Raises LineageError."""
        kept = [one for one in containers if one.places is not None]
        inputs = [one for one in kept if not one.is_output]
        if step.application_id is None or not inputs:
            return {}
        self._check()
        opened = self._applications.open(step.application_id)
        sinks = _sinks(opened, [plan.path for plan in outputs])
        if not sinks:
            return {}
        written = self._written(opened, sinks, [one for one in kept if one.is_output], outputs)
        lineages: dict[str, Lineage] = {}
        for container in inputs:
            rows = _rows(container)
            relation = relation_of(opened, sinks, rows, self._files, self._check)
            if isinstance(relation, str):
                logger.info("the lineage of %s is not used: %s", container.path, relation)
                continue
            routing = None if container.codes is None else learned(rows, relation)
            lineages[container.path] = Lineage(rows, relation, routing, container.elements, written)
        return lineages

    def _written(
        self,
        opened: Opened,
        sinks: Sequence[int],
        containers: Sequence[KeptContainer],
        outputs: Sequence[Plan],
    ) -> Numbers | None:
        """The number of each output that the error is of; None: it is of none, or they are not known."""
        if len(containers) != 1 or len(outputs) != 1 or len(outputs[0].values) != 1:
            return None
        (container,) = containers
        row_of = rows_of_outputs(opened, sinks, _rows(container), self._files, self._check)
        assert container.places is not None
        if row_of is None or (row_of < 0).any() or (container.places[row_of] < 0).any():
            return None
        numbers: Numbers = container.elements.values[container.places[row_of], 0]
        return numbers

    def _check(self) -> None:
        if time.monotonic() > self._until:
            raise TimeBudgetError("its rows were not walked in time")


def _sinks(opened: Opened, paths: Sequence[str]) -> list[int]:
    """The nodes that wrote these outputs."""
    sinks = [node for node in opened.graph.topology.nodes.values() if node.kind == "sink"]
    places = {sink.number: sink.location or (sink.dataset and sink.dataset.name) for sink in sinks}
    return [number for number, place in places.items() if place and normal_path(place) in paths]


def _rows(container: KeptContainer) -> ReadRows:
    assert container.places is not None
    firsts = np.cumsum([0, *(count for _, count in container.files)], dtype=np.int64)
    paths = tuple(normal_path(path) for path, _ in container.files)
    every = np.append(container.elements.keys, NOT_KEPT)
    places = np.where(container.places < 0, len(container.elements), container.places).astype(np.int64)
    keys, elements = every[places], (every, places)
    if container.codes is None:
        return ReadRows(paths, firsts, keys, _NO_ROWS, _NO_CODES, elements)
    followed = np.flatnonzero(container.places >= 0)
    sampled = followed[chosen_by_key(keys[followed], MOST_SAMPLED)]
    codes = Codes(container.codes.names, container.codes.values[container.places[sampled]])
    return ReadRows(paths, firsts, keys, sampled, codes, elements)
