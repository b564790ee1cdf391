"""Which records are one customer: the pairs of records that match, and what these pairs connect.

    spark-submit examples/customer_clusters.py CUSTOMERS OUTPUT [pairs|clusters]

CUSTOMERS has lines `record,name,e-mail,phone,street,city`.

| folder of OUTPUT | lines |
|---|---|
| `pairs` | two records that match, and why |
| `clusters` | a record, and the first record that pairs connect it with: the name of its cluster |

Two ordinary Spark jobs, or the one that is named: no lineage in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from difflib import SequenceMatcher

from pyspark import SparkContext

Record = tuple[str, ...]
"""(record, name, e-mail, phone, street, city)."""
Block = tuple[str, str]
"""(what its records have in common, its value)."""
Reason = tuple[int, str]
"""(0 for the best, in words)."""

PARTITIONS = 4
#: The share of letters that two texts have in common where only typos differ.
ALIKE = 0.85


def blocks_of(record: Record) -> Iterator[tuple[Block, Record]]:
    """Only records in one block are compared."""
    _, name, email, phone, street, city = record
    if email:
        yield ("e-mail", email), record
    if phone:
        yield ("phone", phone), record
    yield ("place", f"{city} {street[0]} {name[0]}"), record


def match(row: tuple[Block, tuple[Record, Record]]) -> Iterator[tuple[tuple[str, str], Reason]]:
    """The pair and its reason, if these two match. Each pair once, the first record in front."""
    (kind, value), (one, other) = row
    if one[0] >= other[0]:
        return
    if kind == "e-mail":
        yield (one[0], other[0]), (0, f"same e-mail {value}")
    elif kind == "phone":
        yield (one[0], other[0]), (1, f"same phone {value}")
    elif are_alike(one[1], other[1]) and are_alike(one[4], other[4]):
        yield (one[0], other[0]), (2, "alike in name and address")


def are_alike(one: str, other: str) -> bool:
    return one == other or SequenceMatcher(None, one, other).ratio() >= ALIKE


def save_pairs(customers: str, output: str) -> None:
    with SparkContext(appName="Customers: pairs") as sc:
        records = sc.textFile(customers, PARTITIONS).map(lambda line: tuple(line.split(",")))
        blocks = records.flatMap(blocks_of)
        pairs = blocks.join(blocks, PARTITIONS).flatMap(match).reduceByKey(min, PARTITIONS)
        pairs.map(lambda pair: f"{pair[0][0]},{pair[0][1]},{pair[1][1]}").saveAsTextFile(output)


def save_clusters(customers: str, pairs: str, output: str) -> None:
    with SparkContext(appName="Customers: clusters") as sc:
        records = sc.textFile(customers, PARTITIONS).map(lambda line: line.split(",")[0])
        matches = sc.textFile(pairs).map(lambda line: line.split(",")[:2])
        edges = matches.flatMap(lambda pair: [(pair[0], pair[1]), (pair[1], pair[0])]).cache()
        clusters = records.map(lambda record: (record, record))
        changes = 1
        while changes:
            before = clusters
            offers = before.join(edges, PARTITIONS).map(lambda met: (met[1][1], met[1][0]))
            clusters = before.union(offers).reduceByKey(min, PARTITIONS).cache()
            changes = clusters.subtract(before, PARTITIONS).count()
        clusters.map(",".join).saveAsTextFile(output)


STEPS = ("pairs", "clusters")


def main(customers: str, output: str, *steps: str) -> None:
    if "pairs" in steps:
        save_pairs(customers, f"{output}/pairs")
    if "clusters" in steps:
        save_clusters(customers, f"{output}/pairs", f"{output}/clusters")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not set(sys.argv[3:]) <= set(STEPS):
        sys.exit("usage: spark-submit customer_clusters.py CUSTOMERS OUTPUT [pairs|clusters]")
    main(*sys.argv[1:3], *(sys.argv[3:] or STEPS))
