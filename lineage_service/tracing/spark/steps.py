"""One step of a trace on Spark: from a set of records at one node to the records next to it.

The same moves as in `steps`, case by case. What follows from the topology alone moves a set as it is; only
where a node has flows, they are joined with the set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lineage_service.tracing.spark.sets import Frontier, Part, Ranges, SparkSets, Spread
from lineage_service.tracing.walk.id_lookup import POSITION_BITS, mark_of
from spark_agent import contract

#: Spans are found by the stretch of so many positions that they lie in: records of a stretch are compared
#: with its spans one by one.
_STRETCH = 64
#: More records of a run are listed in pieces, so that a task never holds an array of all.
_PIECE = 1_000_000


class SparkWalk(SparkSets):
    """A walk's sets, and its steps."""

    # -- backward ------------------------------------------------------------------------------------

    def backward(self, node: int, frontier: Frontier, hops: int) -> None:
        """Add the inputs of the records at `node`, which are found after `hops` operations."""
        self._hops = hops
        relation, nodes = (
            self.snapshot.graph.topology.nodes[node].relation,
            self.snapshot.graph.topology.nodes,
        )
        if relation == contract.DATASET:
            self._every_input(node, frontier)
            return
        if relation == contract.AGGREGATE:
            entered = self.snapshot.graph.topology.entered.get(node, ())
            runs = [run for run in entered if run in self.snapshot.graph.live]
            for parent in nodes[node].parents:
                self._every_record(parent, frontier, runs, is_exact=True)
            return
        if relation == contract.KEYED:
            self._with_the_keys(node, frontier)
            return
        ranges: dict[int, Ranges] = defaultdict(list)
        for link in self.snapshot.graph.links_of.get(node, ()):
            if link.run in frontier.spread and link.parent_node != node:
                moved = (link.run, link.start, link.start + link.count, link.parent_run, -link.start)
                ranges[link.parent_node].append(moved)
        for parent, moves in ranges.items():
            self.add_moved(parent, frontier, moves)
        topology = self.snapshot.graph.topology
        unresolved = [
            run for run in frontier.spread if run in topology.unresolved and topology.runs[run].input == node
        ]
        if unresolved:
            self.is_exact = False  # also where no run has read what they come from
            self._every_input(node, self.only(frontier, unresolved))
        if nodes[node].by_id and relation in (contract.FLOWS, contract.SOURCE):
            self._backward_ids(node, frontier)
            return
        flowing = [run for run in frontier.spread if self.snapshot.graph.is_flowing(node, run)]
        still = self.only(frontier, frontier.spread.keys() - set(flowing))
        for before, runs in self._by_parent(node, still.spread).items():
            if before is not None and relation == contract.IDENTITY:
                self.add(before, self.only(still, runs))
            elif before is not None and relation == contract.PARTITION:
                self._every_record_of_each(before, self.only(still, runs), is_exact=nodes[node].exact)
        if flowing:
            self._backward_flows(node, self.only(frontier, flowing))

    def _with_the_keys(self, node: int, frontier: Frontier) -> None:
        """Groups are made of the records with their keys, in whatever run."""
        for parent in self.snapshot.graph.topology.nodes[node].parents:
            flows = self.snapshot.among(self._flows(parent), "f_run", self.snapshot.graph.runs_of(parent))
            first, last = _bounds(frontier)
            flows = flows.where(F.col("out_pos").between(first, last))
            grouped_rows = self._small(frontier).drop("run").join(flows, F.col("pos") == F.col("out_pos"))
            self._add_found(parent, grouped_rows.withColumnRenamed("f_run", "run"), frontier)

    def _backward_ids(self, node: int, frontier: Frontier) -> None:
        """Rows of a node with ids name records of its sources."""
        topology = self.snapshot.graph.topology
        sources = [source for source in topology.id_sources.get(node, ()) if source in topology.nodes]
        if not sources:
            return
        flows = self._near(self._flows(node), "f_run", "out_pos", frontier)
        on = (F.col("run") == F.col("f_run")) & (F.col("pos") == F.col("out_pos"))
        named = self._small(frontier).join(flows, on).drop("run", "pos")
        if len(sources) > 1:
            named = self._kept(named)
        for source in sources:
            part = named.where(F.col("in_run") == mark_of(source))
            groups = topology.groups.get(source)
            if groups is not None:
                part = part.withColumns({"run": F.lit(groups), "pos": F.col("in_pos")})
                self._add_found(source, part, frontier)
                continue
            partition = F.expr(f"shiftright(in_pos, {POSITION_BITS})")
            position = F.expr(f"in_pos & {(1 << POSITION_BITS) - 1}")
            part = part.withColumns({"split": partition, "pos": position})
            table = self._runs_by_partition(source)
            # A split whose manifest has not arrived.
            self.is_exact = self.is_exact and part.join(F.broadcast(table), "split", "left_anti").isEmpty()
            self._add_found(source, part.join(F.broadcast(table), "split"), frontier)

    def _runs_by_partition(self, node: int) -> DataFrame:
        run_of_partition = self.snapshot.graph.topology.run_of_partition.items()
        rows = [(partition, run) for (of, partition), run in run_of_partition if of == node]
        return self.snapshot.table("split bigint, run bigint", rows)

    def _by_parent(self, node: int, runs: Iterable[int]) -> dict[int | None, list[int]]:
        """Runs by the node before `node` in them; None: there is none."""
        by_parent: dict[int | None, list[int]] = defaultdict(list)
        for run in runs:
            by_parent[self.snapshot.graph.parent_in_run.get((run, node))].append(run)
        return by_parent

    def _backward_flows(self, node: int, frontier: Frontier) -> None:
        flows = self._flows(node)
        reads_others = any(
            self.snapshot.flows.writers_of.get((node, run), frozenset()) - {None} for run in frontier.spread
        )
        writer = F.coalesce("in_run", "f_run") if reads_others else F.col("f_run")
        position = F.col("in_pos")
        if node in self.snapshot.graph.blocks.spanning and node not in self.snapshot.graph.blocks.pairing:
            spans = self._near(flows, "f_run", "out_pos", frontier, is_span=True)
            inputs = self._inside(frontier, spans, "f_run", "out_pos")
            position = F.expr("in_pos + (pos - out_pos) * in_step")
        else:
            flows = self._near(flows, "f_run", "out_pos", frontier)
            on = (F.col("run") == F.col("f_run")) & (F.col("pos") == F.col("out_pos"))
            inputs = self._small(frontier).join(flows, on)
        origin = ["origin"] if self.has_origins else []
        # A pair that names a run means its last node, whichever run that is.
        is_other = F.col("in_run").isNotNull()
        if node not in self.snapshot.graph.blocks.pairing:
            is_other &= F.col("in_run") != F.col("f_run")
        inputs = inputs.select(
            *origin, writer.alias("run"), position.alias("pos"), is_other.alias("is_other")
        )
        self._add_inputs(node, frontier, inputs)

    def _add_inputs(self, node: int, frontier: Frontier, inputs: DataFrame) -> None:
        """The input is at the node before in the run, or at what another run wrote for `node` to read."""
        targets: dict[tuple[bool, int | None], list[int]] = {}
        reads_itself: list[int] = []
        for run in frontier.spread:
            writers = self.snapshot.flows.writers_of.get((node, run), frozenset({None}))
            itself = {None} if node in self.snapshot.graph.blocks.pairing else {None, run}
            if writers & itself:
                reads_itself.append(run)
            for writer in writers - itself:
                if writer is not None:
                    targets.setdefault((True, self.snapshot.graph.written_at(node, writer)), []).append(
                        writer
                    )
        for parent, runs in self._by_parent(node, reads_itself).items():
            targets[False, parent] = runs
        if len(targets) > 1:
            inputs = self._kept(inputs)
        for (is_other, target), runs in targets.items():
            part = inputs
            if len(targets) > 1:
                part = inputs.where(F.col("is_other") if is_other else ~F.col("is_other"))
                part = self.snapshot.among(part, "run", set(runs))
            if target is None or target not in self.snapshot.graph.topology.nodes:
                # A writer whose manifest has not arrived, or that was not captured.
                self.is_exact = self.is_exact and part.isEmpty()
            else:
                self._add_found(target, part, frontier)

    def _every_input(self, node: int, frontier: Frontier) -> None:
        """The bound of an operation that is not captured: all records of all its inputs."""
        is_sink = self.snapshot.graph.topology.nodes[node].kind == "sink"
        for parent in self.snapshot.graph.upper_bound_of(node):
            if is_sink:
                self._every_record_of_each(parent, frontier)
            else:
                self._every_record(parent, frontier, self.snapshot.graph.runs_of(parent))

    # -- forward -------------------------------------------------------------------------------------

    def forward(self, node: int, frontier: Frontier, hops: int) -> None:
        """Add the outputs that the records at `node` went into."""
        self._hops = hops
        ranges: dict[int, Ranges] = defaultdict(list)
        for link in self.snapshot.graph.links_from.get(node, ()):
            is_read = link.parent_run in frontier.spread and link.run in self.snapshot.graph.live
            if is_read and link.node != node and self._matters(link.node):
                ranges[link.node].append((link.parent_run, 0, link.count, link.run, link.start))
        for reader, moves in ranges.items():
            self.add_moved(reader, frontier, moves)
        for reader in filter(self._matters, self.snapshot.graph.unresolved_from.get(node, ())):
            self._every_record(reader, frontier, self.snapshot.graph.unresolved_at[reader])
        self.is_exact = self.is_exact and not self.snapshot.graph.may_be_lost(node, frontier.spread)
        for child in filter(self._matters, self.snapshot.graph.topology.children.get(node, ())):
            self._forward_to(node, child, frontier)
        self._forward_ids(node, frontier)

    def _forward_ids(self, node: int, frontier: Frontier) -> None:
        """To the nodes that name records of this one by their ids."""
        topology = self.snapshot.graph.topology
        targets = [
            target
            for target in topology.id_targets.get(node, ())
            if target in topology.nodes and self._matters(target) and self.snapshot.graph.runs_of(target)
        ]
        if not targets:
            return
        ids, bounds = self._small(frontier), _bounds(frontier)
        if node not in topology.groups:
            ids = ids.join(F.broadcast(self._runs_by_partition(node)), "run")
            ids = ids.withColumn("pos", F.expr(f"shiftleft(split, {POSITION_BITS}) + pos"))
            every = [
                (topology.runs[run].partition << POSITION_BITS) + position
                for run, spread in frontier.spread.items()
                for position in (spread.first, spread.last)
            ]
            bounds = min(every), max(every)
        if frontier.records <= self.broadcast_records:
            ids = F.broadcast(ids)
        for target in targets:
            flows = self.snapshot.among(self._flows(target), "f_run", self.snapshot.graph.runs_of(target))
            named = (F.col("in_run") == mark_of(node)) & F.col("in_pos").between(*bounds)
            readers = ids.join(flows.where(named), F.col("pos") == F.col("in_pos"))
            self._add_outputs(target, frontier, readers, F.col("out_pos"))

    def _matters(self, node: int) -> bool:
        return self.towards is None or node in self.towards

    def _forward_to(self, node: int, child: int, frontier: Frontier) -> None:
        topology = self.snapshot.graph.topology
        relation = topology.nodes[child].relation
        if relation == contract.DATASET:
            self._every_record(child, frontier, self.snapshot.graph.runs_of(child))
            return
        if relation == contract.KEYED:
            self._add_part(child, self._of_groups(topology.groups[child], frontier))
            return
        if relation == contract.AGGREGATE:
            entered = self.only(frontier, topology.entered.get(child, ()))
            if entered.spread:
                self._every_record(child, entered, [topology.result_of[child]], is_exact=True)
            return
        in_run = [
            run for run in frontier.spread if self.snapshot.graph.parent_in_run.get((run, child)) == node
        ]
        flowing = [run for run in in_run if self.snapshot.graph.is_flowing(child, run)]
        if still := set(in_run) - set(flowing):
            if relation == contract.IDENTITY:
                self.add(child, self.only(frontier, still))
            elif relation == contract.PARTITION:
                is_exact = topology.nodes[child].exact
                self._every_record_of_each(child, self.only(frontier, still), is_exact=is_exact)
        if flowing:
            self._forward_flows(child, self.only(frontier, flowing))
        written = self.only(
            frontier, [run for run in frontier.spread if run in self.snapshot.graph.readers_of]
        )
        if written.spread and child in self.snapshot.graph.blocks.stepping:
            self._forward_shuffle(child, written)
        if written.spread and child in self.snapshot.graph.blocks.pairing:
            flows = self._near(self._flows(child), "in_run", "in_pos", written)
            on = (F.col("run") == F.col("in_run")) & (F.col("pos") == F.col("in_pos"))
            pairs = self._small(written).join(flows, on)
            self._add_outputs(child, written, pairs, F.col("out_pos"))

    def _of_groups(self, run: int, frontier: Frontier) -> Part:
        """The keys of a set, whatever runs they are of."""
        if frontier.is_held:
            rows = tuple({(*origin, run, position) for *origin, _, position in frontier.rows})
            return Part(self._hops, rows=rows, is_light=True)
        keys = self.frame(frontier).withColumn("run", F.lit(run).cast("bigint")).select(*self.columns)
        return Part(self._hops, keys, is_light=frontier.is_held)

    def _forward_flows(self, child: int, frontier: Frontier) -> None:
        """Within a run: from the node before `child` to `child`."""
        flows = self._near(self._flows(child), "f_run", "in_pos", frontier, is_span=True).where(
            "in_run IS NULL"
        )
        # One input, any number of outputs: flatMap, and everything that names single positions.
        on = (F.col("run") == F.col("f_run")) & (F.col("pos") == F.col("in_pos"))
        single = self._small(frontier).join(flows.where("in_step = 0 OR out_count = 1"), on)
        self._add_outputs(child, frontier, single, self._outputs(child))
        if child in self.snapshot.graph.blocks.stepping:
            spans = flows.where("in_step = 1 AND out_count > 1")
            outputs = self._inside(frontier, spans, "f_run", "in_pos")
            self._add_outputs(child, frontier, outputs, F.expr("out_pos + pos - in_pos"))

    def _forward_shuffle(self, child: int, written: Frontier) -> None:
        """From the runs that wrote a shuffle to those that read it; several jobs may have read it."""
        spans = self._near(self._flows(child), "in_run", "in_pos", written, is_span=True)
        if child in self.snapshot.graph.blocks.repeating:  # a span of step 0 is one record, all of it
            on = (F.col("run") == F.col("in_run")) & (F.col("pos") == F.col("in_pos"))
            single = self._small(written).join(spans.where("in_step = 0"), on)
            self._add_outputs(child, written, single, self._outputs(child))
            spans = spans.where("in_step = 1")
        outputs = self._inside(written, spans, "in_run", "in_pos")
        self._add_outputs(child, written, outputs, F.expr("out_pos + pos - in_pos"))

    def _outputs(self, node: int) -> Column:
        if node in self.snapshot.graph.blocks.spanning:
            return F.explode(F.expr("sequence(out_pos, out_pos + out_count - 1)"))
        return F.col("out_pos")

    def _add_outputs(self, node: int, frontier: Frontier, flows: DataFrame, position: Column) -> None:
        origin = ["origin"] if self.has_origins else []
        outputs = flows.select(*origin, F.col("f_run").alias("run"), position.alias("pos"))
        # The store also holds flows of runs that Spark did not accept.
        runs = self.snapshot.graph.runs_of(node)
        outputs = self.snapshot.among(outputs, "run", runs)
        topology = self.snapshot.graph.topology
        if limited := [(run, topology.runs[run].outputs) for run in runs if run in topology.limited]:
            table = self.snapshot.table("run bigint, records bigint", limited)
            outputs = outputs.join(F.broadcast(table), "run").where("pos < records").drop("records")
        self._add_found(node, outputs, frontier)

    # -- shared --------------------------------------------------------------------------------------

    def _flows(self, node: int) -> DataFrame:
        return (
            self.snapshot.flows.frame.where(F.col("node") == node)
            .withColumnRenamed("run", "f_run")
            .drop("node")
        )

    def _near(
        self, flows: DataFrame, run: str, position: str, frontier: Frontier, *, is_span: bool = False
    ) -> DataFrame:
        """Flows that may meet `frontier`: what Parquet's statistics pass over is not read."""
        last = max((spread.last for spread in frontier.spread.values()), default=-1)
        near = self.snapshot.among(flows, run, frontier.spread.keys()).where(F.col(position) <= last)
        if not is_span:
            first = min((spread.first for spread in frontier.spread.values()), default=0)
            near = near.where(F.col(position) >= first)
        return near

    def _inside(self, frontier: Frontier, spans: DataFrame, run: str, begin: str) -> DataFrame:
        """Each record with the spans of its run that it lies in; `begin` is a span's first position there."""
        last = f"{begin} + out_count - 1"
        stretches = F.expr(f"explode(sequence({begin} div {_STRETCH}, ({last}) div {_STRETCH}))")
        spans = spans.where("out_count > 0").select("*", stretches.alias("stretch"))
        on = (
            (F.col("run") == F.col(run))
            & (F.expr(f"pos div {_STRETCH}") == F.col("stretch"))
            & F.expr(f"pos >= {begin} AND pos <= {last}")
        )
        return self._small(frontier).join(spans, on)

    def _every_record(
        self, node: int, frontier: Frontier, runs: Iterable[int], *, is_exact: bool = False
    ) -> None:
        """All records of `runs`, for whatever is in the set."""
        if not frontier.spread:
            return
        self.is_exact &= is_exact
        records = self._listed(node, runs)
        if self.has_origins:
            records = records.crossJoin(F.broadcast(self.frame(frontier).select("origin").distinct()))
        self._add_found(node, records, frontier)

    def _every_record_of_each(self, node: int, frontier: Frontier, *, is_exact: bool = False) -> None:
        """All records of each run that is in the set."""
        if not frontier.spread:
            return
        self.is_exact &= is_exact
        records = self._listed(node, frontier.spread)
        if self.has_origins:
            origins = self.frame(frontier).select("origin", "run").distinct()
            records = records.join(F.broadcast(origins), "run")
        self._add_found(node, records, frontier)

    def ranged(self, run: int, first: int, count: int) -> Frontier:
        """A set of so many records of a run that stand side by side."""
        if count <= max(self.held_records, 1):
            return self.of_rows([(run, position) for position in range(first, first + count)])
        return Frontier({run: Spread(count, first, first + count - 1)}, self._ranges([(run, first, count)]))

    def _listed(self, node: int, runs: Iterable[int]) -> DataFrame:
        """All records of a node in runs."""
        return self._ranges((run, 0, self.snapshot.graph.count(node, run)) for run in runs)

    def _ranges(self, ranges: Iterable[tuple[int, int, int]]) -> DataFrame:
        """So many records of each (run, first position, number of records)."""
        pieces = [
            (run, low, min(low + _PIECE, first + count) - 1)
            for run, first, count in ranges
            for low in range(first, first + count, _PIECE)
        ]
        table = self.snapshot.table("run bigint, low bigint, high bigint", pieces)
        if sum(high - low for _, low, high in pieces) > _PIECE:  # each task lists some
            table = table.repartition(min(len(pieces), 200), "run", "low")
        return table.select("run", F.explode(F.expr("sequence(low, high)")).alias("pos"))


def _bounds(frontier: Frontier) -> tuple[int, int]:
    """The first and the last position in a set."""
    spreads = frontier.spread.values()
    return min(spread.first for spread in spreads), max(spread.last for spread in spreads)
