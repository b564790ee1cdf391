"""A real browser on what decided a record: the switch, the rows, a loop turn by turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from lineage_service.lineage import ExplainedRow, ExplanationCheck
from lineage_service.testing.queries import MemoryQueries
from tests.support.decided_labels import APP, SINK, labels
from tests.support.e2e.browser import opened, served, violations

LATER = "local-1732269600000"
START = f"record={quote('write#0#0', safe='')}&node={SINK}"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    later = labels(has_winners=False)
    other = replace(later, application=replace(later.application, application_id=LATER))
    with served(create_app(MemoryQueries([labels(), other]))) as address:
        yield address


def test_the_switch_leads_to_the_rows_that_decided_and_back(page, url):
    page.goto(f"{url}#/app/{APP}/trace?{START}")
    page.get_by_role("link", name="Only what decided it").click()
    expect(page.locator("h1")).to_contain_text("What decided it part-00000:1 1,17")
    expect(page.locator(".size")).to_have_text("1 of 3 input rows · a plain trace: 3")
    expect(page.locator(".input-row").first).to_contain_text("edges.csv:1")
    expect(page.get_by_role("link", name="Only what decided it")).to_have_attribute("aria-current", "true")
    rules = page.locator("section[aria-label='What was left out'] tbody tr")
    expect(rules).to_contain_text("reduceByKey (1) at labels.py:31")
    expect(rules).to_contain_text("1 of 3")
    expect(page.locator("main")).to_contain_text("Given, because the program may have used values of it")
    page.get_by_role("link", name="Everything").click()
    expect(page.locator(".trace-tabs")).to_be_visible()


def test_a_loop_is_one_box_that_opens_turn_by_turn(page, url):
    page.goto(f"{url}#/app/{APP}/explanation?{START}")
    loop = page.locator(".loop")
    expect(loop.locator("h2")).to_have_text("Loop at labels.py:31: 1 turn decided")
    expect(loop.locator("summary")).to_have_text(
        ["Before the loop: 1 record", "Turn 1: 1 record; 1 row came in"]
    )
    turn = loop.locator("details").last
    expect(turn.get_by_role("link", name="edges.csv:1")).to_be_hidden()
    turn.locator("summary").click()
    expect(turn).to_contain_text("unchanged to turn 14")
    turn.get_by_role("link", name="edges.csv:1").click()
    expect(page.locator("h1")).to_contain_text("1,17")


def ask(page, url, fields):
    """Opens the form beside the record, and asks these questions."""
    page.goto(f"{url}#/app/{APP}/explanation?{START}")
    page.get_by_text("Ask more about it").click()
    for label, text in fields.items():
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Ask", exact=True).click()


def test_why_two_records_are_one_is_asked_in_the_form_and_is_an_address(page, url):
    ask(page, url, {"Why is it one with this record": "1#0#0"})
    expect(page.locator("h1")).to_have_text("Why are these two one?")
    pair = page.get_by_label("The two records")
    expect(pair).to_contain_text("part-00000:1 1,17")
    expect(pair).to_contain_text("It is not known whether they have the same value")
    expect(pair).to_contain_text("They meet in turn 1 of the loop at labels.py:31, at reduceByKey (1)")
    expect(pair).to_contain_text("1 row counts for A, 1 for B, 1 for both")
    expect(page.locator(".input-row").first.locator(".holder")).to_have_text(["A", "B"])
    assert "same=1%230%230" in page.url
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text(f'lineage explain {APP} --same "2#write#0#0" "1#0#0"')
    page.goto(f"{url}#/app/{APP}/explanation?record=0%23read%230%230&same=0%23read%230%232")
    expect(page.get_by_label("The two records")).to_contain_text("Both have field 1 '1'")
    expect(page.get_by_label("Why is it one with this record")).to_have_value("0#read#0#2")
    expect(page.locator(".input-row .holder")).to_have_text(["A", "B"])
    page.get_by_label("Why is it one with this record").fill("0#read#0#0")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("are the same record")
    page.errors.clear()  # the browser's own words for the 422


def test_demanded_rows_have_their_way_or_are_no_part(page, url):
    ask(page, url, {"These input rows must be among them": "/data/edges.csv:3; /data/stop.txt:1"})
    expect(page.locator(".size")).to_contain_text("2 of 3 input rows")
    rows = page.get_by_label("Rows that must be among them", exact=True)
    expect(rows.locator(".way li")).to_have_count(2)
    expect(rows.locator(".way li").first).to_contain_text("reduceByKey (1) 0#0 1 in turn 1 of the loop")
    expect(rows.locator(".notice")).to_have_text(
        ["It is no part of the trace: these records were not made of it."]
    )
    assert "with=%2Fdata%2Fedges.csv%3A3&with=%2Fdata%2Fstop.txt%3A1" in page.url


def test_which_rows_together_and_what_changed_in_another_run(page, url):
    page.goto(f"{url}#/app/{APP}/explanation?{START}")
    page.get_by_text("Ask more about it").click()
    page.get_by_label("which of the rows are needed together").check()
    page.get_by_label("What changed in another run").fill(LATER)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_label("Which rows together")).to_contain_text("edges.csv:1")
    other = page.get_by_label("In the other run")
    expect(other).to_contain_text("1 row is the same, 0 gone, 2 new")
    expect(other.locator(".input-row code")).to_have_text(["1,<b>23", "1,90"])
    other.get_by_role("link", name="edges.csv:2").click()
    expect(page).to_have_url(re.compile(f"#/app/{LATER}/trace"))


def test_without_what_decided_it_is_called_a_bound_and_shows_data_as_text(page):
    with served(create_app(MemoryQueries([labels(has_winners=False)]))) as address:
        page.goto(f"{address}#/app/{APP}/explanation?{START}")
        expect(page.locator(".notice").first).to_contain_text("This is an upper bound")
        expect(page.locator("main")).to_contain_text("Nothing was captured that says which rows decided")
        expect(page.locator(".input-row code").nth(1)).to_have_text("1,<b>23")
        page.get_by_text("Copy command").click()
        expect(page.locator("#commands")).to_contain_text(f'lineage explain {APP} "write#0#0" --node {SINK}')


def test_a_record_that_is_not_there_is_refused_in_the_words_of_the_service(page, url):
    page.goto(f"{url}#/app/{APP}/explanation?record=9%239&node={SINK}")
    expect(page.get_by_role("alert")).to_contain_text("no such record")
    page.errors.clear()  # the browser's own words for the 404


def test_it_fits_a_phone_and_axe_finds_nothing_serious(browser, url):
    with opened(browser, reduced_motion="reduce") as page:
        page.set_viewport_size({"width": 390, "height": 800})
        asked = "&same=1%230%230&how=1&with=%2Fdata%2Fedges.csv%3A3&compare=" + LATER
        for view, more in (("explanation", ""), ("explanation", asked), ("trace", "")):
            page.goto(f"{url}#/app/{APP}/{view}?{START}{more}")
            expect(page.get_by_role("link", name="Only what decided it")).to_be_visible()
            expect(page.locator(".loading")).to_have_count(0)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
            assert violations(page) == [], view
        assert page.errors == []


def test_a_search_for_a_key_that_is_not_there_leads_to_where_it_ended(browser):
    lineage = labels()
    with (
        served(create_app(MemoryQueries([replace(lineage, flows=lineage.flows[:-1])]))) as address,
        opened(browser, reduced_motion="reduce") as page,
    ):
        page.goto(f"{address}#/app/{APP}/nodes/{SINK}?key=1")
        page.get_by_role("link", name="Why is there no record with this key?").click()
        expect(page.locator("h1")).to_have_text("Why is there no record with the key 1?")
        expect(page).to_have_url(re.compile(f"#/app/{APP}/absence\\?node={SINK}&key=1"))
        holder = page.get_by_label("reduceByKey (1) at labels.py:31")
        expect(holder.locator("li")).to_have_text(
            ["Ended at saveAsTextFile (2) at labels.py:32: saveAsTextFile: it gave nothing for it"]
        )
        assert violations(page) == []
        holder.get_by_role("link", name="Why it had the key there").click()
        expect(page.locator(".size")).to_contain_text("1 of 3 input rows")
        page.goto(f"{address}#/app/{APP}/absence?node={SINK}&key=7")
        expect(page.locator("main")).to_contain_text("These do not have it, either")
        page.goto(f"{address}#/app/{APP}/absence?node=1&key=1")
        expect(page.get_by_role("alert")).to_contain_text("has records with the key '1'")
        page.errors.clear()  # the browser's own words for the 400


def test_what_was_verified_has_its_mark_and_rows_that_were_added_are_listed(browser):
    other = ExplainedRow(
        node_id=f"{APP}#0",
        name="textFile",
        record_id="read#0#1",
        path="/data/edges.csv",
        row=1,
        line=2,
        text="1,<b>23",
        warning=None,
    )
    of_these = ExplanationCheck(
        checked_at=1_732_187_000_000,
        these_rows=True,
        runs=2,
        minimal=True,
        total=1,
        added=(),
        added_total=0,
        left_out_total=0,
        notes=(),
    )
    of_others = replace(of_these, these_rows=False, total=2, added=(other,), added_total=1, minimal=False)
    lineage = replace(labels(), checks=(of_these, of_others))
    with (
        served(create_app(MemoryQueries([lineage]))) as address,
        opened(browser, reduced_motion="reduce") as page,
    ):
        page.goto(f"{address}#/app/{APP}/explanation?{START}")
        mark = page.locator(".verified")
        expect(mark).to_contain_text("✓ Verified on 21 Nov 2024")
        expect(mark).to_contain_text("on these rows alone; 2 runs; none of them can be left out")
        others = page.locator(".other-rows")
        expect(others.locator("summary")).to_contain_text("of other rows: 2 rows, 1 of them not among these")
        others.locator("summary").click()
        expect(others.locator("code")).to_have_text("1,<b>23")
        page.get_by_text("Save as a reproduction").click()
        expect(page.locator(".reproduction code")).to_have_text(
            [
                f'lineage explain {APP} "write#0#0" --node {SINK} {flags}--save repro -- YOUR COMMAND'
                for flags in ("--sufficient ", "--minimal ", "")
            ]
        )
        assert violations(page) == []
        page.goto(f"{address}#/app/{APP}/explanation?{START}&with=%2Fdata%2Fedges.csv%3A3")
        expect(page.get_by_label("Rows that must be among them", exact=True)).to_be_visible()
        expect(page.locator(".verified")).to_have_count(0)
