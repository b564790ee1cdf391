"""Newt's job with faulty mappers: four data sets of people, joined three times by 42 tasks.

    spark-submit perf/workloads/newt_suspects.py FOLDER OUTPUT [FAULTS]

FOLDER holds names (name, number, licence), balances (number, balance), offenses (licence, offense) and ages
(name, age, gender), as `write_inputs` makes them. FAULTS is `offenses=L00017+5,balances=N00042+5`: the map of
that data set gives so many outputs too many for that key. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark import SparkContext

PARTITIONS = 6
SOURCES = ("names", "balances", "offenses", "ages")

Faults = Mapping[str, tuple[str, int]]
Copies = Callable[[str], int]
"""How many outputs the map of a data set gives for the line of a key."""


def write_inputs(folder: Path, people: int, seed: int) -> None:
    """One line of each person in each file, in orders of their own."""
    chance = random.Random(seed)
    numbers = list(range(people))
    lines: dict[str, Callable[[int], str]] = {
        "names": lambda person: f"P{person:05},N{person:05},L{person:05}",
        "balances": lambda person: f"N{person:05},{chance.randrange(10_000)}",
        "offenses": lambda person: f"L{person:05},{chance.choice(('speed', 'parking', 'none'))}",
        "ages": lambda person: f"P{person:05},{chance.randrange(18, 90)},{chance.choice('fm')}",
    }
    for name, line in lines.items():
        chance.shuffle(numbers)
        (folder / name).write_text("".join(f"{line(person)}\n" for person in numbers))


def copies_of(source: str, faults: Faults, selectivity: str) -> Copies:
    """Of `constant` selectivity one, else by chance: `binomial` or `heavy`. A fault adds to it."""
    key, more = faults.get(source, ("", 0))

    def copies(line_key: str) -> int:
        chance = random.Random(f"{source} {line_key}")
        usual = 1
        if selectivity == "binomial":
            usual = sum(chance.random() < 0.3 for _ in range(10))
        elif selectivity == "heavy":
            usual = min(int(chance.paretovariate(1.5)), 200)
        return usual + (more if line_key == key else 0)

    return copies


def job(sc: SparkContext, folder: str, output: str, faults: Faults, selectivity: str = "constant") -> None:
    def pairs(source: str, key: int) -> Callable[[str], list[tuple[str, str]]]:
        copies = copies_of(source, faults, selectivity)

        def outputs(line: str) -> list[tuple[str, str]]:
            name = line.split(",")[key]
            return [(name, line)] * copies(name)

        return outputs

    def read(source: str, key: int):  # type: ignore[no-untyped-def] # PySpark's RDD has no public parameters
        return sc.textFile(f"{folder}/{source}", PARTITIONS).flatMap(pairs(source, key))

    by_licence = read("names", 2).join(read("offenses", 0), PARTITIONS)
    by_number = by_licence.map(lambda row: (row[1][0].split(",")[1], row[1])).join(
        read("balances", 0), PARTITIONS
    )
    by_name = by_number.map(lambda row: (row[1][0][0].split(",")[0], row[1])).join(
        read("ages", 0), PARTITIONS
    )
    by_name.map(lambda row: f"{row[0]},{row[1][1]}").saveAsTextFile(output)


def faults_of(text: str) -> dict[str, tuple[str, int]]:
    faults = {}
    for fault in filter(None, text.split(",")):
        source, _, rest = fault.partition("=")
        key, _, more = rest.partition("+")
        faults[source] = key, int(more)
    return faults


def main(folder: str, output: str, faults: str = "") -> None:
    with SparkContext(appName="Newt suspects") as sc:
        job(sc, folder, output, faults_of(faults))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: spark-submit newt_suspects.py FOLDER OUTPUT [FAULTS]")
    main(*sys.argv[1:])
