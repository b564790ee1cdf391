from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.settings import Settings
from spark_agent.delivery.settings import SETTINGS, read

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def agent_table() -> str:
    rows = [f"| `{setting.name}` | {_default(setting.default)} | {setting.help} |" for setting in SETTINGS]
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
    given = read(lambda key, default: {"spark.rdd.lineage.detailed": "true"}.get(key, default))
    assert given.problems == ("spark.rdd.lineage.detailed is an older name; use spark.lineage.detailed",)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("spark.lineage.onError", "sometimes", "is none of silent, partial, fail; silent is used"),
        ("spark.lineage.explain", "loops", "is none of auto, off; auto is used"),
        ("spark.lineage.dataframes.level", "fast", "is none of eager, lazy; eager is used"),
        ("spark.lineage.jdbc.keys", "read", "is none of on, off; on is used"),
        ("spark.lineage.dataframes", "maybe", "is neither true nor false; true is used"),
        ("spark.lineage.detailed", "ja", "is neither true nor false; false is used"),
        ("spark.lineage.quiet", "sh", "is neither true nor false; false is used"),
        ("spark.lineage.delivery.timeout", "-1", "is not a number of seconds; 2 is used"),
        ("spark.lineage.delivery.timeout", "nan", "is not a number of seconds; 2 is used"),
        ("spark.lineage.values.sample", "2", "is not above 0 and at most 1; 1 is used"),
    ],
)
def test_a_value_that_is_none_is_told_with_what_is_used(name: str, value: str, problem: str) -> None:
    assert read(lambda key, default: {name: value}.get(key, default)).problems == (
        f"{name}={value} {problem}",
    )


def test_a_broker_without_a_port_is_told_with_the_setting() -> None:
    name = "spark.lineage.kafka.bootstrap.servers"
    settings = read(lambda key, default: {name: "localhost, b:1"}.get(key, default))
    assert settings.bootstrap_servers == "localhost:9092,b:1"
    assert settings.problems == (f"{name}: localhost has no port; 9092 is used",)


def test_a_broker_of_the_environment_is_told_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINEAGE_KAFKA_BOOTSTRAP_SERVERS", "x:99999")
    (problem,) = read(lambda key, default: default).problems
    assert problem.startswith("LINEAGE_KAFKA_BOOTSTRAP_SERVERS: x:99999 is not host:port")


def test_a_file_of_the_kafka_client_that_is_missing_is_told() -> None:
    conf = {"spark.lineage.kafka.config": "/nowhere/kafka.properties"}
    (problem,) = read(lambda key, default: conf.get(key, default)).problems
    assert problem == (
        "spark.lineage.kafka.config: /nowhere/kafka.properties cannot be read: No such file or directory"
    )
