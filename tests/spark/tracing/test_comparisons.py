"""An unmodified job runs on three days: what changed from day to day, as plain Python says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_service.decode.batches import event_batch, flow_batch
from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Comparison
from lineage_service.queries import CompareQuery
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from tests.support.lineage_messages import messages
from tests.support.spark.application import messages_of, run_application

# The first test of the module runs the jobs of all of them.
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

ORDERS = {
    "monday": ("Graz,5", "Linz,7", "Graz,9", "Wien,1", "Wels,3", "Wels,4"),
    "tuesday": ("Graz,5", "Linz,8", "Graz,9", "Wien,1", "Ried,2", "Wels,4"),
    "later": ("Graz,6", "Linz,8", "Graz,9", "Wien,1", "Ried,2", "Wels,4"),
}
#: Where each writes beside a folder of its own; the last one replaces what another one wrote.
DAYS = {"monday": "day=1", "tuesday": "day=2", "later": "day=2"}


def sums_of(day: str) -> Mapping[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for order in ORDERS[day]:
        city, amount = order.split(",")
        sums[city] += int(amount)
    return sums


def job(context: SparkContext, orders: Path, output: Path, monthly: Path) -> None:
    read = SparkSession(context).read.schema("city STRING, amount BIGINT").csv(str(orders), header=True)
    sums = read.groupBy("city").agg({"amount": "sum"}).withColumnRenamed("sum(amount)", "total")
    sums.write.parquet(str(output))
    sums.write.mode("overwrite").json(str(monthly))


@dataclass
class Runs:
    """What ran, by its day."""

    folder: Path
    store: DeltaFlowStore
    applications: dict[str, str] = field(default_factory=dict)

    def compared(self, before: str, after: str, **query: Any) -> Comparison:
        names = {"before": self.applications[before], "after": self.applications[after]}
        return self.asked(**{**names, "dataset": str(self.folder / after / "sums"), **query})

    def asked(self, **query: Any) -> Comparison:
        return LineageQueries(self.store, time_budget_s=120).compare(CompareQuery(**query))


@pytest.fixture(scope="module")
def runs(kafka: Any, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("comparisons")
    runs = Runs(folder, DeltaFlowStore(folder / "flows"))
    for day, orders in ORDERS.items():
        (folder / day).mkdir()
        file = folder / day / "orders.csv"
        file.write_text("".join(f"{line}\n" for line in ("city,amount", *orders)))
        paths = file, folder / day / "sums", folder / "monthly" / DAYS[day]
        _, application = run_application(
            kafka.bootstrap_servers,
            folder / f"app-{day}",
            lambda context, paths=paths: job(context, *paths),
        )
        assert application is not None
        runs.applications[day] = application.application_id
        for table, write, batch in (
            ("node", runs.store.write_events, event_batch),
            ("flow", runs.store.write_flows, flow_batch),
        ):
            sent = messages_of(kafka.bootstrap_servers, application.topics[table])
            write(batch(f"{day}/{table}", messages(*sent)))  # type: ignore[operator]
    return runs


def differing(before: str, after: str) -> set[tuple[str, int, int]]:
    was, now = sums_of(before), sums_of(after)
    return {(city, was[city], now[city]) for city in was.keys() & now.keys() if was[city] != now[city]}


@pytest.mark.parametrize(("before", "after"), [("monday", "tuesday"), ("tuesday", "later")])
def test_by_a_key_rows_differ_as_the_sums_do(runs: Runs, before: str, after: str) -> None:
    result = runs.compared(before, after, key=("city",))
    was, now = sums_of(before), sums_of(after)
    assert {row.columns["city"] for row in result.gone} == was.keys() - now.keys()
    assert {row.columns["city"] for row in result.new} == now.keys() - was.keys()
    changed = {(pair.was["city"], pair.was["total"], pair.is_["total"]) for pair in result.changed}
    assert changed == differing(before, after)
    assert result.same == len(was) - len(result.gone) - len(changed)
    assert [pair.columns for pair in result.changed] == [("total",)] * len(changed)
    assert result.complete
    assert result.exact
    assert result.warnings == ()


def test_input_rows_that_changed_are_behind_the_rows_that_did(runs: Runs) -> None:
    result = runs.compared("monday", "tuesday", key=("city",))
    because = {
        pair.was["city"]: {(row.line, row.was, row.is_) for row in pair.because or ()}
        for pair in result.changed
    }
    assert because == {"Linz": {(3, "Linz,7", "Linz,8")}, "Wels": {(6, "Wels,3", None)}}


def test_input_rows_of_one_run_are_behind_the_rows_that_only_it_has(runs: Runs) -> None:
    """All orders of Ried are those of Tuesday alone."""
    [row] = runs.compared("monday", "tuesday", key=("city",)).new
    assert row.because is not None
    assert [(by.line, by.was, by.is_) for by in row.because] == [(6, "Wels,3", "Ried,2")]
    [row] = runs.compared("tuesday", "monday", key=("city",)).gone
    assert row.because is not None
    assert [(by.line, by.was, by.is_) for by in row.because] == [(6, "Ried,2", "Wels,3")]


def test_without_a_key_rows_of_the_same_input_rows_are_one(runs: Runs) -> None:
    """Wels was made of two rows, and is made of one."""
    result = runs.compared("monday", "tuesday")
    assert [(pair.was, pair.is_) for pair in result.changed] == [
        ({"city": "Linz", "total": 7}, {"city": "Linz", "total": 8})
    ]
    assert {row.columns["city"] for row in result.gone} == {"Wels"}
    assert {row.columns["city"] for row in result.new} == {"Wels", "Ried"}
    assert result.same == 2


def test_one_of_several_outputs_has_to_be_named(runs: Runs) -> None:
    with pytest.raises(InvalidQueryError, match="have 2 outputs in common"):
        runs.compared("monday", "tuesday", dataset=None)


def test_of_folders_that_a_later_run_replaced_the_rows_are_gone(runs: Runs) -> None:
    result = runs.asked(dataset=str(runs.folder / "monthly"), key=("city",))
    assert [run.application_id for run in result.runs] == [
        runs.applications["tuesday"],
        runs.applications["later"],
    ]
    assert (result.same, result.gone, result.complete) == (None, (), False)
    assert [run.rows for run in result.runs] == [5, 5]
    [warning] = result.warnings
    assert "are gone" in warning
    assert f"was written again by {runs.applications['later']}" in warning


def test_folders_of_days_are_no_columns_of_the_rows(runs: Runs) -> None:
    result = runs.asked(
        before=runs.applications["monday"],
        after=runs.applications["later"],
        dataset=str(runs.folder / "monthly"),
        key=("city",),
    )
    changed = {(pair.was["city"], pair.was["total"], pair.is_["total"]) for pair in result.changed}
    assert changed == differing("monday", "later")
    assert all("day" not in pair.columns for pair in result.changed)
