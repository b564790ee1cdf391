from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.replay.hostile_jobs import FRIENDLY, HOSTILE, make_data, script_of
from tests.support.replay.playground import Outcome, Playground

STEPS = {
    **{name: text for name, (text, _) in HOSTILE.items()},
    **{f"ok_{name}": FRIENDLY[name] for name in FRIENDLY},
}
#: Those of each kind that `make test` runs.
QUICK = (
    *("overwrite_mode", "save_text_over_input", "write_by_java", "insert_directory", "create_table"),
    *("script_transform", "streaming", "fs_delete", "fs_context", "fs_setting", "java_file", "java_runtime"),
    *("worker_remove", "worker_process", "udf", "pipe", "foreach", "run_job", "driver_rmtree"),
    *("ok_reads", "ok_sql", "ok_hadoop_in_sandbox", "ok_written_and_read"),
)
#: How an application runs: its steps, whether with the kernel's fence, and how often in one process if so.
WAYS = {
    "quick": (QUICK, False, 0),
    "alone": (tuple(STEPS), False, 0),
    "confined": (tuple(STEPS), True, 0),
    "again": (tuple(STEPS), True, 2),
}
#: A second of patience for a broker that is not there.
CONF = {"spark.lineage.kafka.bootstrap.servers": "127.0.0.1:1", "spark.lineage.delivery.timeout": "1"}


class Ran(NamedTuple):
    """A job of many steps: how it ended, and each step's error."""

    outcome: Outcome
    errors: Mapping[str, str]


Run = Callable[[str], Ran]


def marks(way: str) -> pytest.MarkDecorator | tuple[()]:
    return () if way == "quick" else pytest.mark.thorough


each_way = pytest.mark.parametrize("way", [pytest.param(way, marks=marks(way)) for way in WAYS])


def each_step(names: Iterable[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("way", "name"),
        [
            pytest.param(way, name, marks=marks(way))
            for way, (steps, *_) in WAYS.items()
            for name in names
            if name in steps
        ],
    )


@pytest.fixture(scope="module")
def run(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """run(way): the job, which runs once."""
    ran: dict[str, Ran] = {}

    def run(way: str) -> Ran:
        if way not in ran:
            ran[way] = _run(tmp_path_factory.mktemp(way), *WAYS[way])
        return ran[way]

    return run


def _run(folder: Path, steps: tuple[str, ...], is_confined: bool, runs: int) -> Ran:
    playground = Playground(folder)
    make_data(playground.data, steps)
    options = " ".join(f"--conf {name}={value}" for name, value in CONF.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
        outcome = playground.run(
            script_of({name: STEPS[name] for name in steps}),
            protected=[str(playground.data)],
            is_confined=is_confined,
            runs=runs,
        )
    lines = [line for line in outcome.output.splitlines() if line.startswith("STEP ")]
    return Ran(outcome, dict(json.loads(line.removeprefix("STEP ")) for line in lines))


@each_way
def test_nothing_at_all_changed_though_all_steps_ran(run: Run, way: str) -> None:
    ran = run(way)
    assert ran.outcome.changed == {}
    assert list(ran.errors) == [*WAYS[way][0]], ran.outcome.output[-5000:]
    assert ran.outcome.exit_code == 0


@each_step([name for name in HOSTILE if HOSTILE[name][1]])
def test_a_hostile_step_is_refused_by_name(run: Run, way: str, name: str) -> None:
    ran, mention = run(way), HOSTILE[name][1]
    refused = [note for note in ran.outcome.notes["refused"] if mention in f"{note['what']} {note['path']}"]
    assert refused, (ran.errors[name], ran.outcome.notes)
    assert any(note["where"].startswith("job.py:") for note in refused), refused


@each_step([name for name in HOSTILE if not HOSTILE[name][1]])
def test_a_step_that_is_redirected_or_not_called_goes_on(run: Run, way: str, name: str) -> None:
    assert run(way).errors[name] == ""


@each_step([name for name in STEPS if name.startswith("ok_")])
def test_a_friendly_step_ends_well(run: Run, way: str, name: str) -> None:
    assert run(way).errors[name] == ""
