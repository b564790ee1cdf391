from pathlib import Path

import pytest

from lineage_service.decode.batches import event_batch
from lineage_service.errors import InvalidQueryError
from lineage_service.queries import TraceQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.lineage_messages import APP, event, messages


def questions(folder: Path, relation: str, records: int) -> LineageQueries:
    """Of a job of one task that says only that any record may have come from any other."""
    store = DeltaFlowStore(folder)
    told = [
        event(contract.APPLICATION_STARTED, name="job"),
        event(
            contract.NODE_REGISTERED,
            node=0,
            name="range",
            kind="source",
            relation=contract.SOURCE,
            exact=True,
        ),
        event(contract.NODE_REGISTERED, node=1, name="pipe", relation=relation, exact=False),
        event(contract.NODE_REGISTERED, node=2, name="collect", kind="sink", exact=True),
        event(contract.LINK, source=0, target=1),
        event(contract.LINK, source=1, target=2),
        event(
            contract.RUN_COMMITTED, run=1, action=2, input=0, nodes=[1, 2], inputs=records, outputs=records
        ),
    ]
    store.write_events(event_batch("topic/0", messages(*told)))
    return LineageQueries(store, time_budget_s=60)


@pytest.mark.parametrize("relation", [contract.PARTITION, contract.DATASET])
def test_a_bound_of_more_records_than_are_held_is_refused_and_says_what_to_do(
    relation: str, tmp_path: Path
) -> None:
    asked = questions(tmp_path, relation, 1 << 40)
    query = {"node": "2", "partition": 0, "offset": 7, "limit": 5}
    with pytest.raises(InvalidQueryError, match=r"all 1,099,511,627,776 records of node 0.*depth= or to="):
        asked.trace(APP, TraceQuery(direction="backward", **query))
    ended = asked.trace(APP, TraceQuery(direction="backward", depth=1, **query))
    assert [node.total for node in ended.nodes] == [1, 1]


@pytest.mark.parametrize("relation", [contract.PARTITION, contract.DATASET])
def test_a_bound_that_can_be_held_is_given(relation: str, tmp_path: Path) -> None:
    asked = questions(tmp_path, relation, 1_000_000)
    trace = asked.trace(APP, TraceQuery(direction="backward", node="2", partition=0, offset=7, limit=5))
    assert [node.total for node in trace.nodes] == [1, 1, 1_000_000]
    assert not trace.exact
