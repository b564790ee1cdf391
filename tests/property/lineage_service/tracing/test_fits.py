"""Actions of a library that reads rows of a query again and again: each is made of all that it read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineage_service.errors import NotFoundError
from lineage_service.queries import TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP, block, event

#: A scan, the rows of a query over it, two fits that read these, and a file that nobody read.
SCAN, QUERY, FITS = 0, 1, (5, 6)
#: The rows of each split of the query, by their positions in the split of the scan.
ROWS = {0: [0, 2, 3], 1: [1], 4: [0, 1, 2, 3, 4]}


@dataclass(frozen=True)
class Read:
    """A task run: of a fit, or one that a cache outlived (`fit` is None), so many rows of a split."""

    fit: int | None
    split: int
    rows: int


@st.composite
def reads(draw: st.DrawFn) -> list[Read]:
    found = []
    for split, rows in ROWS.items():
        for fit in draw(st.lists(st.sampled_from((*FITS, None)), max_size=5)):
            # Whoever found rows in a cache found all of them there.
            found.append(Read(fit, split, len(rows) if fit is None else draw(st.integers(0, len(rows)))))
    return draw(st.permutations(found))


def truth(made: list[Read], fit: int) -> set[tuple[int, int]]:
    """(split, position) of the scan that a fit is made of."""
    found: set[tuple[int, int]] = set()
    accepted = {read.split for read in made if read.fit is not None}
    has_own = any(read.fit == fit for read in made)
    for split, rows in ROWS.items():
        own = [read.rows for read in made if (read.fit, read.split) == (fit, split)]
        kept = [read.rows for read in made if (read.fit, read.split) == (None, split)]
        if not own and split not in accepted and has_own:
            own = kept
        found |= {(split, position) for position in rows[: max(own, default=0)]}
    return found


def messages(made: list[Read]) -> tuple[list[bytes], list[bytes]]:
    return list(events(made)), [block_of(number, read) for number, read in enumerate(made, 100) if read.rows]


def events(made: list[Read]) -> Iterator[bytes]:
    yield event(contract.APPLICATION_STARTED, name="fits")
    new = {"exact": True}
    yield event(
        contract.NODE_REGISTERED, node=SCAN, name="s", kind="source", relation="source", by_id=True, **new
    )
    yield event(
        contract.NODE_REGISTERED, node=QUERY, name="rdd", kind="operator", relation="flows", by_id=True, **new
    )
    yield event(contract.LINK, source=SCAN, target=QUERY, port=0)
    yield event(contract.LINK, source=SCAN, target=QUERY, port=0, ids=True)
    for fit in FITS:
        yield event(contract.NODE_REGISTERED, node=fit, name="fit", kind="sink", relation="aggregate", **new)
        yield event(contract.LINK, source=QUERY, target=fit, port=0)
        yield event(contract.PARTITIONS, node=fit, partitions=[{"split": 0}])
    for split in ROWS:
        yield manifest(contract.RUN_COMMITTED, 10 + split, SCAN, split, 5, None, blocks=0)
    for number, read in enumerate(made, 100):
        kind = contract.RUN_KEPT if read.fit is None else contract.RUN_COMMITTED
        yield manifest(kind, number, QUERY, read.split, read.rows, read.fit, blocks=int(read.rows > 0))


def manifest(
    kind: str, run: int, node: int, split: int, rows: int, action: int | None, *, blocks: int
) -> bytes:
    return event(
        kind,
        run=run,
        split=split,
        attempt=run,
        stage=run,
        action=action,
        input=node,
        nodes=[],
        blocks=blocks,
        dropped=0,
        inputs=rows,
        outputs=rows,
    )


def block_of(run: int, read: Read) -> bytes:
    ids = [read.split << 33 | position for position in ROWS[read.split][: read.rows]]
    return block(run, 0, contract.POSITIONS, {"in": ids}, node=QUERY, split=read.split, source=SCAN)


@given(reads())
def test_a_fit_is_made_of_all_that_its_jobs_read_and_of_nothing_else(made: list[Read]) -> None:
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        store.tell(*messages(made))
        queries = LineageQueries(store, time_budget_s=60)
        for fit in FITS:
            query = TraceQuery(direction="backward", node=str(fit), partition=0, offset=0, limit=1_000)
            trace = queries.trace(APP, query)
            found = {
                (record.partition, record.offset)
                for node in trace.nodes
                if node.node_id == f"{APP}#{SCAN}"
                for record in node.records
            }
            assert found == truth(made, fit)
            assert trace.exact
        for split, rows in ROWS.items():
            for position in range(5):
                query = TraceQuery(
                    direction="forward", node=str(SCAN), partition=split, offset=position, limit=1_000
                )
                reached = {int(node.node_id.rpartition("#")[2]) for node in queries.trace(APP, query).nodes}
                wanted = {fit for fit in FITS if (split, position) in truth(made, fit)}
                assert reached & set(FITS) == wanted
                assert position in rows or not wanted


def test_a_fit_that_failed_has_no_record() -> None:
    with TemporaryDirectory() as folder:
        store = FileStore(Path(folder))
        told = [message for message in events([Read(FITS[0], 0, 3)]) if b'"partitions"' not in message]
        store.tell(told, [block_of(100, Read(FITS[0], 0, 3))])
        query = TraceQuery(direction="backward", node=str(FITS[0]), partition=0, offset=0)
        with pytest.raises(NotFoundError):
            LineageQueries(store, time_budget_s=60).trace(APP, query)
