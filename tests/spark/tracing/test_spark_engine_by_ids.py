"""The trace on Spark answers what the trace on one machine answers of records that are known by ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lineage_service.errors import InvalidQueryError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.tracing.spark.api import SparkTracing, local_session
from tests.support.boundary_application import SOURCE, TWO_ACTIONS
from tests.support.id_applications import (
    FILTER,
    GROUPS,
    TWO_GROUPINGS,
    WINDOWED,
    WITH_CACHE,
    IdApplication,
    Place,
    stored,
    tap,
)
from tests.support.lineage_messages import APP

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

#: How sets are kept and moved: as ever, and with none held by the driver or sent to the flows.
WAYS: Mapping[str, dict[str, Any]] = {"small": {}, "large": {"held_records": 0, "broadcast_records": 0}}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    conf = ["spark.sql.shuffle.partitions=2", "spark.sql.adaptive.enabled=false"]
    with local_session("local[2]", conf) as session:
        yield session


class Asked:
    """One application and both engines."""

    def __init__(self, application: IdApplication, folder: Path, spark: SparkSession, way: str) -> None:
        store = stored(application, folder)
        self._questions = LineageQueries(store, time_budget_s=60)
        self._tracing = SparkTracing(spark, store, **WAYS[way])

    def agree(self, direction: Any, place: Place, **more: Any) -> Any:
        node, split, offset = place
        query = TraceQuery(direction=direction, node=str(node), partition=split, offset=offset, **more)
        answer = self._tracing.trace(APP, query)
        assert answer == self._questions.trace(APP, query)
        return answer


def test_both_engines_give_the_same_answers(tmp_path: Path, spark: SparkSession) -> None:
    asked = Asked(WITH_CACHE, tmp_path, spark, "small")
    trace = asked.agree("backward", (90, 0, 0))
    assert [node.name for node in trace.nodes] == ["n90", "n80", "n1", "n0"]
    assert trace.exact
    asked.agree("backward", (90, 5, 1))
    asked.agree("forward", (0, 0, 3))


@pytest.mark.parametrize("way", WAYS)
def test_frames_that_overlap_are_the_same_in_both(way: str, tmp_path: Path, spark: SparkSession) -> None:
    asked = Asked(WINDOWED, tmp_path, spark, way)
    for place in ((90, 0, 0), (90, 0, 2), (90, 1, 0)):
        trace = asked.agree("backward", place)
        found = {
            (int(node.name[1:]), record.partition, record.offset)
            for node in trace.nodes
            if node.kind == "source"
            for record in node.records
        }
        assert found == WINDOWED.truth()[place]
    asked.agree("forward", (0, 0, 1))
    asked.agree("forward", (1, 0, 0))


def test_ids_of_a_split_that_nobody_told_of_are_not_exact_in_either(
    tmp_path: Path, spark: SparkSession
) -> None:
    application = replace(TWO_GROUPINGS, untold=frozenset({(0, 1)}))
    asked = Asked(application, tmp_path, spark, "small")
    assert not asked.agree("backward", (90, 0, 0)).exact
    assert asked.agree("backward", (90, 0, 1)).exact


@pytest.mark.parametrize("bounded", [0, tap(0, GROUPS), tap(1, GROUPS)])
def test_upper_bounds_are_said_by_both(bounded: int, tmp_path: Path, spark: SparkSession) -> None:
    asked = Asked(replace(TWO_GROUPINGS, bounded=frozenset({bounded})), tmp_path, spark, "small")
    assert not asked.agree("backward", (90, 0, 0)).exact
    assert not asked.agree("forward", (0, 0, 3)).exact


@pytest.mark.parametrize("way", WAYS)
def test_borders_of_plans_are_crossed_the_same_way(way: str, tmp_path: Path, spark: SparkSession) -> None:
    store = TWO_ACTIONS.stored(tmp_path)
    questions, tracing = LineageQueries(store, time_budget_s=60), SparkTracing(spark, store, **WAYS[way])
    for direction, (node, split, offset) in (
        ("backward", (5, 0, 1)),
        ("backward", (6, 0, 2)),
        ("forward", (SOURCE, 0, 2)),
        ("forward", (SOURCE, 0, 3)),
    ):
        query = TraceQuery(direction=direction, node=str(node), partition=split, offset=offset)  # type: ignore[arg-type]
        assert tracing.trace(APP, query) == questions.trace(APP, query)


def test_large_sets_give_the_same_answers(tmp_path: Path, spark: SparkSession) -> None:
    asked = Asked(replace(TWO_GROUPINGS, limit=1), tmp_path, spark, "large")
    asked.agree("backward", (90, 0, 0))
    asked.agree("forward", (0, 0, 3))


def test_pages_and_ends_are_the_same(tmp_path: Path, spark: SparkSession) -> None:
    asked = Asked(WITH_CACHE, tmp_path, spark, "small")
    page = asked.agree("backward", (90, 0, 0), limit=2)
    assert page.next is not None
    asked.agree("backward", (90, 0, 0), limit=2, cursor=page.next)
    asked.agree("backward", (90, 0, 0), to="1", depth=2)
    with pytest.raises(InvalidQueryError, match="no records of its own"):
        asked.agree("backward", (90, 0, 0), to=str(FILTER))
