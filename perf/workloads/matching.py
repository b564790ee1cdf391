"""A stable matching: proposers ask whom they like best, and who is asked keeps the best (Gale, Shapley).

    spark-submit perf/workloads/matching.py PAIRS OUTPUT

PAIRS has lines `PROPOSER<TAB>ACCEPTOR<TAB>RANK<TAB>RANK`, the proposer's rank of the other first; smaller is
better. Writes lines `PROPOSER,ACCEPTOR`. Each turn refuses pairs, until none is refused. An ordinary Spark
job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark import SparkContext

PARTITIONS = 4

Pair = tuple[str, str, int, int]


def pair_of(line: str) -> Pair:
    proposer, acceptor, rank, rank_of_acceptor = line.split("\t")
    return proposer, acceptor, int(rank), int(rank_of_acceptor)


def by_proposer(pair: Pair) -> tuple[str, tuple[int, Pair]]:
    return pair[0], (pair[2], pair)


def by_acceptor(pair: Pair) -> tuple[str, tuple[int, Pair]]:
    return pair[1], (pair[3], pair)


def main(pairs: str, output: str) -> None:
    with SparkContext(appName="Stable matching") as sc:
        left = sc.textFile(pairs, PARTITIONS).map(pair_of)
        refusals = 1
        while refusals:
            proposed = left.map(by_proposer).reduceByKey(min, PARTITIONS).map(lambda best: best[1][1])
            accepted = proposed.map(by_acceptor).reduceByKey(min, PARTITIONS).map(lambda best: best[1][1])
            refused = proposed.subtract(accepted, PARTITIONS).cache()
            left = left.subtract(refused, PARTITIONS).cache()
            refusals = refused.count()
        accepted.map(lambda pair: f"{pair[0]},{pair[1]}").saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit matching.py PAIRS OUTPUT")
    main(*sys.argv[1:])
