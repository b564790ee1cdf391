"""One step forward on Spark: from a set of records at one node to those that they went into.

The same moves as in `walk.forward`, case by case. What follows from the topology alone moves a set as it is.
Only where a node has flows, they are joined with the set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.flow_queries import FlowQueries
from lineage_service.tracing.spark.frontiers import Frontier, Move, Part, SparkFrontiers
from lineage_service.tracing.walk.id_lookup import POSITION_BITS, mark_of
from spark_agent import contract

__all__ = ["SparkForwardSteps"]


class SparkForwardSteps:
    """The steps of one walk, over its frontiers."""

    def __init__(self, frontiers: SparkFrontiers) -> None:
        self._frontiers, self._snapshot = frontiers, frontiers.snapshot
        self._graph, self._topology = frontiers.snapshot.graph, frontiers.snapshot.graph.topology
        self._flows = FlowQueries(frontiers)

    def step(self, node: int, frontier: Frontier, hops: int) -> None:
        """Add the outputs that the records at `node` went into, which are found after `hops` operations."""
        self._frontiers.hops = hops
        self._follow_links(node, frontier)
        for reader in filter(self._matters, self._graph.unresolved_from.get(node, ())):
            self._frontiers.add_every_record(reader, frontier, self._graph.unresolved_at[reader])
        self._frontiers.is_exact &= not self._graph.may_be_lost(node, frontier.spread)
        for child in filter(self._matters, self._topology.children.get(node, ())):
            relation = self._topology.nodes[child].relation
            of_relation = _BY_RELATION.get(relation, SparkForwardSteps._through_runs)
            of_relation(self, node, child, frontier)
        self._follow_ids(node, frontier)

    def _matters(self, node: int) -> bool:
        return self._frontiers.towards is None or node in self._frontiers.towards

    def _follow_links(self, node: int, frontier: Frontier) -> None:
        """To the runs that read these outputs, where that is known without flows."""
        moves: dict[int, list[Move]] = defaultdict(list)
        for link in self._graph.links_from.get(node, ()):
            is_read = link.parent_run in frontier.spread and link.run in self._graph.live
            if is_read and link.node != node and self._matters(link.node):
                moves[link.node].append(Move(link.parent_run, 0, link.count, link.run, link.start))
        for reader, of_reader in moves.items():
            self._frontiers.add_moved(reader, frontier, of_reader)

    # -- by the relation of the child ----------------------------------------------------------------

    def _into_all(self, node: int, child: int, frontier: Frontier) -> None:
        """The upper bound of an operation that is not captured: all its records."""
        self._frontiers.add_every_record(child, frontier, self._graph.runs_of(child))

    def _into_groups(self, node: int, child: int, frontier: Frontier) -> None:
        """The keys of a set, whatever runs they are of."""
        self._frontiers.is_exact &= self._topology.nodes[child].exact
        run = self._topology.groups[child]
        if frontier.is_held:
            rows = tuple({(*origin, run, position) for *origin, _, position in frontier.rows})
            part = Part(self._frontiers.hops, rows=rows, is_light=True)
        else:
            keys = self._frontiers.frame(frontier).withColumn("run", F.lit(run).cast("bigint"))
            part = Part(self._frontiers.hops, keys.select(*self._frontiers.columns))
        self._frontiers.add_part(child, part)

    def _into_result(self, node: int, child: int, frontier: Frontier) -> None:
        """The one record of an aggregating action."""
        entered = self._frontiers.only(frontier, self._topology.entered.get(child, ()))
        if entered.spread:
            result = self._topology.result_of[child]
            self._frontiers.add_every_record(child, entered, [result], is_exact=True)

    def _through_runs(self, node: int, child: int, frontier: Frontier) -> None:
        """Within the runs that hold both nodes, and from those that wrote a shuffle to its readers."""
        graph, at = self._graph, self._topology.nodes[child]
        in_run = [run for run in frontier.spread if graph.parent_in_run.get((run, child)) == node]
        flowing = [run for run in in_run if graph.is_flowing(child, run)]
        if still := set(in_run) - set(flowing):
            if at.relation == contract.IDENTITY:
                self._frontiers.add(child, self._frontiers.only(frontier, still))
            elif at.relation == contract.PARTITION:
                in_runs = self._frontiers.only(frontier, still)
                self._frontiers.add_every_record_of_each(child, in_runs, is_exact=at.exact)
        if flowing:
            self._follow_flows(child, self._frontiers.only(frontier, flowing))
        written = self._frontiers.only(frontier, [run for run in frontier.spread if run in graph.readers_of])
        if written.spread:
            self._follow_shuffle(child, written)

    # -- flows ---------------------------------------------------------------------------------------

    def _follow_flows(self, child: int, frontier: Frontier) -> None:
        """Within a run: from the node before `child` to `child`."""
        flows = self._flows.near(self._flows.of(child), "f_run", "in_pos", frontier, is_span=True)
        flows = flows.where("in_run IS NULL")
        # One input, any number of outputs: flatMap, and everything that names single positions.
        single = flows.where("in_step = 0 OR out_count = 1")
        outputs = self._flows.joined(frontier, single, "f_run", "in_pos")
        self._add_outputs(child, frontier, outputs, self._outputs(child))
        if child in self._graph.blocks.stepping:
            spans = flows.where("in_step = 1 AND out_count > 1")
            outputs = self._flows.inside(frontier, spans, "f_run", "in_pos")
            self._add_outputs(child, frontier, outputs, F.expr("out_pos + pos - in_pos"))

    def _follow_shuffle(self, child: int, written: Frontier) -> None:
        """From the runs that wrote a shuffle to those that read it; several jobs may have read it."""
        if child in self._graph.blocks.stepping:
            spans = self._flows.near(self._flows.of(child), "in_run", "in_pos", written, is_span=True)
            if child in self._graph.blocks.repeating:  # a span of step 0 is one record, all of it
                single = self._flows.joined(written, spans.where("in_step = 0"), "in_run", "in_pos")
                self._add_outputs(child, written, single, self._outputs(child))
                spans = spans.where("in_step = 1")
            outputs = self._flows.inside(written, spans, "in_run", "in_pos")
            self._add_outputs(child, written, outputs, F.expr("out_pos + pos - in_pos"))
        if child in self._graph.blocks.pairing:
            flows = self._flows.near(self._flows.of(child), "in_run", "in_pos", written)
            pairs = self._flows.joined(written, flows, "in_run", "in_pos")
            self._add_outputs(child, written, pairs, F.col("out_pos"))

    def _follow_ids(self, node: int, frontier: Frontier) -> None:
        """To the nodes that name records of this one by their ids."""
        targets = [
            target
            for target in self._topology.id_targets.get(node, ())
            if target in self._topology.nodes and self._matters(target) and self._graph.runs_of(target)
        ]
        if not targets:
            return
        ids, bounds = self._ids(node, frontier)
        for target in targets:
            flows = self._snapshot.among(self._flows.of(target), "f_run", self._graph.runs_of(target))
            named = (F.col("in_run") == mark_of(node)) & F.col("in_pos").between(*bounds)
            readers = ids.join(flows.where(named), F.col("pos") == F.col("in_pos"))
            self._add_outputs(target, frontier, readers, F.col("out_pos"))

    def _ids(self, node: int, frontier: Frontier) -> tuple[DataFrame, tuple[int, int]]:
        """The set with ids for positions, and the smallest and the largest one."""
        ids, bounds = self._frontiers.small(frontier), frontier.bounds
        if node not in self._topology.groups:
            ids = ids.join(F.broadcast(self._flows.runs_by_partition(node)), "run")
            ids = ids.withColumn("pos", F.expr(f"shiftleft(partition_id, {POSITION_BITS}) + pos"))
            every = [
                (self._topology.runs[run].partition << POSITION_BITS) + position
                for run, spread in frontier.spread.items()
                for position in (spread.first, spread.last)
            ]
            bounds = min(every), max(every)
        if frontier.records <= self._frontiers.broadcast_records:
            ids = F.broadcast(ids)
        return ids, bounds

    def _outputs(self, node: int) -> Column:
        if node in self._graph.blocks.spanning:
            return F.explode(F.expr("sequence(out_pos, out_pos + out_count - 1)"))
        return F.col("out_pos")

    def _add_outputs(self, node: int, frontier: Frontier, flows: DataFrame, position: Column) -> None:
        columns = [F.col("f_run").alias("run"), position.alias("pos")]
        outputs = flows.select(*self._frontiers.origin_columns, *columns)
        # The store also holds flows of runs that Spark did not accept.
        runs = self._graph.runs_of(node)
        outputs = self._snapshot.among(outputs, "run", runs)
        topology = self._topology
        if limited := [(run, topology.runs[run].outputs) for run in runs if run in topology.limited]:
            table = self._snapshot.table("run bigint, records bigint", limited)
            outputs = outputs.join(F.broadcast(table), "run").where("pos < records").drop("records")
        self._frontiers.add_found(node, outputs, frontier)


_BY_RELATION: Mapping[str, Callable[[SparkForwardSteps, int, int, Frontier], None]] = {
    contract.DATASET: SparkForwardSteps._into_all,
    contract.KEYED: SparkForwardSteps._into_groups,
    contract.AGGREGATE: SparkForwardSteps._into_result,
}
