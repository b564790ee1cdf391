from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lineage_service.replays.errors import CommandError
from lineage_service.replays.launcher import Interpreter, interpreters_of, rerun_words


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Programs that are there, and do nothing."""
    for name in ("python3", "python3.11", "spark-submit", "driver-python", "worker-python", "bash"):
        (tmp_path / name).touch(0o755)
    return {"PATH": str(tmp_path), "SPARK_CONF_DIR": str(tmp_path)}


def options_of(environment: dict[str, str], *words: str) -> tuple[str, ...]:
    return interpreters_of(words, environment)[0].options


def test_the_options_of_python_end_before_its_script(environment: dict[str, str]) -> None:
    assert options_of(environment, "python3", "job.py", "-S") == ()
    assert options_of(environment, "python3", "-u", "-W", "error", "-Xdev", "job.py") == (
        *("-u", "-W", "error", "-Xdev"),
    )
    assert options_of(environment, "python3.11", "-m", "pytest") == ()
    assert options_of(environment, "python3", "-S", "-c", "print()") == ("-S",)
    assert options_of(environment, "python3", "-Im", "job") == ("-I",)


def names_of(environment: dict[str, str], *words: str) -> list[str]:
    return [Path(interpreter.path).name for interpreter in interpreters_of(words, environment)]


def test_a_submit_starts_the_python_that_its_configuration_names(
    environment: dict[str, str], tmp_path: Path
) -> None:
    assert names_of(environment, "spark-submit", "job.py") == ["python3"]
    chosen = {**environment, "PYSPARK_PYTHON": "worker-python", "PYSPARK_DRIVER_PYTHON": "driver-python"}
    assert names_of(chosen, "spark-submit", "--master", "local[2]", "job.py") == [
        "driver-python",
        "worker-python",
    ]
    conf = ("--conf", "spark.pyspark.python=worker-python")
    assert names_of(environment, "spark-submit", "--verbose", *conf, "job.py") == ["worker-python"]
    (tmp_path / "spark-defaults.conf").write_text("# none\nspark.pyspark.driver.python   driver-python\n")
    assert names_of(environment, "spark-submit", "job.py") == ["driver-python", "python3"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nowhere", "job.py"), "the command nowhere is not there"),
        (("python3",), "runs no script"),
        (("python3", "-"), "runs no script"),
        (("spark-submit", "--class", "Main", "job.jar"), "only Python scripts can be replayed"),
        (("spark-submit", "--deploy-mode", "cluster", "job.py"), "a driver in the cluster"),
        (("spark-submit", "--deploy-mode=cluster", "job.py"), "a driver in the cluster"),
        (("spark-submit", "--conf", "spark.submit.deployMode=cluster", "job.py"), "a driver in the cluster"),
        ((), "say which command"),
    ],
)
def test_what_cannot_be_guarded_is_refused(
    environment: dict[str, str], words: tuple[str, ...], why: str
) -> None:
    with pytest.raises(CommandError, match=why):
        interpreters_of(words, environment)


def test_other_commands_are_left_to_the_guard(environment: dict[str, str]) -> None:
    assert interpreters_of(("bash", "-c", "python job.py"), environment) == ()


def test_a_python_by_its_path_is_that_one() -> None:
    assert interpreters_of((sys.executable, "job.py"), {"PATH": "", "PYSPARK_PYTHON": sys.executable}) == (
        Interpreter(sys.executable),
    )


def test_the_job_is_run_again_by_a_module_before_it() -> None:
    rerun = "spark_agent.driver.replay.rerun"
    assert rerun_words(["python3", "-u", "job.py", "-m"]) == ["python3", "-u", "-m", rerun, "job.py", "-m"]
    assert rerun_words(["python3", "-m", "jobs.sales", "x"]) == [
        "python3",
        "-m",
        rerun,
        "-m",
        "jobs.sales",
        "x",
    ]
    assert rerun_words(["python3", "-c", "print()"]) == ["python3", "-m", rerun, "-c", "print()"]
    assert rerun_words(["python3", "-um", "job"]) is None
    assert rerun_words(["sh", "-c", "python job.py"]) is None
    words = rerun_words(["spark-submit", "--conf", "a=b", "--verbose", "job.py", "--conf", "x"])
    assert words is not None
    assert Path(words[4]).parts[-4:] == ("spark_agent", "driver", "replay", "rerun.py")
    assert [*words[:4], *words[5:]] == [
        *("spark-submit", "--conf", "a=b", "--verbose", "job.py", "--conf", "x")
    ]
