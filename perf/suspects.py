"""How long it takes to say who behaves oddly, in a WordCount of so many flows.

    python -m perf.suspects [--flows 82000000] [--queries 5] [--note TEXT]

The flow store is written here, without a job: lines of twelve words from a long-tailed vocabulary, one of
which gave far more words than the others. Each query is asked of a process that has not read anything. Then
the same is asked with one bad and ten good outputs. Writes `perf/results/suspects-DATE.json` and `.md`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lineage_service.decode.batches import Batch, Message
from lineage_service.decode.rows import BlockRows, Flows, row_of_event
from lineage_service.lineage import Suspects
from lineage_service.queries import StartQuery, SuspectsQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT
from perf.tables import publish, table
from spark_agent import contract
from tests.support.lineage_messages import event

APP = "wordcount"
TASKS, WORDS_A_LINE, VOCABULARY = 30, 12, 100_000
SOURCE, FLAT_MAP, COMBINE, READ, MERGE, SINK = range(6)
NAMES = ("textFile", "flatMap", "combine", "read", "reduceByKey", "saveAsTextFile")
#: The line that gave so many words too many: in the second task.
ODD_LINE, MORE = 7, 500
#: Outputs that are called bad or good: those of words of medium frequency.
ASKED = 200
BAR_S, BAR_SHARE = 3.0, 0.15

Numbers = npt.NDArray[np.int64]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.suspects", description=__doc__)
    parser.add_argument("--flows", type=int, default=82_000_000)
    parser.add_argument("--queries", type=int, default=5, help="of each kind (5)")
    parser.add_argument("--seed", type=int, default=29)
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(arguments)
    figures = about_machine("perf.suspects", options.note)
    with tempfile.TemporaryDirectory(prefix="perf-suspects-") as name:
        store = DeltaFlowStore(Path(name))
        flows = write(store, options.flows, np.random.default_rng(options.seed))
        named = SuspectsQuery(
            bad=(StartQuery(record=f"{SINK}#write#0#{ASKED}"),),
            good=tuple(
                StartQuery(record=f"{SINK}#write#{partition}#{ASKED + partition}")
                for partition in range(1, 11)
            ),
        )
        seconds = {
            title: [asked(store, query) for _ in range(options.queries)]
            for title, query in (("all", SuspectsQuery()), ("bad and good", named))
        }
        again = LineageQueries(store, time_budget_s=600)
        first = again.suspects(APP, SuspectsQuery())
        begun = time.perf_counter()
        again.suspects(APP, SuspectsQuery())
        seconds["all, again"] = [time.perf_counter() - begun]
    check(first)
    figures |= {"flows": flows, "seed": options.seed, "seconds": seconds}
    publish(options.out, "suspects", figures, page(figures))
    return 0


def asked(store: DeltaFlowStore, query: SuspectsQuery) -> float:
    """Seconds of a query that finds nothing cached."""
    queries = LineageQueries(store, time_budget_s=600)
    gc.collect()
    begun = time.perf_counter()
    queries.suspects(APP, query)
    return time.perf_counter() - begun


def check(suspects: Suspects) -> None:
    first = suspects.suspects[0]
    assert first.record is not None, first
    assert (first.name, first.record.record_id) == ("flatMap", f"read#1#{ODD_LINE}"), first


# -- the store ---------------------------------------------------------------------------------------


def write(store: DeltaFlowStore, flows: int, chance: np.random.Generator) -> int:
    """How many flows were written."""
    lines = max(flows // (TASKS * (WORDS_A_LINE + 2)), ODD_LINE + 1)
    events = list(_nodes())
    written = 0
    spans: list[Numbers] = []
    for task in range(TASKS):
        a_line = np.full(lines, WORDS_A_LINE)
        a_line[ODD_LINE] += MORE * (task == 1)
        words = np.minimum(chance.zipf(1.1, int(a_line.sum())), VOCABULARY)
        distinct, codes = np.unique(words, return_inverse=True)
        blocks = [*_counts(1000 + task, a_line), *_codes(1000 + task, COMBINE, codes)]
        spans.append(np.bincount(distinct % TASKS, minlength=TASKS))
        events.append(
            _committed(1000 + task, task, SOURCE, [FLAT_MAP, COMBINE], lines, len(distinct), blocks)
        )
        written += _write_blocks(store, task, blocks)
    for task in range(TASKS):
        sizes = np.array([of_writer[task] for of_writer in spans])
        starts = np.array([of_writer[:task].sum() for of_writer in spans])
        codes = np.concatenate([np.arange(size) for size in sizes])
        outputs = int(sizes.max())
        read = Flows(
            out_pos=np.cumsum(sizes) - sizes,
            out_count=sizes,
            in_pos=starts,
            in_step=np.ones(TASKS, np.int64),
            in_run=np.arange(1000, 1000 + TASKS),
        )
        blocks = [
            _block(2000 + task, READ, contract.SPANS, 0, 0, read),
            *_codes(2000 + task, MERGE, codes, seq=1),
        ]
        nodes = [MERGE, SINK]
        events.append(_committed(2000 + task, task, READ, nodes, len(codes), outputs, blocks))
        written += _write_blocks(store, TASKS + task, blocks)
    events.append(event(contract.APPLICATION_ENDED, application_id=APP))
    messages = [_message(at) for at in range(len(events))]
    rows = tuple(zip(messages, map(row_of_event, events), strict=True))
    store.write_events(Batch(source="perf/node-0", next_offset=len(events), messages=len(events), rows=rows))
    return written


def _counts(run: int, counts: Numbers) -> Iterator[BlockRows]:
    starts = np.cumsum(counts) - counts
    for seq, first in enumerate(range(0, len(counts), contract.MAX_COLUMN_VALUES)):
        part = slice(first, first + contract.MAX_COLUMN_VALUES)
        positions = np.arange(first, first + len(counts[part]))
        rows = Flows(out_pos=starts[part], out_count=counts[part], in_pos=positions)
        yield _block(run, FLAT_MAP, contract.COUNTS, seq, first, rows)


def _codes(run: int, node: int, codes: Numbers, seq: int = 1_000_000) -> Iterator[BlockRows]:
    for at, first in enumerate(range(0, len(codes), contract.MAX_COLUMN_VALUES)):
        part = codes[first : first + contract.MAX_COLUMN_VALUES]
        rows = Flows(out_pos=part, in_pos=np.arange(first, first + len(part)))
        yield _block(run, node, contract.CODES, seq + at, first, rows)


def _block(run: int, node: int, relation: str, seq: int, first: int, rows: Flows) -> BlockRows:
    return BlockRows(
        application_id=APP,
        node=node,
        run=run,
        split=run % 1000,
        seq=seq,
        relation=relation,
        bytes=0,
        order=(first, first),
        content=rows,
    )


def _write_blocks(store: DeltaFlowStore, at: int, blocks: Sequence[BlockRows]) -> int:
    rows = tuple((_message(number), block) for number, block in enumerate(blocks))
    store.write_flows(Batch(source=f"perf/flow-{at}", next_offset=len(rows), messages=len(rows), rows=rows))
    return sum(block.rows for block in blocks)


def _message(offset: int) -> Message:
    return Message(topic="perf", partition=0, offset=offset, key=b"", value=b"")


def _nodes() -> Iterator[bytes]:
    yield event(contract.APPLICATION_STARTED, application_id=APP, name=APP)
    for number, name in enumerate(NAMES):
        kind = {SOURCE: "source", SINK: "sink", COMBINE: "step", READ: "step"}.get(number, "operator")
        relation = {SOURCE: contract.SOURCE, SINK: contract.IDENTITY}.get(number, contract.FLOWS)
        yield event(
            contract.NODE_REGISTERED,
            application_id=APP,
            node=number,
            name=name,
            kind=kind,
            relation=relation,
            exact=True,
            call_site=f"/jobs/wordcount.py:{number}",
            **({"operation": MERGE} if kind == "step" else {}),
        )
        if number:
            yield event(contract.LINK, application_id=APP, source=number - 1, target=number)


def _committed(
    run: int,
    split: int,
    source: int,
    nodes: list[int],
    inputs: int,
    outputs: int,
    blocks: Sequence[BlockRows],
) -> bytes:
    return event(
        contract.RUN_COMMITTED,
        application_id=APP,
        run=run,
        split=split,
        action=SINK,
        input=source,
        nodes=nodes,
        inputs=inputs,
        outputs=outputs,
        blocks=len(blocks),
    )


# -- the report --------------------------------------------------------------------------------------


def page(figures: dict[str, Any]) -> str:
    seconds = {title: statistics.median(times) for title, times in figures["seconds"].items()}
    share = seconds["bad and good"] / seconds["all"]
    rows = [[title, f"{value:.2f} s"] for title, value in seconds.items()]
    return "\n".join(
        (
            "# Who behaves oddly: seconds of a query",
            "",
            f"WordCount of {figures['flows']:,} flows in {2 * TASKS} tasks, median of "
            f"{len(figures['seconds']['all'])}. {figures['note']}".rstrip(),
            "",
            table(["query", "time"], rows),
            "",
            f"With bad and good outputs it takes {share:.0%} of the time.",
            "",
            table(
                ["bar", "met"],
                [
                    [f"all in at most {BAR_S:g} s", "yes" if seconds["all"] <= BAR_S else "no"],
                    [
                        f"bad and good in at most {BAR_SHARE:.0%} of it",
                        "yes" if share <= BAR_SHARE else "no",
                    ],
                ],
            ),
            "",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
