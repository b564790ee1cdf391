"""One application's lineage as Spark reads it from the flow store: what a walk needs to know, and DataFrames.

What follows from the topology, and what is known once for each run (who read what whom wrote, how many
records it has), is on the driver; flows and texts stay where they are. Knows nothing of the walk.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lineage_service.answers import NotFoundError
from lineage_service.completeness import completeness
from lineage_service.tracing.topology import Link, Run, Topology, effective_runs, read_topology, sides_of
from spark_agent import contract

T = TypeVar("T")

#: Hadoop's names of the object stores that Delta's library names otherwise.
_HADOOP_SCHEMES = {"s3": "s3a"}
#: Columns of the tables' files, which do not hold the one that the tables are partitioned by.
_SCHEMAS = {
    "flows": "node INT, run BIGINT, out_pos BIGINT, out_count BIGINT, in_pos BIGINT, in_step TINYINT, "
    "in_run BIGINT",
    "records": "node INT, run BIGINT, pos BIGINT, kind STRING, type STRING, text STRING",
    "blocks": "node INT, run BIGINT, split INT, seq INT, relation STRING, rows BIGINT, bytes BIGINT",
}
#: So many values stand in a condition, where Parquet's readers see them; more are a table to join.
_LISTED = 200
#: So many rows are read as SQL; more would take its parser long.
_LITERAL = 1_000


class StoreInSpark(Protocol):
    """What is read of a flow store."""

    def version(self) -> object: ...

    def events(self, application_id: str) -> Sequence[Mapping[str, Any]]: ...

    def uris(self, table: str, application_id: str) -> Sequence[str]: ...


@dataclass(frozen=True)
class SparkSnapshot:
    """What is needed to walk; sets and mappings as in `snapshot`."""

    spark: SparkSession
    topology: Topology
    flows: DataFrame
    records: DataFrame
    is_complete: bool
    effective: frozenset[int]
    spanning: frozenset[int]  # nodes whose flows are spans of outputs that lie side by side
    stepping: frozenset[int]  # those whose spans may have as many inputs as outputs
    repeating: frozenset[int]  # those whose spans name an input many times: sides of cartesian products
    pairing: frozenset[int]  # those whose flows name single records of other runs
    flowing: frozenset[int]  # nodes with flows
    keyed: frozenset[int]  # nodes with keys or values
    writers_of: Mapping[
        tuple[int, int], frozenset[int | None]
    ]  # (node, run) -> runs that it read; None: itself
    readers_of: Mapping[int, tuple[int, ...]]  # run that wrote a shuffle -> runs that read it
    links_of: Mapping[int, tuple[Link, ...]]  # node -> what its records are the outputs of
    links_from: Mapping[int, tuple[Link, ...]]  # node -> where its outputs were read
    parent_in_run: Mapping[tuple[int, int], int]  # (run, node) -> the node before it in the run
    _largest: dict[tuple[int, int], int] = field(default_factory=dict)

    def is_exact(self, node: int) -> bool:
        """Is each record's way through `node` known? A partition whose rows were followed is no bound."""
        at, runs = self.topology.nodes[node], [self.topology.runs[run] for run in self.runs_of(node)]
        is_followed = bool(runs) and all(node in run.overridden for run in runs)
        return at.exact or (at.relation == contract.PARTITION and is_followed)

    def is_flowing(self, node: int, run: int) -> bool:
        """The store holds how this run's outputs of `node` relate to its inputs."""
        if node not in self.flowing:
            return False
        relation = self.topology.nodes[node].relation
        return relation == contract.FLOWS or node in self.topology.runs[run].overridden

    def runs_of(self, node: int) -> list[int]:
        """The effective ones."""
        return [run for run in self.topology.runs_of.get(node, ()) if run in self.effective]

    def holders_of(self, node: int, split: int, direction: str) -> list[Run]:
        """The runs that a trace begins in: backward one computation, forward all (see OpenedApplication)."""
        runs = [run for run in self.topology.runs_at(node, split) if run.number in self.effective]
        return runs[:1] if direction == "backward" else runs

    def count(self, node: int, run_number: int) -> int:
        """How many records `node` has in a run."""
        run, nodes = self.topology.runs[run_number], self.topology.nodes
        if node == run.input or node in sides_of(nodes.get(run.input)):
            return run.inputs
        if node not in run.nodes:  # the sink of an action
            parents = nodes[node].parents
            return self.count(parents[0], run_number) if parents else 0
        if node in run.counts:
            return run.counts[node]
        if node in run.overridden:
            return self._outputs_in_flows(node, run_number)
        index = run.nodes.index(node)
        for later in run.nodes[index + 1 :]:  # what follows without changing the count says it too
            following = nodes.get(later)
            if following is None or following.relation != contract.IDENTITY or later in run.overridden:
                break
        else:
            return run.outputs
        for at in reversed(run.nodes[: index + 1]):
            if nodes[at].relation != contract.IDENTITY or at in run.overridden:
                return self._outputs_in_flows(at, run_number)
        return run.inputs

    def _outputs_in_flows(self, node: int, run: int) -> int:
        """Outputs that the flows of a node speak of; those of all runs are counted at once."""
        if (node, -1) not in self._largest:
            found = (
                self.flows.where(F.col("node") == node)
                .groupBy("run")
                .agg(F.max(F.col("out_pos") + F.col("out_count")).alias("outputs"))
                .collect()
            )
            self._largest.update({(node, row["run"]): int(row["outputs"]) for row in found})
            self._largest[node, -1] = 0
        return self._largest.get((node, run), 0)

    def table(self, columns: str, rows: Iterable[Sequence[int]]) -> DataFrame:
        """A table of the driver's, of whole numbers. A literal: no job, and no RDD that lineage would see."""
        named = [column.split() for column in columns.split(", ")]
        listed = list(rows)
        if 0 < len(listed) <= _LITERAL:
            ends = ["L" if kind == "bigint" else "" for _, kind in named]
            values = ", ".join(
                "(" + ", ".join(f"{value}{end}" for value, end in zip(row, ends, strict=True)) + ")"
                for row in listed
            )
            return self.spark.sql(
                f"SELECT * FROM VALUES {values} AS t({', '.join(name for name, _ in named)})"
            )
        names = [name for name, _ in named]
        text = json.dumps([dict(zip(names, row, strict=True)) for row in listed])
        fields = ",".join(f"{name}:{kind}" for name, kind in named)
        array = F.from_json(F.lit(text), f"array<struct<{fields}>>")
        return self.spark.range(0, 1, 1, 1).select(F.explode(array).alias("row")).select("row.*")

    def among(self, frame: DataFrame, column: str, numbers: Collection[int]) -> DataFrame:
        """The rows whose `column` is one of `numbers`."""
        if len(numbers) <= _LISTED:
            return frame.where(F.col(column).isin(sorted(numbers)))
        listed = self.table(f"{column} bigint", [(number,) for number in sorted(numbers)])
        return frame.join(F.broadcast(listed), column, "left_semi")


def open_in_spark(
    spark: SparkSession, store: StoreInSpark, application_id: str, location: str | None = None
) -> SparkSnapshot:
    """The application at the store's newest version. Raises NotFoundError.

    `location` is the store's folder or URL as the executors know it; None: as the store itself names it.
    """
    events = store.events(application_id)
    if not events:
        raise NotFoundError(f"no application {application_id} is known")
    topology = read_topology(application_id, events)
    flows, records, blocks = (
        _read(spark, table, store.uris(table, application_id), location)
        for table in ("flows", "records", "blocks")
    )
    receipts = [tuple(row) for row in blocks.select("run", "seq", "node", "relation").distinct().collect()]
    texts = (contract.KEYS, contract.VALUES)
    known = {(node, relation) for run, _, node, relation in receipts if run in topology.runs}

    def with_relation(*relations: str) -> frozenset[int]:
        return frozenset(node for node, relation in known if relation in relations)

    stepping, pairing = with_relation(contract.SPANS), with_relation(contract.PAIRS)
    repeating = frozenset(side for node in topology.nodes.values() for side in sides_of(node))
    inputs = {run.input for run in topology.runs.values()}
    crossing = sorted((inputs | repeating) & (stepping | pairing))
    shuffled: list[tuple[int, int, int | None]] = []
    if crossing:
        found = flows.where(F.col("node").isin(crossing)).select("node", "run", "in_run").distinct()
        shuffled = [(row["node"], row["run"], row["in_run"]) for row in found.collect()]
    pairs = [(reader, writer) for _, reader, writer in shuffled if writer is not None]
    complete = completeness(events, ((run, seq) for run, seq, _, _ in receipts))
    return SparkSnapshot(
        spark=spark,
        topology=topology,
        flows=flows,
        records=records,
        is_complete=complete.is_complete,
        effective=effective_runs(topology, pairs),
        spanning=stepping | with_relation(contract.COUNTS),
        stepping=stepping,
        repeating=repeating,
        pairing=pairing,
        flowing=frozenset(node for node, relation in known if relation not in texts),
        keyed=with_relation(*texts),
        writers_of={
            key: frozenset(writers)
            for key, writers in _grouped(((node, run), writer) for node, run, writer in shuffled).items()
        },
        readers_of=_grouped((writer, reader) for reader, writer in dict.fromkeys(pairs)),
        links_of=_grouped((link.node, link) for link in topology.links),
        links_from=_grouped((link.parent_node, link) for link in topology.links),
        parent_in_run={(run, node): parent for run, node, parent in topology.chain},
    )


def _read(spark: SparkSession, table: str, uris: Sequence[str], location: str | None) -> DataFrame:
    if not uris:
        empty = spark.range(0)
        columns = [column.split() for column in _SCHEMAS[table].split(", ")]
        return empty.select(*(F.lit(None).cast(kind).alias(name) for name, kind in columns))
    paths = [_escaped(in_hadoop(uri, table, location)) for uri in uris]
    return spark.read.schema(_SCHEMAS[table]).parquet(*paths)


def in_hadoop(uri: str, table: str, location: str | None) -> str:
    """A file of the store as Hadoop's file systems name it."""
    if location is not None:
        return "/".join([location.rstrip("/"), table, *uri.split("/")[-2:]])
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return f"file:{uri}"  # a cluster's default file system is another
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"


def _escaped(path: str) -> str:
    """Spark takes a path for a pattern."""
    return "".join(f"\\{each}" if each in "\\*?[]{}" else each for each in path)


def _grouped(pairs: Iterable[tuple[Any, T]]) -> dict[Any, tuple[T, ...]]:
    groups: dict[Any, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return {key: tuple(values) for key, values in groups.items()}
