"""Records of an application without Spark: each is in the output, or an end says why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.queries import MissingQuery
from lineage_service.tracing.query.service import LineageQueries
from tests.support.id_applications import (
    OUTPUT,
    SOURCES,
    TWO_GROUPINGS,
    WINDOWED,
    WITH_CACHE,
    IdApplication,
    stored,
)
from tests.support.lineage_messages import APP

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "application", [TWO_GROUPINGS, WITH_CACHE, WINDOWED], ids=["two groupings", "with a cache", "windowed"]
)
def test_a_record_is_in_the_output_or_ended_before(application: IdApplication, tmp_path: Path) -> None:
    queries = LineageQueries(stored(application, tmp_path), time_budget_s=60)
    in_output = {
        place for (node, _, _), sources in application.truth().items() if node == OUTPUT for place in sources
    }
    for node in SOURCES:
        for partition, count in application.sources[node].items():
            for offset in range(count):
                query = MissingQuery(node=str(node), partition=partition, offset=offset)
                missing = queries.missing(APP, query)
                place = node, partition, offset
                assert bool(missing.reached) is (place in in_output), place
                assert bool(missing.rows) is (place not in in_output), place
                assert {output.node_id for entry in missing.rows for output in entry.outputs} <= {
                    f"{APP}#{OUTPUT}"
                }
                assert all(not entry.exact for entry in missing.rows)  # the application never ended
