"""A browser on an application of DataFrames: from the list of applications to the cause of a wrong row."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, expect
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lineage_api.app import create_app
from tests.support.e2e.browser import long_tasks, served, violations
from tests.support.spark.application import run_application

pytestmark = pytest.mark.timeout(1800)

DAYS = 6


def job(context: SparkContext, folder: Path) -> None:
    """The mean of the strongest winds by parity of the day, for flights. One reading is far off."""
    spark = SparkSession.builder.getOrCreate()
    weather = spark.read.csv(f"{folder}/weather.csv", header=True, schema="day int, wind int")
    flights = spark.read.csv(f"{folder}/flights.csv", header=True, schema="flight string, day int")
    weather.createOrReplaceTempView("weather")
    flights.createOrReplaceTempView("flights")
    spark.sql(
        "WITH strongest AS (SELECT day, max(wind) AS wind FROM weather GROUP BY day) "
        "SELECT day % 2 AS odd, avg(wind) AS wind, count(*) AS flights "
        "FROM flights JOIN strongest USING (day) GROUP BY odd ORDER BY odd"
    ).coalesce(1).write.csv(f"{folder}/winds")


@pytest.fixture(scope="module")
def url(kafka: Any, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("winds")
    readings = [
        (day, 1_048 if (day, hour) == (3, 2) else 10 + hour) for day in range(DAYS) for hour in range(4)
    ]
    (folder / "weather.csv").write_text("day,wind\n" + "".join(f"{day},{wind}\n" for day, wind in readings))
    flights = [(f"UA{at}", at % DAYS) for at in range(60)]
    (folder / "flights.csv").write_text("flight,day\n" + "".join(f"{name},{day}\n" for name, day in flights))
    SparkContext._ensure_initialized()  # a JVM without a conf of this test, see tests/spark
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        _, application = run_application(
            kafka.bootstrap_servers,
            folder / "store",
            lambda context: job(context, folder),
            spark_app_name="Winds in SQL",
            spark_sql_shuffle_partitions="2",
        )
    assert application is not None
    with served(create_app(application.questions)) as address:
        yield address


def opens_application(page: Page, url: str) -> None:
    page.goto(f"{url}#/applications")
    page.get_by_role("link", name="Winds in SQL").click()
    expect(page.locator(".canvas[data-elements]")).to_be_visible()


def test_from_the_list_to_the_input_row_of_a_wrong_row_in_five_clicks(page: Page, url: str) -> None:
    opens_application(page, url)
    page.locator(".operations").get_by_role("link", name="csv", exact=True).click()
    page.get_by_role("cell", name="1", exact=True).click()
    expect(page.locator("h1")).to_contain_text("1,")
    panel = page.locator(".trace-panel")
    panel.get_by_role("link", name=re.compile(r"rows of weather\.csv")).click()
    far = page.locator(".trace-table .outlier").get_by_role("link")
    expect(far).to_contain_text("Stands out: weather.csv:16: wind 1,048, the others 10 to 13")
    far.click()
    expect(page.locator("h1")).to_have_text("3,1048")
    source, sink = page.locator(".trace-list .part", has_text="csv (").all()
    expect(source.get_by_role("cell", name="1048", exact=True)).to_be_visible()
    expect(sink.get_by_role("cell", name="1", exact=True)).to_be_visible()
    print("tasks of more than 50 ms:", [round(task) for task in long_tasks(page)])


@pytest.mark.thorough
def test_operators_tell_how_many_rows_pass_and_none_shows_the_steps_behind_them(page: Page, url: str) -> None:
    opens_application(page, url)
    table = page.locator(".operations tbody")
    expect(table.locator("tr", has_text="Join")).to_contain_text("60 rows")
    expect(table.locator("tr", has_text="Scan csv")).to_have_count(2)
    for step in ("codes", "keys", "not counted"):
        expect(table).not_to_contain_text(step)
    page.get_by_role("button", name="Close all stages").click()
    expect(page.locator("main")).to_contain_text("the others are in closed stages")


@pytest.mark.thorough
def test_an_operator_that_rows_only_pass_leads_to_where_they_begin_and_end(page: Page, url: str) -> None:
    opens_application(page, url)
    page.locator(".operations tr", has_text="Join").get_by_role("link").click()
    main = page.locator("main")
    expect(main).to_contain_text("60 rows came out of this operation")
    expect(main.get_by_role("search")).to_have_count(0)
    expect(main.get_by_role("link", name="Scan csv")).to_have_count(2)
    assert violations(page) == []
    main.get_by_role("link", name=re.compile("^csv")).click()
    expect(main).to_contain_text("2 records")
    expect(main.get_by_role("search")).to_be_visible()
    page.go_back()
    expect(main).to_contain_text("Where its rows go")


@pytest.mark.thorough
def test_a_way_leads_from_an_output_to_the_scans(page: Page, url: str) -> None:
    opens_application(page, url)
    page.locator(".operations").get_by_role("link", name="csv", exact=True).click()
    page.get_by_role("cell", name="0", exact=True).click()
    expect(page.locator(".trace-frame[data-elements]")).to_be_visible()
    expect(page.locator(".trace-left")).to_contain_text(re.compile(r"A sample is drawn: 9 of \d+ records"))
    parts = page.locator(".trace-list .part h3")
    expect(parts).to_contain_text(["Scan csv", "Scan csv", "csv ("])
    expect(page.locator(".trace-panel .endpoints").first).to_contain_text("30 rows of flights.csv")
    assert violations(page) == []
