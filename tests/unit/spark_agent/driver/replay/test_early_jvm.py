"""The JVM that is started early is the one that the program would have started; without one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_agent.driver.replay.early_jvm import EarlyJvm


class Conf:
    def __init__(self, **settings: str) -> None:
        self._settings = settings

    def getAll(self) -> list[tuple[str, str]]:
        return [(name.replace("_", "."), value) for name, value in self._settings.items()]


class Launcher:
    """PySpark's module; notes what is started with which conf, and what is ended."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.ended: list[int] = []
        self.properties: dict[str, str] = {}
        self.launch_gateway = self._launch

    def _launch(self, conf: Any = None, popen_kwargs: Any = None) -> Any:
        number = len(self.asked)
        self.asked.append(conf)
        system = SimpleNamespace(setProperty=self.properties.__setitem__)
        lang = SimpleNamespace(System=system)
        process = SimpleNamespace(kill=lambda: self.ended.append(number), wait=lambda: 0)
        jvm = SimpleNamespace(java=SimpleNamespace(lang=lang))
        return SimpleNamespace(number=number, jvm=jvm, proc=process, shutdown=lambda: None)


def begun() -> Launcher:
    launcher = Launcher()
    EarlyJvm(launcher).begin()
    return launcher


def test_the_program_gets_the_one_that_is_there_and_later_ones_are_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.ui.enabled=false pyspark-shell")
    launcher = begun()
    conf = Conf(spark_app_name="Sums", spark_ui_enabled="true", spark_sql_shuffle_partitions="3")
    assert launcher.launch_gateway(conf).number == 0
    assert launcher.properties == {"spark.app.name": "Sums", "spark.sql.shuffle.partitions": "3"}
    assert launcher.launch_gateway(conf).number == 1
    assert (launcher.asked, launcher.ended) == ([None, conf], [])


@pytest.mark.parametrize("name", ["spark.driver.memory", "spark.jars.packages", "my.setting"])
def test_a_setting_for_the_start_of_the_jvm_starts_another_one(name: str) -> None:
    launcher = begun()
    conf = Conf(**{name.replace(".", "_"): "x"})
    assert launcher.launch_gateway(conf).number == 1
    assert (launcher.asked, launcher.ended) == ([None, conf], [0])


def test_another_environment_or_folder_starts_another_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("EARLY_JVM", raising=False)
    changes: list[Callable[[], None]] = [
        lambda: os.environ.update(EARLY_JVM="1"),
        lambda: os.chdir(tmp_path),
    ]
    before = Path.cwd()
    for change in changes:
        launcher = begun()
        change()
        assert launcher.launch_gateway().number == 1
        assert launcher.ended == [0]
        monkeypatch.delenv("EARLY_JVM", raising=False)
        os.chdir(before)
