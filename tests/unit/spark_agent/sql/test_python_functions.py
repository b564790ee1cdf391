from __future__ import annotations

import pyspark
import pytest

from spark_agent.sql.python_functions import results_at_once


@pytest.mark.parametrize(("version", "count"), [("3.5.9", 100), ("4.0.5", 7), ("4.3.0", 7)])
def test_how_many_results_come_at_once_is_asked_of_a_conf_that_workers_ask_too(
    version: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    assert results_at_once(lambda name, default: "7") == count


def test_without_a_setting_it_is_the_default() -> None:
    assert results_at_once(lambda name, default: default) == 100
