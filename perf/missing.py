"""How long one query for a missing row takes, of an application that read a million rows.

    python -m perf.missing [--rows 1000000] [--queries 20] [--note TEXT]

A job reads orders (Parquet) and customers (CSV), filters, joins, and writes the result and its distinct
pairs. Then rows that a seed chooses are asked for, of each fate: the first time in a process that has read
nothing, and again and again. Writes `perf/results/missing-DATE.json` and `.md`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.lineage import Missing
from lineage_service.queries import MissingQuery
from lineage_service.tracing.query.service import LineageQueries
from perf.capture.__main__ import about_machine
from perf.capture.broker import Broker
from perf.capture.drivers import ROOT
from perf.tables import publish, table
from tests.support.spark.application import Application, run_application

CUSTOMERS = 10_000
#: Of these only the first half are in the other table.
KEYS = 2 * CUSTOMERS
LEAST = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.missing", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=20, help="rows of each fate (20)")
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--jars", type=Path, default=ROOT / ".cache" / "lineage" / "jars")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(arguments)
    figures = about_machine("perf.missing", options.note)
    with tempfile.TemporaryDirectory(prefix="perf-missing-") as name:
        folder = Path(name)
        orders = write_inputs(folder, options.rows, random.Random(options.seed))
        broker = Broker(folder / "stack", options.jars)
        try:
            _, application = run_application(
                broker.bootstrap_servers, folder / "store", lambda context: job(context, folder)
            )
        finally:
            broker.stop()
        assert application is not None
        chosen = choose(orders, options.queries, random.Random(options.seed + 1))
        seconds = {fate: asked(application, folder, rows) for fate, rows in chosen.items()}
    figures |= {"rows": options.rows, "seed": options.seed, "seconds": seconds}
    publish(options.out, "missing", figures, page(figures))
    return 0


def write_inputs(folder: Path, rows: int, chance: random.Random) -> list[tuple[int, int]]:
    """(customer, amount) of each order."""
    orders = [(chance.randrange(KEYS), chance.randrange(100)) for _ in range(rows)]
    columns = {
        "id": range(rows),
        "customer": [customer for customer, _ in orders],
        "amount": [amount for _, amount in orders],
    }
    pq.write_table(
        pa.table({name: pa.array(of, pa.int64()) for name, of in columns.items()}), folder / "orders.parquet"
    )
    (folder / "customers.csv").write_text("".join(f"{key},name {key}\n" for key in range(CUSTOMERS)))
    return orders


def job(context: Any, folder: Path) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession(context)
    orders = spark.read.parquet(f"{folder}/orders.parquet").where(f"amount >= {LEAST}")
    customers = spark.read.csv(f"{folder}/customers.csv", schema="key long, name string")
    met = orders.join(customers, orders.customer == customers.key)
    met.select("id", "name").write.parquet(f"{folder}/met")
    met.select("name", "amount").distinct().write.parquet(f"{folder}/pairs")


def choose(orders: list[tuple[int, int]], count: int, chance: random.Random) -> dict[str, list[int]]:
    """Rows by what became of them."""
    fates: dict[str, Callable[[int, int], bool]] = {
        "left out by the filter": lambda customer, amount: amount < LEAST,
        "left out by the join": lambda customer, amount: amount >= LEAST and customer >= CUSTOMERS,
        "in the outputs": lambda customer, amount: amount >= LEAST and customer < CUSTOMERS,
    }
    return {
        fate: chance.sample([at for at, order in enumerate(orders) if holds(*order)], count)
        for fate, holds in fates.items()
    }


def asked(application: Application, folder: Path, rows: Sequence[int]) -> dict[str, Any]:
    """Seconds of the first query and of all others; how many answers were exact."""
    assert application.store is not None
    queries = LineageQueries(application.store, time_budget_s=600)
    seconds, exact = [], 0
    for row in rows:
        begin = time.perf_counter()
        missing = queries.missing(
            application.application_id, MissingQuery(path=str(folder / "orders.parquet"), row=row)
        )
        seconds.append(time.perf_counter() - begin)
        exact += is_exact(missing)
    return {"first": seconds[0], "others": seconds[1:], "exact": exact, "of": len(rows)}


def is_exact(missing: Missing) -> bool:
    return all(row.exact and row.ended is not None for row in missing.rows)


def page(figures: dict[str, Any]) -> str:
    rows = [
        [
            fate,
            f"{of['first']:.2f}",
            f"{statistics.median(of['others']):.3f}",
            f"{max(of['others']):.3f}",
            f"{of['exact']} of {of['of']}",
        ]
        for fate, of in figures["seconds"].items()
    ]
    return "\n".join(
        [
            "# Why is a row not there?",
            "",
            f"`python -m perf.missing`: one query, of an application that read {figures['rows']:,} rows.",
            "",
            table(["the row was", "first, s", "median, s", "largest, s", "exact"], rows),
            "",
            *(f"- {name}: {value}" for name, value in figures.items() if name != "seconds"),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
