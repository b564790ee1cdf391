"""A real browser on what says why an output is wrong: suspects, contrasts, input rows, replays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.app import create_app
from lineage_service.lineage import (
    ChangedOutput,
    FailingOutput,
    Influence,
    InfluentialRow,
    OutputDifferences,
    Refusal,
    Replay,
    ReplayedOutput,
    Replays,
    ReplayStep,
    Sift,
    SiftedRow,
    StepRecord,
    UsedRows,
)
from spark_agent import contract
from tests.support.e2e.browser import opened, served, violations
from tests.support.failed_applications import StoredFailures, run_failed
from tests.support.file_applications import APP as FAILED_APP
from tests.support.file_applications import questions_of, splits_of
from tests.support.flat_maps import APP, SINK, add_flat_map
from tests.support.lanes import sampled
from tests.support.lineage_messages import event

SHOPS = ("North", "South", "West")
PARTITIONS, ROWS = 8, 30
MARKUP = "<img src=x onerror=alert(1)>"
#: The row that gives far more than others, and the first of its outputs.
ODD = (3, 17)
ODD_LINE = ODD[0] * ROWS + ODD[1] + 1
ODD_OUTPUT = f"{SINK}#write#3#17"
#: Addresses of all views, behind `#/app/APP/`, and a text that stands there in the end.
ADDRESSES = {
    "suspects": "Suspects",
    f"suspects?bad={ODD_OUTPUT.replace('#', '%23')}&good={SINK}%23write%230%231": "What bad outputs share",
    f"rowset?record=write%233%2317&node={SINK}": "Copy these rows",
    "replays": "refused",
    "replays/7": "Rows that were asked for",
    "replays/8": "1 changed",
    "replays/9": "was not done",
    f"why?record=write%233%2317&node={SINK}": "Run its job again",
}


def lines() -> list[list[str]]:
    """Shop and amount; the odd row has another shop and an amount far from all others."""
    rows = [[f"{SHOPS[at % 3]},{at + part}" for at in range(ROWS)] for part in range(PARTITIONS)]
    rows[ODD[0]][ODD[1]] = f"{MARKUP},99999"
    return rows


def replays_of(path: Path) -> Replays:
    """One that reproduced the odd row, one without it, and one that was refused."""
    output = ReplayedOutput(
        path=None,
        row=None,
        line=None,
        record=f"{APP}#{ODD_OUTPUT}",
        verdict="reproduced",
        was=MARKUP,
        is_=MARKUP,
        alike=56,
    )
    came = StepRecord(
        record_id="read#0#0",
        key=None,
        value=f"{MARKUP},99999",
        value_type="text",
        path=str(path),
        line=ODD_LINE,
        made_of=(),
    )
    word = replace(came, record_id="0#0", value=MARKUP, path=None, line=None, made_of=("local-7#0#read#0#0",))
    read = ReplayStep(
        node_id="local-7#0",
        name="textFile",
        kind="source",
        call_site="",
        exact=True,
        total=1,
        records=(came,),
    )
    split = replace(
        read, node_id="local-7#1", name="flatMap", call_site="/jobs/lines.py:11", total=57, records=(word,)
    )
    used = UsedRows(node=0, name="textFile", path=str(path), rows=((ODD_LINE - 1, 1),))
    first = Replay(
        replay="7",
        of=APP,
        application="local-7",
        mode="only",
        strategy="repair",
        rounds=2,
        rows=1,
        total=PARTITIONS * ROWS,
        verdict="reproduced",
        outputs=(output,),
        extra=0,
        used=(used,),
        diff=None,
        skipped=None,
        refused=None,
        exit_code=0,
        sandbox="/home/ann/.local/share/lineage-master/replays/7",
        began=1_732_200_000_000,
        seconds=86.4,
        steps=(read, split),
        notes=("1 row was added, because without it 3 records went another way at filter",),
    )
    differences = OutputDifferences(
        path="/data/out",
        to="/home/ann/.local/share/lineage-master/replays/8/out/2-saveAsTextFile",
        gone=("d;6.67",),
        new=(),
        changed=(ChangedOutput(was="c,1", is_="c,3", key="c"),),
        gone_total=1,
        new_total=0,
        changed_total=1,
        same=2,
    )
    without = replace(
        first,
        replay="8",
        steps=None,
        mode="without",
        strategy="rows",
        outputs=(),
        verdict="changed",
        diff=(differences,),
        notes=(),
    )
    refusal = Refusal(what="removing a folder", path="/data/out", where="job.py:12")
    refused = replace(
        first, replay="9", steps=None, verdict="refused", outputs=(), refused=(refusal,), notes=()
    )
    return Replays(application_id=APP, replays=(refused, without, first), influences=(), sifts=())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("debugging")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """A job of which one line in 240 gave 57 outputs, and every other one or two."""
    counts = [[1 + at % 2 for at in range(ROWS)] for _ in range(PARTITIONS)]
    counts[ODD[0]][ODD[1]] = 57
    # Outputs of the odd row are those from 3#17 on: each line before it gives one.
    counts[ODD[0]][: ODD[1]] = [1] * ODD[1]
    queries = add_flat_map(folder, lines(), counts)
    app = create_app(queries, read_replays=lambda _: replays_of(folder / "in.csv"))
    with served(app) as address:
        yield address


def test_the_record_that_gave_far_more_comes_first_with_its_row_and_commands(page, url):
    page.goto(f"{url}#/app/{APP}")
    page.get_by_role("link", name="Who behaves oddly?").click()
    first = page.locator(".suspects-list > li").first
    expect(first).to_have_class("is-unusual")
    expect(first.locator("h3")).to_contain_text("gave 57 outputs")
    expect(first.locator(".remarks")).to_contain_text("bits of surprise · unusual")
    expect(page.locator("main")).to_contain_text("1 in 20")
    first.get_by_text("Run the job again with or without these rows").click()
    expect(first.locator(".command").first).to_contain_text(f"lineage replay {APP} --only")
    expect(first.locator(".command").first).to_contain_text(f"in.csv:{ODD_LINE} -- YOUR COMMAND")
    assert page.locator("main img").count() == 0
    first.get_by_role("link", name=f"in.csv:{ODD_LINE}").click()
    expect(page.locator("h1")).to_contain_text("99999")


@pytest.mark.thorough
def test_operations_with_unusual_tasks_are_marked_in_the_graph(page, url):
    page.goto(f"{url}#/app/{APP}")
    expect(page.locator(".canvas[data-elements]")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Unusual")).to_have_count(0)
    page.get_by_role("button", name="Mark who behaves oddly").click()
    expect(page.locator(".tools")).to_contain_text("●: a task behaves oddly there")
    expect(page.locator(".operations tbody tr", has_text="flatMap")).to_contain_text("● 1 suspect")
    assert page.url.endswith("?suspects=1")
    page.get_by_role("link", name="● 1 suspect").click()
    expect(page.locator(".suspects-list > li").first).to_contain_text("flatMap")
    page.go_back()
    page.get_by_role("button", name="Hide who behaves oddly").click()
    expect(page.get_by_role("columnheader", name="Unusual")).to_have_count(0)


def test_rows_of_the_output_are_called_bad_and_good_and_then_compared(page, url):
    page.goto(f"{url}#/app/{APP}/suspects")
    expect(page.locator("section[aria-label=Suspects] h2")).to_be_visible()
    page.get_by_text("Choose bad and good rows of an output").click()
    page.get_by_role("button", name="bad: write#0#0", exact=True).click()
    page.get_by_role("button", name="good: write#0#1", exact=True).click()
    page.get_by_role("button", name="good: write#0#2", exact=True).click()
    expect(page.get_by_role("button", name="bad: write#0#0", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.locator(".marks li")).to_have_count(3)
    page.get_by_role("button", name=re.compile("Take back .* is good")).last.click()
    expect(page.locator(".marks li")).to_have_count(2)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("section[aria-label=Suspects]")).to_contain_text(
        "in the lineage of 1 bad output and 1 good one"
    )
    properties = page.locator("section[aria-label='What bad outputs share']")
    expect(properties.locator("tbody tr").first).to_contain_text("1 of 1")
    assert f"bad={SINK}%23write%230%230&good={SINK}%23write%230%231" in page.url
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text(
        f'lineage contrast {APP} --bad "{SINK}#write#0#0" --good "{SINK}#write#0#1"'
    )
    page.keyboard.press("Escape")
    page.go_back()
    expect(page.locator(".marks li")).to_have_count(0)
    expect(properties).to_be_hidden()


def test_what_cannot_be_compared_is_said_in_the_words_of_the_service(page, url):
    page.goto(f"{url}#/app/{APP}/suspects?bad={SINK}%23write%230%2399999")
    expect(page.locator("section[aria-label=Suspects] [role=alert]")).to_contain_text("99999 is not there")
    page.goto(f"{url}#/app/{APP}/suspects?bad-where=nonsense+%3D%3D")
    expect(page.locator("section[aria-label=Suspects] [role=alert]")).to_be_visible()
    page.errors.clear()  # the browser's own words for the 404 and the 422


@pytest.mark.thorough
def test_newts_rule_scores_without_bits(page, url):
    page.goto(f"{url}#/app/{APP}/suspects")
    page.get_by_label("Scored by").select_option("newt")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".suspects-list .remarks").first).to_contain_text(re.compile("^score [12]"))
    assert page.url.endswith("suspects?method=newt")


def test_input_rows_of_a_record_are_listed_by_source_with_commands(page, url):
    page.goto(f"{url}#/app/{APP}/trace?record=write%233%2317&node={SINK}")
    page.get_by_role("link", name="Input rows").click()
    source = page.locator(".row-source").first
    expect(source).to_contain_text(f"1 of {PARTITIONS * ROWS} records")
    expect(source.locator(".ranges")).to_have_text(f"in.csv line {ODD_LINE}")
    expect(source.get_by_role("link", name=f"in.csv:{ODD_LINE}")).to_be_visible()
    commands = page.locator(".captioned .command")
    expect(commands.first).to_contain_text(f'lineage rows {APP} "write#3#17" --node {SINK} --extract fixture')
    expect(page.locator(".captioned", has_text="come out again")).to_contain_text(
        f'lineage replay {APP} "write#3#17" --node {SINK} -- YOUR COMMAND'
    )
    page.get_by_role("link", name="Its trace").click()
    expect(page.locator("h1")).not_to_have_text("Input rows")


@pytest.mark.thorough
def test_many_input_rows_are_ranges_and_more_are_listed_on_demand(page, url):
    page.goto(f"{url}#/app/{APP}/rowset?node=0&where=value+like+%27North%25%27")
    source = page.locator(".row-source").first
    expect(source).to_contain_text("80 of 240 records")
    expect(source.locator(".ranges")).to_contain_text("in.csv lines 1, 4, 7")
    expect(source.locator(".ranges")).to_contain_text("and 40 more ranges")
    expect(source).to_contain_text("and 60 more input records")
    source.get_by_role("link", name="Show up to 1,000 rows of each source").click()
    expect(source.locator("summary")).to_have_text("70 more rows")
    expect(page.locator(".captioned").first).to_contain_text(
        "--where \"value like 'North%'\" --node 0 --extract"
    )


def test_a_row_set_of_nothing_is_refused_in_the_words_of_the_service(page, url):
    page.goto(f"{url}#/app/{APP}/rowset?failure=1")
    expect(page.get_by_role("alert")).to_contain_text("no failure 1")
    page.errors.clear()  # the browser's own words for the 404


def test_replays_are_listed_and_each_says_what_came_out(page, url):
    page.goto(f"{url}#/app/{APP}")
    page.get_by_role("link", name="Replays").click()
    expect(page.locator("tbody tr .verdict")).to_have_text(["refused", "changed", "reproduced"])
    page.locator("tbody tr").last.get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("Replay 7")
    row = page.locator("table", has_text="As it was").locator("tbody tr")
    expect(row).to_contain_text("56 other rows of the original have the same text")
    expect(page.locator("main")).to_contain_text("in 2 rounds, 1 min 26 s")
    expect(page.locator("main")).to_contain_text("Rows were added to those of the lineage")
    expect(page.locator("main")).to_contain_text(
        f'lineage replay {APP} "{ODD_OUTPUT}" --step -- YOUR COMMAND'
    )
    step = page.locator("table", has_text="Went in").locator("tbody tr")
    expect(step.locator("td").first).to_contain_text(f"in.csv:{ODD_LINE}")
    expect(step.locator("td").last).to_contain_text(f"0#0 {MARKUP}")
    expect(page.locator("main")).to_contain_text("flatMap (1) at lines.py:11: 57 records")
    row.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/trace\?record="))
    page.go_back()
    expect(page.locator("h1")).to_have_text("Replay 7")
    assert page.locator("main img").count() == 0


def test_a_difference_stands_in_two_columns_and_a_refusal_names_its_place(page, url):
    page.goto(f"{url}#/app/{APP}/replays/8")
    expect(page.locator("main")).to_contain_text("1 changed, 1 gone, 0 new, 2 the same")
    differing = page.locator("table", has_text="As it was").locator("tbody tr")
    expect(differing.nth(0).locator("td")).to_have_text(["changed", "c,1", "c,3"])
    expect(differing.nth(1).locator("td")).to_have_text(["gone", "d;6.67", "no such row"])
    expect(page.locator("main")).to_contain_text(f"in.csv:{ODD_LINE} -- YOUR COMMAND")
    page.goto(f"{url}#/app/{APP}/replays/9")
    expect(page.get_by_role("alert")).to_contain_text("removing a folder: /data/out, at job.py:12")
    page.goto(f"{url}#/app/{APP}/replays/77")
    expect(page.locator("main")).to_contain_text("There is no replay 77")


def test_why_gathers_what_concerns_one_record(page, url):
    page.goto(f"{url}#/app/{APP}/trace?record=write%233%2317&node={SINK}")
    page.get_by_role("link", name="Why?").click()

    def part(title):
        return page.locator(f"section[aria-label='{title}']")

    expect(part("Failures on its way")).to_contain_text("No task is known to have failed there")
    expect(part("Unusual steps on its way").locator("li").first).to_contain_text("gave 57 outputs")
    expect(part("Unusual steps on its way").locator("li").first).to_contain_text("leads to a bad output")
    expect(part("What its input rows share").locator("tbody tr").first).to_contain_text("1 of 1")
    expect(part("Slow records on its way")).to_contain_text("No record is known to have taken long")
    expect(part("Its replays").locator("li")).to_have_text("Replay 7 on 1 input row: reproduced")
    expect(page.locator(".captioned").first).to_contain_text("-- YOUR COMMAND")
    page.get_by_role("link", name="compared with outputs that are right").click()
    expect(page.locator(".marks li.bad")).to_contain_text(ODD_OUTPUT)
    page.go_back()
    part("Its replays").get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("Replay 7")


@pytest.mark.thorough
def test_a_failure_leads_to_why_and_to_what_its_records_share(page, tmp_path):
    stored = StoredFailures(tmp_path, [])
    stored.add(run_failed(11, 10, record=["str", "c"]))
    with served(create_app(stored.queries)) as address:
        page.goto(f"{address}#/app/{FAILED_APP}/failures")
        page.get_by_role("link", name="why?").click()
        failures = page.locator("section[aria-label='Failures on its way']")
        expect(failures).to_contain_text("map failed on line 3 of in.txt.")
        expect(page.locator(".captioned").first).to_contain_text(f"lineage replay {FAILED_APP} --failure 1")
        page.go_back()
        page.get_by_role("link", name="What do the input rows of these records share?").click()
        expect(page.get_by_label("the records that made tasks fail are bad, too")).to_be_checked()
        page.errors.clear()  # nothing else was collected, so there is nothing to compare with: a 422


@pytest.mark.thorough
def test_why_names_records_that_took_long_at_its_operations(page, tmp_path):
    stored = StoredFailures(tmp_path, [4])
    about = {"run": 9, "split": 0, "attempt": 1, "stage": 3, "action": 2, "input": 0, "nodes": [1, 2]}
    stored.add(event(contract.RUN_COMMITTED, **about, inputs=4, outputs=4, slow=[[1, 2, 310]]))
    with served(create_app(stored.queries)) as address:
        page.goto(f"{address}#/app/{FAILED_APP}/why?node=2&partition=0&offset=2")
        slow = page.locator("section[aria-label='Slow records on its way'] li")
        expect(slow).to_contain_text("map took 310 ms for read#0#2")
        expect(slow.get_by_role("link", name="in.txt:3")).to_be_visible()


@pytest.mark.thorough
def test_a_record_that_only_a_failed_task_has_read_says_so(page, tmp_path):
    stored = StoredFailures(tmp_path, [])
    stored.add(run_failed(11, 10))
    with served(create_app(stored.queries)) as address:
        page.goto(f"{address}#/app/{FAILED_APP}/trace?node=0&partition=0&offset=2")
        expect(page.get_by_role("alert")).to_contain_text("A task failed there")
        expect(page.locator("h1")).to_have_text("There is no such record")
        page.get_by_role("link", name="the failures").click()
        expect(page.locator(".failures-list > li")).to_have_count(1)
        page.errors.clear()  # the browser's own words for the 404


@pytest.mark.thorough
def test_nothing_is_wider_than_a_phone(browser, url):
    with opened(browser) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        for address, text in ADDRESSES.items():
            page.goto(f"{url}#/app/{APP}/{address}")
            expect(page.locator("main")).to_contain_text(text)
            expect(page.locator(".loading")).to_have_count(0)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        for address, text in ADDRESSES.items():
            page.goto(f"{url}#/app/{APP}/{address}")
            expect(page.locator("main")).to_contain_text(text)
            expect(page.locator(".loading")).to_have_count(0)
            if address == "suspects":
                page.get_by_text("Choose bad and good rows of an output").click()
                expect(page.locator("button.mark").first).to_be_visible()
            assert violations(page) == [], address
        assert page.errors == []


def test_why_shows_what_influences_and_sifts_have_found(page, tmp_path):
    rows = ["Graz,1.5", "Linz,2"]
    for name in ("in.csv", "out.csv"):
        (tmp_path / name).write_text("".join(f"{row}\n" for row in rows))
    read, written = (splits_of(tmp_path / name) for name in ("in.csv", "out.csv"))
    queries = questions_of(tmp_path, read, [len(rows)], written=written)
    output = FailingOutput(path=str(tmp_path / "out.csv"), row=1, line=2, text="Linz,2")
    row = {"record": "0#1", "path": str(tmp_path / "in.csv"), "row": 1, "line": 2, "text": "Linz,2"}
    moving = InfluentialRow(**row, change=0.5, failed=False, without="Linz,1.5", estimated=False)
    gone = replace(moving, change=None, without=None)
    about = {"application_id": FAILED_APP, "tests": 1, "sandbox": "/x", "seconds": 1.0, "notes": (MARKUP,)}
    influence = Influence(
        **about, influence="8", output=output, inputs=(gone, moving), total=2, way="folds", why="",
        whole=False, exact=True,
    )  # fmt: skip
    sift = Sift(
        **about, sift="9", test=f"a row for which {MARKUP} holds", rows=(SiftedRow(**row),), total=1, of=2,
        outputs=(output,), sufficient=True, necessary=True, minimal=True, whole=False, unresolved=0,
        exact=True, saved=None,
    )  # fmt: skip
    again = Replays(application_id=FAILED_APP, replays=(), influences=(influence,), sifts=(sift,))
    with served(create_app(queries, read_replays=lambda _: again)) as address:
        page.goto(f"{address}#/app/{FAILED_APP}/why?record=write%230%231&node=2")
        items = page.locator("section[aria-label='Its replays'] > div > ul > li")
        expect(items).to_have_count(2)
        expect(items.first).to_contain_text("Influence 8, without each of its 2 input rows:")
        expect(items.first.locator("li").first).to_contain_text("gone")
        expect(items.first.get_by_label("moves it by 0.5")).to_be_visible()
        expect(items.last).to_contain_text(f"1 of 2 input rows is enough for a row for which {MARKUP} holds:")
        assert violations(page) == []
        items.last.locator("li a").click()
        expect(page.locator("h1")).to_contain_text("Linz,2")
