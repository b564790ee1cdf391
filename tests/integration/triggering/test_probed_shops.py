"""Probes over a real flow store and real files: what they say is what a full run would have shown."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lineage_service.lineage import Trigger
from lineage_service.triggering.probing.prober import CHECKS
from tests.support.changing_job import changing_job
from tests.support.shop_job import LEAST, ShopJob

SHOPS, SALES = 400, 1200


class Shops:
    """A job whose sales change a little each wave."""

    def __init__(self, job: ShopJob, seed: int) -> None:
        self.job, self.draw = job, random.Random(seed)
        job.sales = {id: self.sale() for id in range(SALES)}
        self.number = 0

    def sale(self) -> tuple[str, int]:
        return f"s{self.draw.randrange(SHOPS)}", self.draw.randrange(1, 100)

    def change(self) -> None:
        id = self.draw.choice(list(self.job.sales))
        shop, amount = self.job.sales[id]
        match self.draw.randrange(4):
            case 0:
                self.job.sales[id] = shop, amount + self.draw.randrange(1, 30)
            case 1:
                self.job.sales[id] = f"s{self.draw.randrange(SHOPS)}", amount
            case 2:
                del self.job.sales[id]
            case 3:
                self.job.sales[max(self.job.sales) + 1] = self.sale()

    def wave(self, *, code: str = "v1", **terms: Any) -> Trigger:
        """Asks, and runs the job if it is to run."""
        self.job.write_input()
        answer = self.job.ask(f"w{self.number}", **terms)
        self.number += 1
        if answer.run:
            self.job.run(answer.wave, code)
        return answer

    def trusted(self) -> None:
        """Until probes decide."""
        for _ in range(CHECKS + 2):
            self.wave()
            self.change()


@pytest.fixture(params=[1])
def shops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Shops:
    clock = changing_job(tmp_path, monkeypatch).clock
    return Shops(ShopJob(tmp_path / "shops", clock, {}), request.param)


def error_between(stale: dict[str, int], correct: dict[str, int]) -> float:
    """Equation 3 of the paper, once more."""
    keys = stale.keys() | correct.keys()
    pairs = [(stale.get(key, 0), correct.get(key, 0)) for key in keys]
    changed = sum(stale.get(key) != correct.get(key) for key in keys)
    distance = sum(abs(then - now) for then, now in pairs)
    return changed * distance / (len(keys) * sum(max(pair) for pair in pairs)) if changed else 0.0


@pytest.mark.parametrize(
    "shops", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 6))], indirect=True
)
def test_a_probe_says_the_error_that_a_full_run_would_show(shops: Shops) -> None:
    shops.trusted()
    job = shops.job
    for _ in range(8):
        shops.change()
        job.write_input()
        truth = error_between(job.last_output, job.totals(job.input))
        answer = shops.wave(bound=0.0001)
        assert answer.reason == "probed", answer.why
        assert answer.run == (truth > 0.0001)
        if not answer.run:
            assert answer.error == pytest.approx(truth, abs=1e-12)
        assert f"the error is {truth:.4g}" in answer.why


def test_the_first_probes_only_say_what_they_expect_and_the_job_runs_beside_them(shops: Shops) -> None:
    answers = []
    for _ in range(CHECKS + 3):
        answers.append(shops.wave())
        shops.change()
    assert [answer.reason for answer in answers[: CHECKS + 2]] == ["never_ran", *["training"] * (CHECKS + 1)]
    assert "before its last execution is not known" in answers[1].why
    assert "0 of 3 such checks agreed" in answers[2].why
    assert answers[-1].reason == "probed"


def test_once_a_run_writes_what_no_probe_expected_it_is_not_probed_until_its_code_changes(
    shops: Shops,
) -> None:
    shops.wave()
    for _ in range(2):
        shops.change()
        shops.wave()
    shops.change()
    shops.job.fault = lambda totals: {shop: total + 1 for shop, total in totals.items()}
    shops.wave()
    shops.job.fault = lambda totals: totals
    for _ in range(2):
        shops.change()
        answer = shops.wave()
        assert "another output than a probe" in answer.why
    shops.change()
    shops.wave(code="v2")
    shops.change()
    assert shops.wave(code="v2").reason in ("code", "training")
    shops.change()
    assert "another output" not in shops.wave(code="v2").why


def test_a_new_row_that_lifts_a_group_above_the_threshold_is_seen(shops: Shops) -> None:
    shops.trusted()
    job = shops.job
    shops.wave(bound=1e-12)  # the output is as the input wants it
    for number in range(LEAST - 1):
        job.sales[10_000 + number] = "new", 50
    assert shops.wave(bound=0.5).error == 0.0  # there is no such group in the output yet
    job.sales[20_000] = "new", 50
    job.write_input()
    truth = error_between(job.last_output, job.totals(job.input))
    answer = shops.wave(bound=0.5)
    assert answer.reason == "probed"
    assert answer.error == pytest.approx(truth)
    assert truth > 0


@pytest.mark.thorough
def test_rows_in_another_order_and_other_files_need_no_probe(shops: Shops) -> None:
    shops.trusted()
    job = shops.job
    shops.wave(bound=0.0001)
    probes, renamed = job.probes, job.input / "2.csv"
    job.write_input()
    (job.input / "1.csv").rename(renamed)
    answer = job.ask("renamed")
    assert (answer.decision, answer.reason) == ("skip", "probed"), answer.why
    assert job.probes <= probes + 1


def test_what_fails_on_some_rows_is_run_and_said(shops: Shops) -> None:
    shops.trusted()
    shops.job.on_rows = shops.job.crash
    answers = []
    for _ in range(CHECKS + 1):
        answers.append(shops.wave())
        shops.change()
    assert all(answer.run for answer in answers)
    assert "not probed: the command ended with exit code 1: boom" in answers[0].why
    assert "its last 3 probes showed nothing: the command ended" in answers[-1].why
    assert shops.job.probes == 2 * CHECKS


@pytest.mark.thorough
def test_an_input_that_is_written_during_the_probe_is_run(shops: Shops) -> None:
    shops.trusted()

    def write() -> None:
        shops.job.write_input()

    shops.job.on_rows = write
    answer = shops.wave()
    assert answer.run
    assert "was written during the probe" in answer.why


@pytest.mark.thorough
def test_a_job_that_should_not_run_on_some_rows_is_probed_once(shops: Shops) -> None:
    shops.job.unsure = "columns are inferred from all rows"
    shops.wave()
    for _ in range(3):
        shops.change()
        answer = shops.wave()
    assert "not probed: columns are inferred from all rows" in answer.why
    assert shops.job.probes == 1


@pytest.mark.thorough
def test_many_changed_groups_are_run(shops: Shops) -> None:
    shops.trusted()
    shops.job.sales = {id: (shop, amount + 1) for id, (shop, amount) in shops.job.sales.items()}
    answer = shops.wave()
    assert answer.run
    assert "a tenth or more" in answer.why


def test_a_function_that_depends_on_the_order_of_rows_is_run(shops: Shops) -> None:
    shops.job.describe = "[shop], [shop, first(amount, false) AS total]"
    for _ in range(3):
        answer = shops.wave()
        shops.change()
    assert "not probed: first in Aggregate may depend on the order of rows" in answer.why


@pytest.mark.thorough
def test_forgetting_removes_what_probes_rest_on(shops: Shops) -> None:
    shops.trusted()
    table = shops.job.folder / "flows" / "wave_probes"
    assert list(table.glob("key=*"))
    shops.job.jobs.forget("shops")
    assert not list(table.glob("key=*"))
