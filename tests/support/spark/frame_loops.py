"""Loops over DataFrames as people write them: functions of two tables of a graph, which give a DataFrame.

Each keeps what a turn makes in its own way: reliable and local checkpoints, caches, `persist` with
`unpersist`; and ends in its own way: after some turns, or when nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.support.label_propagation import propagated

Edge = tuple[int, int]
EDGES: tuple[Edge, ...] = (
    *((1, 2), (2, 3), (3, 4), (2, 4), (4, 5)),
    *((7, 8), (8, 9), (9, 7)),
    *((10, 11), (13, 14)),
)
NODES = tuple(range(1, 15))


@dataclass(frozen=True)
class Graph:
    """Files of edges and nodes, read anew where they are asked for."""

    spark: SparkSession
    folder: Path

    @property
    def edges(self) -> DataFrame:
        return self.spark.read.schema("src int, dst int").csv(str(self.folder / "edges.csv"))

    @property
    def both(self) -> DataFrame:
        """Each edge in both directions."""
        edges = self.edges
        return edges.union(edges.select(F.col("dst").alias("src"), F.col("src").alias("dst")))

    @property
    def nodes(self) -> DataFrame:
        return self.spark.read.schema("id int").csv(str(self.folder / "nodes.csv"))


def write(folder: Path, edges: Iterable[Any] = EDGES, nodes: Iterable[Any] = NODES) -> None:
    folder.mkdir(parents=True)
    (folder / "edges.csv").write_text("".join(f"{src},{dst}\n" for src, dst in edges))
    (folder / "nodes.csv").write_text("".join(f"{node}\n" for node in nodes))


def followed(paths: DataFrame, edges: DataFrame) -> DataFrame:
    """The paths, and one edge more."""
    on = F.col("path.dst") == F.col("edge.src")
    joined = paths.alias("path").join(edges.alias("edge"), on)
    return joined.select(F.col("path.src").alias("src"), F.col("edge.dst").alias("dst"))


def closure(graph: Graph) -> DataFrame:
    """Until their number stays: reliable checkpoints."""
    edges = graph.edges.cache()
    paths = edges.distinct().checkpoint()
    before, count = -1, paths.count()
    while count != before:
        before = count
        paths = paths.union(followed(paths, edges)).distinct().checkpoint()
        count = paths.count()
    return paths


def closure_of_new_paths(graph: Graph) -> DataFrame:
    """Only new paths are followed: `subtract` and local checkpoints."""
    edges = graph.edges.cache()
    paths = new = edges.distinct().cache()
    while True:
        new = followed(new, edges).subtract(paths).localCheckpoint()
        if new.isEmpty():
            return paths
        paths = paths.union(new).localCheckpoint()


def distances(graph: Graph) -> DataFrame:
    """Breadth first from node 1: what was not seen is found by an anti join."""
    both = graph.both.persist()
    frontier = graph.nodes.where("id = 1").withColumn("distance", F.lit(0)).localCheckpoint()
    seen, distance = frontier, 0
    while not frontier.isEmpty():
        distance += 1
        reached = frontier.join(both, frontier.id == both.src).select(F.col("dst").alias("id")).distinct()
        new = reached.join(seen, "id", "left_anti")
        frontier = new.withColumn("distance", F.lit(distance)).localCheckpoint()
        seen = seen.union(frontier).localCheckpoint()
    return seen


def components(graph: Graph) -> DataFrame:
    """The smallest node of each component, while one changes: `persist`, and `unpersist` a turn later."""
    both = graph.both.distinct().persist()
    labels = graph.nodes.withColumn("label", F.col("id")).persist()
    is_changed = True
    while is_changed:
        sent = labels.join(both, labels.id == both.src).groupBy("dst").agg(F.min("label").alias("least"))
        joined = labels.join(sent, labels.id == sent.dst, "left")
        smaller = joined.select("id", F.least("label", "least").alias("label")).persist()
        is_changed = not smaller.subtract(labels).isEmpty()
        labels.unpersist()
        labels = smaller
    return labels


def large_star(edges: DataFrame) -> DataFrame:
    both = edges.union(edges.selectExpr("dst as src", "src as dst"))
    least = both.groupBy("src").agg(F.min("dst").alias("least"))
    joined = both.join(least.select("src", F.least("src", "least").alias("least")), "src")
    return joined.where("dst > src").select(F.col("dst").alias("src"), F.col("least").alias("dst")).distinct()


def small_star(edges: DataFrame) -> DataFrame:
    down = edges.select(F.greatest("src", "dst").alias("src"), F.least("src", "dst").alias("dst"))
    least = down.groupBy("src").agg(F.min("dst").alias("least"))
    joined = down.join(least, "src").select(F.col("dst").alias("src"), F.col("least").alias("dst"))
    return joined.union(least.select("src", F.col("least").alias("dst"))).where("src <> dst").distinct()


def stars(graph: Graph) -> DataFrame:
    """Components by alternating stars, until no edge changes (Kiveris et al., SoCC 2014)."""
    edges = graph.edges.distinct().localCheckpoint()
    while True:
        turned = small_star(large_star(edges).localCheckpoint()).localCheckpoint()
        if turned.exceptAll(edges).isEmpty() and edges.exceptAll(turned).isEmpty():
            return turned
        edges = turned


class LabelPropagation:
    """A node takes the label that most of its neighbours have: three turns."""

    def __init__(self, graph: Graph) -> None:
        self.edges, self.nodes = graph.both.cache(), graph.nodes

    def turn(self, labels: DataFrame) -> DataFrame:
        sent = labels.join(self.edges, labels.id == self.edges.src).select(F.col("dst").alias("id"), "label")
        counts = sent.groupBy("id", "label").count()
        most = counts.groupBy("id").agg(F.max_by("label", F.struct("count", "label")).alias("label"))
        return self.nodes.join(most, "id", "left").select("id", F.coalesce("label", "id").alias("label"))

    def run(self) -> DataFrame:
        labels = self.nodes.withColumn("label", F.col("id")).checkpoint()
        for _ in range(3):
            labels = self.turn(labels).checkpoint()
        return labels


def labels(graph: Graph) -> DataFrame:
    return LabelPropagation(graph).run()


def shortest(graph: Graph) -> DataFrame:
    """The shortest way from node 1, and the node before: relaxed four times."""
    lengths = graph.both.withColumn("length", (F.col("src") * 7 + F.col("dst") * 3) % 11 + 1).cache()
    ways = graph.nodes.where("id = 1").selectExpr("id", "0 as length", "0 as through").cache()
    for _ in range(4):
        joined = ways.alias("way").join(lengths.alias("edge"), F.col("way.id") == F.col("edge.src"))
        longer = joined.selectExpr("dst as id", "way.length + edge.length as length", "src as through")
        picked = F.min_by("through", "length").alias("through"), F.min("length").alias("length")
        ways = ways.unionByName(longer).groupBy("id").agg(*picked).cache()
    return ways


def two_of_each(graph: Graph) -> DataFrame:
    """Of each node, the two smallest that it reaches: a rank in each turn."""
    edges, place = graph.edges.cache(), Window.partitionBy("src").orderBy("dst")
    reached = edges
    for _ in range(3):
        more = reached.union(followed(reached, edges)).distinct()
        ranked = more.withColumn("place", F.row_number().over(place)).where("place <= 2")
        reached = ranked.drop("place").localCheckpoint()
    return reached


def core(graph: Graph) -> DataFrame:
    """Edges between nodes that have two of them, as long as one is dropped."""
    edges, count = graph.both.distinct().cache(), -1
    while count != edges.count():
        count = edges.count()
        kept = edges.groupBy("src").count().where("count >= 2").select("src")
        left = edges.join(kept, "src", "left_semi")
        edges = left.join(kept.selectExpr("src as dst"), "dst", "left_semi").select("src", "dst").cache()
    return edges


def unkept(graph: Graph) -> DataFrame:
    """Three turns in one query."""
    edges = graph.edges
    labels = graph.nodes.withColumn("label", F.col("id"))
    for _ in range(3):
        sent = labels.join(edges, labels.id == edges.src).select(F.col("dst").alias("id"), "label")
        labels = labels.union(sent).groupBy("id").agg(F.min("label").alias("label"))
    return labels


#: `labels` and `core` count, and may need other rows to keep one.
JOBS: dict[str, Callable[[Graph], DataFrame]] = {
    job.__name__: job
    for job in (
        closure,
        closure_of_new_paths,
        distances,
        components,
        stars,
        shortest,
        two_of_each,
        unkept,
        labels,
        core,
    )
}

# -- the same by loops -----------------------------------------------------------------------------------


def reached_from(start: int, edges: Iterable[Edge]) -> dict[int, int]:
    """Node -> how many edges away from the start; the start itself only by a way that leads there again."""
    following, distances, frontier = list(edges), dict[int, int](), {start}
    while new := {dst for src, dst in following if src in frontier} - distances.keys():
        distances.update(dict.fromkeys(new, max(distances.values(), default=0) + 1))
        frontier = new
    return distances


def both_ways(edges: Iterable[Edge]) -> set[Edge]:
    return {way for src, dst in edges for way in ((src, dst), (dst, src))}


def plain_closure(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    return {(src, dst) for src, _ in edges for dst in reached_from(src, edges)}


def plain_distances(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    return {**reached_from(1, both_ways(edges)), 1: 0}.items() if 1 in nodes else set()  # type: ignore[return-value]


def plain_components(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    inside = [edge for edge in both_ways(edges) if {*edge} <= {*nodes}]
    return {(node, min(node, *reached_from(node, inside), node)) for node in nodes}


def plain_stars(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    ends = {end for edge in edges for end in edge}
    return {(node, least) for node, least in plain_components(edges, sorted(ends)) if node != least}


def plain_shortest(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    """(node, length, the node before): where several are as short, each of them."""
    ways = {(1, 0, 0)} & {(node, 0, 0) for node in nodes}
    for _ in range(4):
        longer = {
            (dst, length + (src * 7 + dst * 3) % 11 + 1, src)
            for at, length, _ in ways
            for src, dst in both_ways(edges)
            if src == at
        }
        least = {at: min(one for to, one, _ in ways | longer if to == at) for at, _, _ in ways | longer}
        ways = {way for way in ways | longer if way[1] == least[way[0]]}
    return {(at, through, length) for at, length, through in ways}


def plain_two_of_each(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    reached = {*edges}
    for _ in range(3):
        more = reached | {(src, dst) for src, at in reached for start, dst in edges if start == at}
        reached = {way for src, _ in more for way in sorted(one for one in more if one[0] == src)[:2]}
    return reached  # type: ignore[return-value]


def plain_unkept(edges: Sequence[Edge], nodes: Sequence[int]) -> set[tuple[int, ...]]:
    return propagated(nodes, edges, 3)  # type: ignore[return-value]


#: What some of the jobs give of edges and nodes.
PLAIN: dict[str, Callable[[Sequence[Edge], Sequence[int]], set[tuple[int, ...]]]] = {
    "closure": plain_closure,
    "closure_of_new_paths": plain_closure,
    "distances": plain_distances,
    "components": plain_components,
    "stars": plain_stars,
    "shortest": plain_shortest,
    "two_of_each": plain_two_of_each,
    "unkept": plain_unkept,
}


def write_rows(graph: Graph, name: str, output: Path) -> None:
    frame = JOBS[name](graph)
    texts = F.concat_ws(",", *(F.col(column).cast("string") for column in frame.columns))
    frame.select(texts.alias("value")).write.text(str(output))
    graph.spark.catalog.clearCache()
