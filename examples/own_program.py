"""Sums of paid orders by shop, by a program without Spark that tells its lineage.

    python examples/own_program.py ORDERS_CSV SUMS_CSV [APPLICATION_ID]

ORDERS_CSV has the columns shop, state, amount and a header line. Writes a line for each shop, the first shop
in the orders first. Orders that cannot be read are left out, and reported. docs/own_programs.md goes through
it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from spark_agent import LineageApi

READ, PAID, SUM, WRITE = range(4)  # the operations; each has a larger number than what it reads


def main(orders_csv: str, sums_csv: str, application_id: str) -> None:
    with LineageApi(application_id, "Sums by shop") as lineage:
        lineage.register(READ, "read", path=orders_csv)
        lineage.register(PAID, "filter", "paid orders")
        lineage.register(SUM, "sum", "amounts by shop")
        lineage.register(WRITE, "write", path=sums_csv)
        for source, target in ((READ, PAID), (PAID, SUM), (SUM, WRITE)):
            lineage.link(source, target)

        totals: dict[str, int] = {}
        for row, line in enumerate(Path(orders_csv).read_text().splitlines()):
            if row == 0 or not lineage.keep(READ, f"read#0#{row}"):
                continue
            order = f"order in row {row}"
            lineage.add_input(READ, f"read#0#{row}", reset=True)
            lineage.add_output(READ, order)
            try:
                shop, state, text = line.split(",")
                amount = int(text)
            except ValueError as error:
                lineage.fail(PAID, order, error, value=line)
                continue
            if state == "paid":
                paid = f"paid {order}"
                lineage.add_input(PAID, order, reset=True)
                lineage.add_output(PAID, paid, value={"shop": shop, "amount": amount})
                lineage.add_input(SUM, paid, tag=shop)
                totals[shop] = totals.get(shop, 0) + amount

        with Path(lineage.output_path(WRITE)).open("w") as file:
            for row, (shop, total) in enumerate(totals.items()):
                lineage.add_output(SUM, shop, tag=shop, value=(shop, total), reset=True)
                file.write(f"{shop},{total}\n")
                lineage.capture(f"{WRITE}#{row}", shop, f"write#0#{row}")
    print(application_id)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: own_program.py ORDERS_CSV SUMS_CSV [APPLICATION_ID]")
    main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) == 4 else f"sums-{time.time_ns()}")
