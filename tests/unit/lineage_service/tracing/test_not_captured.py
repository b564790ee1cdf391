"""What is answered of files whose records were not captured: why not, and never an empty trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.decode.batches import event_batch
from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP, event, messages

WHY = "level=lazy: run it with the level eager"


@pytest.fixture
def questions(tmp_path: Path) -> LineageQueries:
    def node(number: int, name: str, kind: str, path: str) -> bytes:
        dataset = {"namespace": "file", "name": path, "format": "csv"} if path else None
        fields = {
            "kind": kind,
            "relation": contract.CARRIED,
            "exact": False,
            "reason": WHY,
            "dataset": dataset,
        }
        return event(contract.NODE_REGISTERED, node=number, name=name, description=path, **fields)

    store = FileStore(tmp_path)
    told = messages(
        event(contract.APPLICATION_STARTED, name="lazy"),
        node(0, "csv", "source", "/data/in"),
        node(1, "Filter", "operator", ""),
        node(2, "save", "sink", "/data/out"),
        node(3, "stream", "source", "/data/out"),
        event(
            contract.NODE_REGISTERED,
            node=4,
            name="append",
            description="a table",
            kind="sink",
            relation=contract.FLOWS,
            exact=True,
            dataset={"namespace": "file", "name": "/data/table", "format": "delta"},
        ),
        event(contract.LINK, source=0, target=1, port=0),
        event(contract.LINK, source=1, target=2, port=0),
        event(contract.APPLICATION_ENDED, time=1, counters={"runs": 0}),
    )
    store.write_events(event_batch("topic/0", told))
    return LineageQueries(store, time_budget_s=60)


@pytest.mark.parametrize(
    ("direction", "path"),
    [("backward", "/data/out/part-00000.csv"), ("backward", "/data/out"), ("forward", "/data/in/x=1/a.csv")],
)
def test_a_trace_of_a_file_says_why_its_records_are_not_known(
    questions: LineageQueries, direction: str, path: str
) -> None:
    with pytest.raises(NotFoundError, match=f"{path}: its records are not known. .*level eager"):
        questions.trace(APP, TraceQuery(direction=direction, path=path, row=0))


def test_a_file_of_a_table_whose_files_are_not_known_names_the_node_to_ask(
    questions: LineageQueries,
) -> None:
    said = r"records of node 4 \(append\) are there, .*give node, partition and offset"
    with pytest.raises(NotFoundError, match=said):
        questions.trace(APP, TraceQuery(direction="backward", path="/data/table/part-0.parquet", row=0))


def test_of_another_file_no_such_reason_is_given(questions: LineageQueries) -> None:
    with pytest.raises(NotFoundError, match="no source or sink of this application has the file"):
        questions.trace(APP, TraceQuery(direction="backward", path="/data/outer/part-0.csv", row=0))


@pytest.mark.parametrize(
    ("node", "said"), [("0", "level eager"), ("2", "level eager"), ("1", "rows pass it")]
)
def test_a_trace_of_a_node_says_so_too(questions: LineageQueries, node: str, said: str) -> None:
    with pytest.raises(InvalidQueryError, match=said):
        questions.trace(APP, TraceQuery(direction="backward", node=node, partition=0, offset=0))


def test_the_graph_says_that_nothing_of_it_is_counted(questions: LineageQueries) -> None:
    graph = questions.graph(APP)
    told = {(node.records, node.exact, node.reason) for node in graph.nodes if node.name != "append"}
    assert told == {(None, False, WHY)}
