from __future__ import annotations

import pytest

from spark_agent.delivery.setting_names import MAX_NAMED, names_in, unknown
from spark_agent.delivery.settings import KNOWN, read


def test_names_are_the_keys_that_may_be_meant_for_the_agent() -> None:
    conf = [
        "spark.app.name=spark.lineage.enabled=true",
        "spark.lineage.enable=true",
        "spark.Lineage.detailed=a=b",
        "spark.linage.enabled=",
        "spark.rdd.lineage.detailed=true",
        "spark.master=local",
    ]
    assert names_in("\n".join(conf)) == [
        "spark.lineage.enable",
        "spark.Lineage.detailed",
        "spark.linage.enabled",
        "spark.rdd.lineage.detailed",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("spark.lineage.enable", "spark.lineage.enabled"),
        ("spark.lineage.detaild", "spark.lineage.detailed"),
        ("spark.lineage.onerror", "spark.lineage.onError"),
        ("spark.lineage.kafka.bootstrap.server", "spark.lineage.kafka.bootstrap.servers"),
        ("spark.lineage.bootstrap.servers", "spark.lineage.kafka.bootstrap.servers"),
        ("spark.linage.enabled", "spark.lineage.enabled"),
        ("spark.Lineage.Enabled", "spark.lineage.enabled"),
        ("spark.rdd.lineage.enabled", "spark.lineage.enabled"),
    ],
)
def test_a_key_that_is_no_setting_is_told_with_the_nearest_one(name: str, meant: str) -> None:
    assert unknown([name], KNOWN) == [f"{name} is not a setting, and means nothing; did you mean {meant}?"]


def test_a_key_that_is_near_none_is_told_with_where_all_are() -> None:
    (sentence,) = unknown(["spark.lineage.zzz"], KNOWN)
    assert (
        sentence == "spark.lineage.zzz is not a setting, and means nothing; docs/settings.md has all settings"
    )


def test_settings_and_keys_of_others_are_not_told() -> None:
    others = ["spark.lineage.log.dir", "spark.linkedin.token", "spark.rdd.lineage.detailed"]
    assert unknown([*KNOWN, *others], KNOWN) == []


def test_many_unknown_keys_are_a_few_lines() -> None:
    sentences = unknown([f"spark.lineage.x{number}" for number in range(50)], KNOWN)
    assert len(sentences) == MAX_NAMED + 1
    assert sentences[-1].startswith(f"{50 - MAX_NAMED} more keys")


@pytest.mark.parametrize(
    ("conf", "is_on"),
    [
        ({}, True),
        ({"spark.lineage.jdbc.keys": "off"}, False),
        ({"spark.lineage.redact": "job:redact"}, False),
        ({"spark.lineage.redact": "no function"}, False),
    ],
)
def test_keys_of_databases_are_not_sent_where_values_are_redacted(
    conf: dict[str, str], *, is_on: bool
) -> None:
    assert read(conf.get).jdbc_keys is is_on
