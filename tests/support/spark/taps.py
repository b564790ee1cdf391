"""Plans with the agent's Java expressions, made by hand, and what they sent, taken apart again.

The second way to know what a tap must have said: its rows go on into Parquet files with their ids and keys as
columns, a file for each task, in the order of the task.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from spark_agent import contract
from spark_agent.delivery.settings import AgentSettings
from spark_agent.sql import jvm_gateway
from spark_agent.sql.types import OutputFiles
from tests.support.spark.application import messages_of

TAP, CODES, KEYS = 50, 51, 52
PARTITIONS = 4
POSITION = (1 << 33) - 1


@dataclass(frozen=True)
class Said:
    """What one run's blocks say: by source, the id of each row or None; each row's key; the keys sent.

    And what was done with rows, by their places.
    """

    ids: Mapping[int, list[int | None]]
    keys: list[int]
    sent: list[int]
    operations: Mapping[int, int]


class Taps:
    """One application that nobody else talks about."""

    def __init__(
        self,
        spark: SparkSession,
        servers: str,
        *,
        patience_s: float = 30.0,
        client: tuple[tuple[str, str], ...] = (),
        topic: str = "",
        on_error: str = "silent",
        spool: Path | str | None = None,
    ) -> None:
        """`spool`: where what is not delivered goes, "" by default; None: it is lost."""
        self.spark = spark
        self.servers = servers
        self.topic = topic or f"{uuid.uuid4().hex[:10]}-flow"
        self.java = jvm_gateway.load(spark.sparkContext)
        self.java.ship()
        settings = AgentSettings(
            bootstrap_servers=servers,
            flow_topic=self.topic,
            delivery_timeout_s=patience_s,
            client=client,
            on_error=on_error,
            spool_dir="" if spool is None else str(spool),
            spool_max_bytes=0 if spool is None else 1 << 30,
        )
        self.application_id = f"taps-{self.topic}"
        self.common = self.java.agent_config(self.application_id, settings, PARTITIONS)

    def with_ids(self, frame: DataFrame, node: int, name: str, row_index: str | None = None) -> DataFrame:
        """`frame`, a scan, with one column more: the id of each row."""
        plan = frame._jdf.queryExecution().analyzed()
        output = attributes(plan)
        source = self.java.source(self.common, node, output[row_index] if row_index else None)
        expressions = self.spark._jvm.org.apache.spark.sql.catalyst.expressions  # type: ignore[union-attr]
        none = self.spark._jvm.scala.Option.empty()  # type: ignore[union-attr]
        number = expressions.NamedExpression.newExprId()
        alias = expressions.Alias(source, name, number, self.java.seq([]), none, self.java.seq([]))
        return self.frame(self._logical.Project(self.java.seq([*output.values(), alias]), plan))

    def tapped(self, frame: DataFrame, sources: Mapping[str, int], key: str | None = None) -> DataFrame:
        """The same rows through a tap: `sources` says of which node the ids of a column are."""
        plan = frame._jdf.queryExecution().analyzed()
        output = attributes(plan)
        nodes = {"key": output[key], "codes": CODES, "keys": KEYS} if key else {}
        tap = self.java.tap(
            self.common, TAP, [output[name] for name in sources], list(sources.values()), **nodes
        )
        return self.frame(self._logical.Filter(tap, plan))

    def placed(
        self, frame: DataFrame, sources: Mapping[str, int], writers: int = 0, operation: str | None = None
    ) -> DataFrame:
        """The same rows through a tap of an output: to the folder of `name` and bucket `b`, by `place`.

        The column `operation` says what a statement did with each.
        """
        plan = frame._jdf.queryExecution().analyzed()
        output = attributes(plan)
        output_files = OutputFiles(
            output["place"], output["b"], ["name"], [output["name"]], writers, [output["name"]]
        )
        ids = [output[name] for name in sources]
        tap = self.java.tap(
            self.common,
            TAP,
            ids,
            list(sources.values()),
            output_files=output_files,
            operation=None if operation is None else output[operation],
        )
        return self.frame(self._logical.Filter(tap, plan))

    @property
    def _logical(self) -> Any:
        return self.spark._jvm.org.apache.spark.sql.catalyst.plans.logical  # type: ignore[union-attr]

    def frame(self, plan: Any) -> DataFrame:
        sql = self.spark._jvm.org.apache.spark.sql  # type: ignore[union-attr]
        try:
            dataset = sql.classic.Dataset.ofRows(self.spark._jsparkSession, plan)
        except TypeError:  # PySpark 3.5
            dataset = sql.Dataset.ofRows(self.spark._jsparkSession, plan)
        return DataFrame(dataset, self.spark)

    def manifests(self) -> list[dict[str, Any]]:
        """Those of the tasks that have ended, without what failed ones report."""
        manifests = []
        while (line := self.java.manifests.poll(0)) is not None:
            manifests.append(json.loads(line))
        return [manifest for manifest in manifests if manifest["type"] != "failed"]

    def blocks(self) -> dict[int, list[tuple[contract.Block, int | None]]]:
        """By run, in order: each block and the node whose ids it has."""
        by_run = defaultdict(list)
        for message in messages_of(self.servers, self.topic):
            head = int.from_bytes(message[6:10], "little")
            block = contract.decode_block(message)
            assert block.application_id == self.application_id
            assert len(message) < contract.MAX_BLOCK_BYTES
            by_run[block.run].append((block, json.loads(message[10 : 10 + head]).get("source")))
        for blocks in by_run.values():
            blocks.sort(key=lambda entry: entry[0].seq)
        return by_run


def attributes(plan: Any) -> dict[str, Any]:
    output = plan.output()
    return {output.apply(i).name(): output.apply(i) for i in range(output.size())}


def said(manifest: Mapping[str, Any], blocks: Sequence[tuple[contract.Block, int | None]]) -> Said:
    """What the blocks of a run of a tap say, after a check that they are those of its manifest."""
    assert [block.seq for block, _ in blocks] == list(range(manifest["blocks"]))
    assert {block.split for block, _ in blocks} <= {manifest["split"]}
    ids: dict[int, list[int | None]] = {}
    codes: list[int] = []
    key_of: dict[int, int] = {}
    operations: dict[int, int] = {}
    for block, source in blocks:
        columns = {name: list(values) for name, values in block.columns.items()}
        if block.relation == contract.OPERATIONS:
            operations.update(zip(columns["out"], columns["operation"], strict=True))
        elif block.node == TAP:
            assert source is not None
            column = ids.setdefault(source, [None] * manifest["inputs"])
            first = block.base_out
            identities = columns["in"]
            if block.relation == "ids":
                ones = [1] * len(identities)
                spans = zip(identities, columns.get("count", ones), columns.get("step", ones), strict=True)
                identities = [
                    block.base_in + at + j * step for at, count, step in spans for j in range(count)
                ]
            rows = columns.get("out") or range(first, first + len(identities))
            for row, identity in zip(rows, identities, strict=True):
                assert column[row] is None
                column[row] = identity
        elif block.node == CODES:
            assert (block.relation, block.base_in, source) == ("codes", len(codes), None)
            codes += columns["code"]
        else:
            assert (block.node, block.relation, source) == (KEYS, "pairs", None)
            key_of.update(zip(columns["in"], columns["out"], strict=True))
    assert sorted(key_of) == list(range(len(key_of)))
    return Said(ids, [key_of[code] for code in codes], list(key_of.values()), operations)


def task_rows(folder: Path) -> dict[int, list[dict[str, Any]]]:
    """By task: its rows, in order."""
    rows = {}
    for path in sorted(folder.glob("part-*.parquet")):
        rows[int(path.name.split("-")[1])] = pq.read_table(path).to_pylist()
    return rows


def check_tap(taps: Taps, folder: Path, sources: Mapping[str, int], key: str | None = None) -> list[Any]:
    """The manifests, when each of the tap says, with its blocks, what the rows of its task are."""
    manifests = taps.manifests()
    runs = [manifest for manifest in manifests if manifest["input"] == TAP]
    tasks, blocks = task_rows(folder), taps.blocks()
    assert {run["split"] for run in runs} >= {split for split, rows in tasks.items() if rows}
    assert len({run["split"] for run in runs}) == len(runs)
    for run in runs:
        assert (run["dropped"], run["unconfirmed"], run["problem"]) == (0, 0, "")
        assert run["nodes"] == ([CODES, KEYS] if key else [])
        rows, written = tasks.get(run["split"], []), said(run, blocks.get(run["run"], []))
        assert run["inputs"] == len(rows)
        for name, source in sources.items():
            assert written.ids.get(source, [None] * len(rows)) == [row[name] for row in rows]
        assert written.keys == ([row[key] for row in rows] if key else [])
        assert run["outputs"] == (len(written.sent) if key else len(rows))
    return manifests


def rows_by_id(manifests: Sequence[Mapping[str, Any]], node: int) -> dict[int, tuple[str, int]]:
    """Each id of a scan -> (file, row of it): what its manifests say."""
    rows = {}
    for manifest in manifests:
        if manifest["input"] != node:
            continue
        parts, end = manifest["parts"], manifest["inputs"]
        for part, after in zip(parts, [*(part["first"] for part in parts[1:]), end], strict=True):
            path = unquote(urlsplit(part["path"]).path)
            for position in range(part["first"], after):
                row = part.get("row", 0) + position - part["first"]
                rows[manifest["split"] << 33 | position] = (path, row)
    return rows
