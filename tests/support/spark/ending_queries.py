"""Random queries in which rows end, and by plain Python every reason for which a row cannot be in the output.

Spark may evaluate conditions in another order than the query has them, so a row that two of them exclude may
end at either. Each condition reads a column of its own, by which an operator of the plan is recognised.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lineage_service.lineage import RowEnd


class Order(NamedTuple):
    id: int
    customer: int | None
    amount: int | None
    tag: str | None


class Customer(NamedTuple):
    key: int | None
    name: str


_CHANCE = random.Random(4)
ORDERS = [
    Order(
        at,
        _CHANCE.choice([None, 1, 1, 2, 2, 3, 5]),
        _CHANCE.choice([None, *range(0, 40, 3)]),
        _CHANCE.choice([None, "x", "y"]),
    )
    for at in range(30)
]
CUSTOMERS = [
    Customer(1, "ann"),
    Customer(2, "bo"),
    Customer(None, "cy"),
    Customer(4, "dee"),
    Customer(2, "eve"),
]
_NONE: frozenset[str] = frozenset()


def write_tables(folder: Path) -> None:
    def lines(rows: Sequence[tuple[Any, ...]]) -> str:
        return "".join(",".join("" if value is None else str(value) for value in row) + "\n" for row in rows)

    (folder / "orders.csv").write_text(lines(ORDERS))
    (folder / "customers.csv").write_text(lines(CUSTOMERS))
    columns = dict(zip(Order._fields, zip(*ORDERS, strict=True), strict=True))
    pq.write_table(pa.table(columns), folder / "orders.parquet", row_group_size=8)


def make_views(spark: Any, folder: Path) -> None:
    orders = spark.read.csv(f"{folder}/orders.csv", schema="id long, customer long, amount long, tag string")
    orders.createOrReplaceTempView("orders_csv")
    spark.read.parquet(f"{folder}/orders.parquet").createOrReplaceTempView("orders_parquet")
    customers = spark.read.csv(f"{folder}/customers.csv", schema="key long, name string")
    customers.createOrReplaceTempView("customers")


@dataclass(frozen=True)
class Query:
    """A part that is None is not there."""

    format: str
    amount: int | None
    tag: str | None
    explode: int | None
    join: str | None
    name: str | None
    rank: int | None
    total: int | None

    @property
    def sql(self) -> str:
        where = [
            *([] if self.amount is None else [f"amount > {self.amount}"]),
            *([] if self.tag is None else [f"tag = '{self.tag}'"]),
        ]
        sql = f"select id, customer, amount, tag from orders_{self.format}"
        if self.explode is not None:
            parts = f"case when id % {self.explode} = 0 then cast(array() as array<int>) else array(1, 2) end"
            sql = f"select *, explode({parts}) as part from ({sql})"
        if self.join is not None:
            named = "" if self.name is None else f" where name <> '{self.name}'"
            sql = f"select * from ({sql}) {self.join} join (select * from customers{named}) on customer = key"
        if where:
            sql = f"select * from ({sql}) where {' and '.join(where)}"
        if self.rank is not None:
            over = "row_number() over (partition by customer order by amount, id, tag)"
            sql = f"select * from (select *, {over} as rnk from ({sql})) where rnk <= {self.rank}"
        if self.total is not None:
            grouped = f"select customer, sum(id) as total from ({sql}) group by customer"
            sql = f"{grouped} having total > {self.total}"
        return sql

    # -- the truth ---------------------------------------------------------------------------------

    def matches(self, order: Order) -> list[int]:
        """The customers that a join brings to an order."""
        if order.customer is None:
            return []
        return [
            at
            for at, customer in enumerate(CUSTOMERS)
            if customer.key == order.customer and not self.is_named(customer)
        ]

    def is_named(self, customer: Customer) -> bool:
        return customer.name == self.name

    def reasons(self) -> dict[int, frozenset[str]]:
        """Order -> why it is not in the output; empty of one that is in it."""
        reasons = {at: self._of_conditions(order) for at, order in enumerate(ORDERS)}
        if self.rank is not None:
            self._add_ranks(reasons)
        if self.total is not None:
            self._add_totals(reasons)
        return reasons

    def _of_conditions(self, order: Order) -> frozenset[str]:
        is_matched = bool(self.matches(order))
        holding = {
            "amount": self.amount is not None
            and not (order.amount is not None and order.amount > self.amount),
            "tag": self.tag is not None and order.tag != self.tag,
            "explode": self.explode is not None and order.id % self.explode == 0,
            "join": self.join in ("inner", "left semi") and not is_matched,
            "null": self.join in ("inner", "left semi") and order.customer is None,
            "anti": self.join == "left anti" and is_matched,
        }
        return frozenset(reason for reason, holds in holding.items() if holds)

    def copies(self, at: int) -> int:
        """How many rows an order becomes before rows are ranked."""
        parts = 1 if self.explode is None else 2
        joined = len(self.matches(ORDERS[at])) or 1 if self.join in ("inner", "left") else 1
        return parts * joined

    def _add_ranks(self, reasons: dict[int, frozenset[str]]) -> None:
        assert self.rank is not None
        groups: dict[int | None, list[int]] = defaultdict(list)
        for at in sorted((at for at in reasons if not reasons[at]), key=_rank_of):
            groups[ORDERS[at].customer].append(at)
        for group in groups.values():
            before = 0
            for at in group:
                if before >= self.rank:
                    reasons[at] = frozenset(("rnk",))
                before += self.copies(at)

    def _add_totals(self, reasons: dict[int, frozenset[str]]) -> None:
        assert self.total is not None
        groups: dict[int | None, list[int]] = defaultdict(list)
        for at in (at for at in reasons if not reasons[at]):
            groups[ORDERS[at].customer].append(at)
        for group in groups.values():
            if sum(ORDERS[at].id * self.copies(at) for at in group) <= self.total:
                reasons.update(dict.fromkeys(group, frozenset(("groups",))))


def _rank_of(at: int) -> tuple[Any, ...]:
    """Nulls come first."""
    order = ORDERS[at]
    return order.amount is not None, order.amount or 0, order.id


def make(seed: int) -> Query:
    chance = random.Random(seed)

    def maybe(share: float, values: Sequence[Any]) -> Any:
        return chance.choice(values) if chance.random() < share else None

    join = maybe(0.7, ["inner", "inner", "left", "left semi", "left anti"])
    is_ranked = chance.random() < 0.3
    explode = maybe(0.3, [2, 3])
    # What is ranked or summed must not be multiplied: then the copies of an order may be parted.
    is_one = explode is None and join in (None, "left semi", "left anti")
    return Query(
        format=chance.choice(["csv", "parquet"]),
        amount=maybe(0.5, [5, 12, 20]),
        tag=maybe(0.4, ["x", "y"]),
        explode=explode,
        join=join,
        name=maybe(0.5, ["ann", "bo"]) if join else None,
        rank=chance.choice([1, 2, 3]) if is_ranked and is_one else None,
        total=chance.choice([20, 60, 120]) if chance.random() < 0.4 else None,
    )


def reasons_of(end: RowEnd) -> frozenset[str]:
    """For which reasons an operator of a plan leaves rows out."""
    if end.name == "Join":
        return frozenset(("anti",) if end.description.startswith("LeftAnti") else ("join",))
    if end.name == "Generate":
        return frozenset(("explode",))
    if end.why.startswith("filter of groups"):
        return frozenset(("groups",))
    words: Mapping[str, Collection[str]] = {
        "amount": ("amount",),
        "tag": ("tag",),
        "rnk": ("rnk",),
        "name": ("name",),
        "customer": ("null", "join"),
        "key": ("null", "join"),
    }
    return frozenset(reason for word, of in words.items() if word in end.description for reason in of)
