"""A real browser on the pages of jobs, over a real table of answers and the executions between them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import expect

from lineage_api.access import Access
from lineage_api.app import create_app
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from lineage_service.triggering.learning.drift import BROKEN, KEPT, SKIPPED, Looks
from lineage_service.triggering.learning.drift import RUN as RAN
from lineage_service.triggering.learning.phases import Policy, Progress
from lineage_service.triggering.stored_jobs import StoredJobs
from lineage_service.triggering.waves.wave_history import Wave, WaveHistory
from lineage_service.triggering.weighing.experience import Experience
from tests.support.dataset_applications import Job, store_all
from tests.support.e2e.browser import opened, served, violations
from tests.support.lanes import sampled

BEGAN = 1_795_000_000_000
HOUR = 3_600_000
MARKUP = "<img src=x onerror=alert(1)>"
BOUND = {"bound": 0.05, "confidence": 0.95}
#: What skipping would have meant at these waves: known with the answer behind the execution.
ERRORS = {20: 0.021, 24: 0.3}


def execution(number: int, name: str, hour: int, minutes: int, **about: Any) -> Job:
    job = Job(f"local-{number}", name=name, began=BEGAN + hour * HOUR, **about)
    job.write(f"/data/{name}/out", [job.read(f"/data/{name}/in", rows=3)], rows=3)
    job.time = BEGAN + hour * HOUR + minutes * 60_000
    return job.end()


def answers(history: WaveHistory, job: str, *waves: dict[str, Any]) -> None:
    for number, answer in enumerate(waves):
        values = {"wave": f"{job[:3]}-{number}", "phase": "certain", "seconds": 0.5, **answer}
        history.add(Wave(job=job, number=number, time=BEGAN + (number + 1) * HOUR, **values), number)


RUN = {"decision": "run", "reason": "changed", "why": "an input has changed", "application_id": "local-1"}
SKIP = {**RUN, "decision": "skip", "reason": "unchanged", "why": f"nothing has changed {MARKUP}"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DeltaFlowStore:
    """`takings` is asked about for certain answers, `air quality` with a bound, and `etl/report` never."""
    folder: Path = tmp_path_factory.mktemp("jobs")
    store = DeltaFlowStore(folder / "flows")
    store_all(
        store,
        execution(1, "takings", 0, 90),
        execution(2, "hourly.py", 1, 4, job="air quality"),
        execution(3, "etl/report", 2, 1),
    )
    history = WaveHistory(store.location)
    lost = {**SKIP, "application_id": "local-0", "seconds": None}
    answers(history, "takings", RUN, SKIP, lost, SKIP)
    training = {**RUN, **BOUND, "phase": "training"}
    model = {
        **BOUND,
        "phase": "application",
        "threshold": 0.19,
        "seconds": 400.0,
        "application_id": "local-2",
    }
    tested = {"compliance": 0.978, "compliance_lower": 0.961, "compliance_waves": 400}
    looks = Looks(recent=SKIPPED * 6 + RAN * 6 + KEPT * 6 + BROKEN * 2)
    progress = Progress(phase="application", looks=looks)
    learned = Experience(terms="", policy=Policy(bound=0.05), progress=progress).to_json()
    answers(
        history,
        "air quality",
        *[training] * 20,
        {**RUN, **model, **tested, "probability": 0.6},
        *[{**SKIP, **model, **tested, "probability": 0.04, "reason": "tolerated"}] * 3,
        {**RUN, **model, **tested, "probability": 0.1, "is_audit": True, "reason": "audit"},
        {**SKIP, **BOUND, "application_id": "local-2", "learned": learned, "errors": ERRORS},
    )
    return store


@pytest.fixture(scope="module")
def url(store: DeltaFlowStore) -> Iterator[str]:
    with served(create_app(LineageQueries(store, time_budget_s=60), jobs=StoredJobs(store))) as address:
        yield address


def figure(page: Any, name: str) -> Any:
    return page.locator(".figure", has_text=name).first


def test_a_job_leads_from_the_list_to_its_decisions_and_to_its_last_execution(page, url):
    page.goto(f"{url}#/jobs")
    expect(page).to_have_title("Jobs · Lineage Master")
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.locator("#places [aria-current]")).to_have_text("Jobs")
    expect(page.locator("tbody tr", has_text="etl/report")).to_contain_text("never asked about")
    page.get_by_role("link", name="takings", exact=True).click()
    expect(page.locator("h1")).to_have_text("takings")
    expect(page.locator("#trail a")).to_have_text(["Jobs"])
    facts = page.locator("dl.facts")
    for said in ("local-1", "/data/takings/in", "/data/takings/out", "certain answers"):
        expect(facts).to_contain_text(said)
    expect(figure(page, "Asked about")).to_contain_text("4 waves: 1 run, 3 skipped")
    expect(figure(page, "Compliance")).to_contain_text("not known")
    expect(figure(page, "Saved by skips")).to_contain_text("3 h 0 min")
    expect(figure(page, "Saved by skips")).to_contain_text("without 1 skip")
    expect(figure(page, "Spent on answers")).to_contain_text("1.5 s")
    expect(figure(page, "Spent on answers")).to_contain_text("without 1 answer whose time was not kept")
    expect(figure(page, "Saved minus spent")).to_contain_text("of what is known")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text(f"nothing has changed {MARKUP}")
    assert page.locator("main img").count() == 0
    expect(page.locator(".waves rect.skip")).to_have_count(3)
    expect(page.locator(".waves circle")).to_have_count(0)
    facts.get_by_role("link", name="local-1").click()
    page.get_by_role("link", name="Its job").click()
    expect(page.locator("h1")).to_have_text("takings")


def test_the_next_wave_is_run_on_a_click(page, url, store):
    page.goto(f"{url}#/job/etl%2Freport")
    expect(page.locator("main")).to_contain_text("Nobody has asked whether to run it.")
    page.get_by_role("button", name="Run next time").click()
    expect(page.get_by_role("button", name="The next wave is run")).to_be_disabled()
    assert StoredJobs(store).job("etl/report").run_next
    page.reload()
    expect(page.get_by_role("button", name="The next wave is run")).to_be_disabled()


@pytest.mark.thorough
def test_a_job_with_a_bound_has_what_was_expected_and_measured(page, url):
    page.goto(f"{url}#/jobs")
    page.get_by_label("Name").press_sequentially("air")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"#/jobs\?text=air$"))
    page.locator("tbody tr a").first.click()
    expect(page.locator("h1")).to_have_text("air quality")
    expect(page.locator("dl.facts")).to_contain_text("a model is in charge")
    tested, charge = figure(page, "Compliance in the test"), figure(page, "Compliance in charge")
    expect(tested).to_contain_text("97.8 % of 400 waves")
    expect(tested).to_contain_text("within 5 %, 95 % lower bound 96.1 %, wanted 95 %")
    expect(charge).to_contain_text("92.5 %, 2 of 8 audits above it")
    expect(charge).to_contain_text("20 waves decided, 6 skipped, 95 % lower bound")
    below = "it keeps the bound less often than is wanted"
    expect(page.locator(".notice.caution").first).to_contain_text(below)
    expect(figure(page, "Saved minus spent")).to_contain_text("−")
    expect(page.locator("main")).to_contain_text("Until now, asking costs more than skipping saves.")
    drawing = page.get_by_role("img", name="26 waves over time")
    expect(drawing.locator(".probability circle")).to_have_count(5)
    expect(drawing.locator(".error circle")).to_have_count(2)
    expect(drawing.locator(".error circle.missed")).to_have_count(1)
    expect(drawing.locator("rect.run")).to_have_count(22)
    expect(page.get_by_role("img", name="1 of 2 measured errors beyond the bound")).to_be_visible()
    audit = page.locator('tr[data-key="air-24"]')
    expect(audit).to_contain_text("application, audit")
    expect(audit).to_contain_text("10 % < 19 %")
    expect(audit.locator(".is-failed")).to_have_text("0.3 > 0.05")
    page.get_by_text("Copy command").click()
    expect(page.locator("#commands")).to_contain_text('lineage trigger waves "air quality"')


@pytest.mark.thorough
def test_a_job_that_has_learned_trains_anew_on_a_click(page, url, store):
    page.goto(f"{url}#/job/takings")
    expect(page.get_by_role("button", name="Run next time")).to_be_visible()
    expect(page.get_by_role("button", name="Train anew")).to_have_count(0)
    page.goto(f"{url}#/job/air%20quality")
    page.get_by_role("button", name="Train anew").click()
    expect(page.get_by_role("button", name="It trains anew from the next wave on")).to_be_disabled()
    assert WaveHistory(store.location).retrained("air quality") == 26
    expect(page.locator(".figure", has_text="Compliance in charge")).to_have_count(0)


@pytest.mark.thorough
def test_an_execution_of_a_job_of_another_name_leads_to_its_job(page, url):
    page.goto(f"{url}#/app/local-2")
    page.get_by_role("link", name="Its job").click()
    expect(page.locator("h1")).to_have_text("air quality")


@pytest.mark.thorough
def test_many_waves_are_shown_on_demand(page, store):
    job = "many"
    history = WaveHistory(store.location)
    if not history.waves(job):
        answers(history, job, *[SKIP] * 203)
    with served(create_app(LineageQueries(store, time_budget_s=60), jobs=StoredJobs(store))) as url:
        page.goto(f"{url}#/job/{job}")
        expect(page.locator("tbody tr")).to_have_count(200)
        page.get_by_role("link", name="All 203 waves").click()
        expect(page.locator("tbody tr")).to_have_count(203)


@pytest.mark.thorough
def test_a_click_needs_the_token(page, store):
    token = "the-token-of-a-test"
    queries = LineageQueries(store, time_budget_s=60)
    with served(create_app(queries, jobs=StoredJobs(store), access=Access.of(token))) as url:
        page.goto(f"{url}#/job/takings")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Run next time").click()
        expect(page.get_by_role("button", name="The next wave is run")).to_be_disabled()
        page.evaluate("sessionStorage.clear()")
        page.goto(f"{url}#/job/etl%2Freport")
        expect(page.locator("h1")).to_have_text("This service requires a token")
    page.errors.clear()


@pytest.mark.thorough
def test_a_job_that_is_not_known_is_said_to_be(page, url):
    page.goto(f"{url}#/job/nobody")
    expect(page.get_by_role("alert")).to_contain_text("o job 'nobody' is known")
    page.errors.clear()


@pytest.mark.thorough
def test_without_a_job_the_page_says_how_to_get_one(page, tmp_path):
    store = DeltaFlowStore(tmp_path / "flows")
    with served(create_app(LineageQueries(store, time_budget_s=60), jobs=StoredJobs(store))) as url:
        page.goto(f"{url}#/jobs")
        expect(page.locator("main")).to_contain_text("lineage trigger JOB")


@pytest.mark.thorough
@pytest.mark.parametrize("width", sampled([360, 1366], 2))
def test_nothing_is_wider_than_the_screen(browser, url, width):
    with opened(browser) as page:
        page.set_viewport_size({"width": width, "height": 800})
        for address in ("#/jobs", "#/job/air%20quality"):
            page.goto(url + address)
            expect(page.locator("tbody tr").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address


@pytest.mark.thorough
@pytest.mark.parametrize("theme", sampled(["light", "dark"], 2))
def test_axe_finds_nothing_serious(browser, url, theme):
    with opened(browser, color_scheme=theme, reduced_motion="reduce") as page:
        for address in ("#/jobs", "#/job/air%20quality", "#/job/etl%2Freport"):
            page.goto(url + address)
            expect(page.locator("main")).to_contain_text(re.compile("Waves|Job"))
            expect(page.locator(".loading")).to_have_count(0)
            assert violations(page) == [], address
        assert page.errors == []
