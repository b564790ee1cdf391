"""One step backward on Spark: from a set of records at one node to those that they were made of.

The same moves as in `walk.backward`, case by case. What follows from the topology alone moves a set as it is.
Only where a node has flows, they are joined with the set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.flow_queries import FlowQueries
from lineage_service.tracing.spark.frontiers import Frontier, Move, SparkFrontiers
from lineage_service.tracing.walk.id_lookup import POSITION_BITS, mark_of
from spark_agent import contract

__all__ = ["SparkBackwardSteps"]


class SparkBackwardSteps:
    """The steps of one walk, over its frontiers."""

    def __init__(self, frontiers: SparkFrontiers) -> None:
        self._frontiers, self._snapshot = frontiers, frontiers.snapshot
        self._graph, self._topology = frontiers.snapshot.graph, frontiers.snapshot.graph.topology
        self._flows = FlowQueries(frontiers)

    def step(self, node: int, frontier: Frontier, hops: int) -> None:
        """Add the inputs of the records at `node`, which are found after `hops` operations."""
        self._frontiers.hops = hops
        at = self._topology.nodes[node]
        of_relation = _BY_RELATION.get(at.relation)
        if of_relation is not None:
            of_relation(self, node, frontier)
            return
        self._follow_links(node, frontier)
        self._bound_unresolved(node, frontier)
        if at.by_id and at.relation in (contract.FLOWS, contract.SOURCE):
            self._follow_ids(node, frontier)
            return
        flowing = [run for run in frontier.spread if self._graph.is_flowing(node, run)]
        self._within_runs(node, self._frontiers.only(frontier, frontier.spread.keys() - set(flowing)))
        if flowing:
            self._follow_flows(node, self._frontiers.only(frontier, flowing))

    # -- relations that need no flows ----------------------------------------------------------------

    def _every_input(self, node: int, frontier: Frontier) -> None:
        """The upper bound of an operation that is not captured: all records of all its inputs."""
        is_sink = self._topology.nodes[node].kind == "sink"
        for parent in self._graph.upper_bound_of(node):
            if is_sink:
                self._frontiers.add_every_record_of_each(parent, frontier)
            else:
                self._frontiers.add_every_record(parent, frontier, self._graph.runs_of(parent))

    def _everything_that_entered(self, sink: int, frontier: Frontier) -> None:
        """The one record of an aggregating action: made of all that its jobs read."""
        for parent in self._topology.nodes[sink].parents:
            runs = [run for run in self._topology.entered_from(sink, parent) if run in self._graph.live]
            self._frontiers.add_every_record(parent, frontier, runs, is_exact=True)

    def _with_the_keys(self, node: int, frontier: Frontier) -> None:
        """Groups are made of the records with their keys, in whatever run."""
        self._frontiers.is_exact &= self._topology.nodes[node].exact
        for parent in self._topology.nodes[node].parents:
            flows = self._snapshot.among(self._flows.of(parent), "f_run", self._graph.runs_of(parent))
            flows = flows.where(F.col("out_pos").between(*frontier.bounds))
            groups = self._frontiers.small(frontier).drop("run")
            rows = groups.join(flows, F.col("pos") == F.col("out_pos"))
            self._frontiers.add_found(parent, rows.withColumnRenamed("f_run", "run"), frontier)

    def _follow_links(self, node: int, frontier: Frontier) -> None:
        """To the runs whose outputs were read, where that is known without flows."""
        moves: dict[int, list[Move]] = defaultdict(list)
        for link in self._graph.links_of.get(node, ()):
            if link.run in frontier.spread and link.parent_node != node:
                end = link.start + link.count
                moves[link.parent_node].append(Move(link.run, link.start, end, link.parent_run, -link.start))
        for parent, of_parent in moves.items():
            self._frontiers.add_moved(parent, frontier, of_parent)

    def _bound_unresolved(self, node: int, frontier: Frontier) -> None:
        unresolved = [
            run
            for run in frontier.spread
            if run in self._topology.unresolved and self._topology.runs[run].input == node
        ]
        if unresolved:
            self._frontiers.is_exact = False  # also where no run has read what they come from
            self._every_input(node, self._frontiers.only(frontier, unresolved))

    def _within_runs(self, node: int, frontier: Frontier) -> None:
        """To the node before in each run, where there are no flows."""
        at = self._topology.nodes[node]
        for before, runs in self._by_parent(node, frontier.spread).items():
            if before is not None and at.relation == contract.IDENTITY:
                self._frontiers.add(before, self._frontiers.only(frontier, runs))
            elif before is not None and at.relation == contract.PARTITION:
                in_runs = self._frontiers.only(frontier, runs)
                self._frontiers.add_every_record_of_each(before, in_runs, is_exact=at.exact)

    def _by_parent(self, node: int, runs: Iterable[int]) -> dict[int | None, list[int]]:
        """Runs by the node before `node` in them; None: there is none."""
        by_parent: dict[int | None, list[int]] = defaultdict(list)
        for run in runs:
            by_parent[self._graph.parent_in_run.get((run, node))].append(run)
        return by_parent

    # -- ids -----------------------------------------------------------------------------------------

    def _follow_ids(self, node: int, frontier: Frontier) -> None:
        """Rows of a node with ids name records of its sources."""
        sources = [
            source for source in self._topology.id_sources.get(node, ()) if source in self._topology.nodes
        ]
        if not sources:
            return
        flows = self._flows.near(self._flows.of(node), "f_run", "out_pos", frontier)
        named = self._flows.joined(frontier, flows, "f_run", "out_pos").drop("run", "pos")
        if len(sources) > 1:
            named = self._frontiers.computed_once(named)
        for source in sources:
            self._add_ids(source, named.where(F.col("in_run") == mark_of(source)), frontier)

    def _add_ids(self, source: int, named: DataFrame, frontier: Frontier) -> None:
        groups = self._topology.groups.get(source)
        if groups is not None:
            named = named.withColumns({"run": F.lit(groups), "pos": F.col("in_pos")})
            self._frontiers.add_found(source, named, frontier)
            return
        partition = F.expr(f"shiftright(in_pos, {POSITION_BITS})")
        position = F.expr(f"in_pos & {(1 << POSITION_BITS) - 1}")
        named = named.withColumns({"partition_id": partition, "pos": position})
        runs = F.broadcast(self._flows.runs_by_partition(source))
        if self._frontiers.is_exact and not self._topology.nodes[source].exact:
            self._frontiers.is_exact = named.isEmpty()
        if self._frontiers.is_exact:  # unless there is a partition whose manifest has not arrived
            self._frontiers.is_exact = named.join(runs, "partition_id", "left_anti").isEmpty()
        self._frontiers.add_found(source, named.join(runs, "partition_id"), frontier)

    # -- flows ---------------------------------------------------------------------------------------

    def _follow_flows(self, node: int, frontier: Frontier) -> None:
        blocks, writers_of = self._graph.blocks, self._snapshot.flows.writers_of
        reads_others = any(writers_of.get((node, run), frozenset()) - {None} for run in frontier.spread)
        writer = F.coalesce("in_run", "f_run") if reads_others else F.col("f_run")
        if node in blocks.spanning and node not in blocks.pairing:
            spans = self._flows.near(self._flows.of(node), "f_run", "out_pos", frontier, is_span=True)
            if node in blocks.ranging:
                inputs = self._flows.inside_ranges(frontier, spans)
            else:
                inputs = self._flows.inside(frontier, spans, "f_run", "out_pos")
            position = F.expr("in_pos + (pos - out_pos) * in_step")
        else:
            flows = self._flows.near(self._flows.of(node), "f_run", "out_pos", frontier)
            inputs = self._flows.joined(frontier, flows, "f_run", "out_pos")
            position = F.col("in_pos")
        # A pair that names a run means its last node, whichever run that is.
        is_other = F.col("in_run").isNotNull()
        if node not in blocks.pairing:
            is_other &= F.col("in_run") != F.col("f_run")
        columns = [writer.alias("run"), position.alias("pos"), is_other.alias("is_other")]
        self._add_inputs(node, frontier, inputs.select(*self._frontiers.origin_columns, *columns))

    def _add_inputs(self, node: int, frontier: Frontier, inputs: DataFrame) -> None:
        """The input is at the node before in the run, or at what another run wrote for `node` to read."""
        targets = self._targets(node, frontier)
        if len(targets) > 1:
            inputs = self._frontiers.computed_once(inputs)
        for (is_other, target), runs in targets.items():
            part = inputs
            if len(targets) > 1:
                part = inputs.where(F.col("is_other") if is_other else ~F.col("is_other"))
                part = self._snapshot.among(part, "run", set(runs))
            if target is not None and target in self._topology.nodes:
                self._frontiers.add_found(target, part, frontier)
            elif self._frontiers.is_exact:
                # Unless there is a writer whose manifest has not arrived, or that was not captured.
                self._frontiers.is_exact = part.isEmpty()

    def _targets(self, node: int, frontier: Frontier) -> Mapping[tuple[bool, int | None], list[int]]:
        """(is it of another run, node) -> the runs that hold inputs there."""
        targets: dict[tuple[bool, int | None], list[int]] = {}
        reads_itself: list[int] = []
        for run in frontier.spread:
            writers = self._snapshot.flows.writers_of.get((node, run), frozenset({None}))
            itself = {None} if node in self._graph.blocks.pairing else {None, run}
            if writers & itself:
                reads_itself.append(run)
            for writer in writers - itself:
                if writer is not None:
                    targets.setdefault((True, self._graph.written_at(node, writer)), []).append(writer)
        for parent, runs in self._by_parent(node, reads_itself).items():
            targets[False, parent] = runs
        return targets


_BY_RELATION: Mapping[str, Callable[[SparkBackwardSteps, int, Frontier], None]] = {
    contract.DATASET: SparkBackwardSteps._every_input,
    contract.AGGREGATE: SparkBackwardSteps._everything_that_entered,
    contract.KEYED: SparkBackwardSteps._with_the_keys,
}
