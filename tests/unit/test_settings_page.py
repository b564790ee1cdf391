from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.settings import Settings
from spark_agent.settings import SETTINGS, read

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def agent_table() -> str:
    rows = [f"| `{each.name}` | {_default(each.default)} | {each.help} |" for each in SETTINGS]
    return "\n".join(["| Spark conf | default | meaning |", "|---|---|---|", *rows])


def service_table() -> str:
    rows = [
        f"| `LINEAGE_{name.upper()}` | `--{name.replace('_', '-')}` "
        f"| {_default('' if field.default_factory else str(field.default))} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| environment | flag | default | meaning |", "|---|---|---|---|", *rows])


def _default(text: str) -> str:
    return f"`{text}`" if text else "empty"


@pytest.mark.parametrize("table", [agent_table, service_table])
def test_the_page_holds_the_table_of_settings(table: object) -> None:
    assert callable(table)
    made = table()
    assert made in PAGE.read_text(encoding="utf-8"), f"docs/settings.md must hold:\n\n{made}"


def test_bad_values_fall_back_and_are_reported() -> None:
    conf = {"spark.lineage.onError": "explode", "spark.lineage.delivery.timeout": "soon"}
    settings = read(lambda key, default: conf.get(key, default))
    assert (settings.on_error, settings.delivery_timeout_s) == ("silent", 2.0)
    assert len(settings.problems) == 2


def test_the_older_name_of_detailed_is_accepted() -> None:
    conf = {"spark.rdd.lineage.detailed": "true"}
    assert read(lambda key, default: conf.get(key, default)).detailed
    conf["spark.lineage.detailed"] = "false"
    assert not read(lambda key, default: conf.get(key, default)).detailed
