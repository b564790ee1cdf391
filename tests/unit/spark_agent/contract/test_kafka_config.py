from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest
from pydantic import SecretStr

from lineage_service.cli.main import main
from lineage_service.kafka.client import KafkaConfigError, client_of, options
from lineage_service.settings import Settings
from spark_agent.contract import kafka_config
from spark_agent.delivery.settings import read

SECRET = "rosebud=1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kafka.properties"
    path.write_text(f"# how to reach it\n\nsecurity.protocol = SASL_SSL\nsasl.password={SECRET}\n")
    return path


def test_each_line_is_an_option_up_to_its_first_equals_sign(file: Path) -> None:
    assert kafka_config.read(str(file)) == (("security.protocol", "SASL_SSL"), ("sasl.password", SECRET))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sasl.password rosebud", "line 5 is not name=value"),
        ("Rosebud=1", "line 5 is not name=value"),
        ("bootstrap.servers=rosebud:1", "line 5: bootstrap.servers is not for this file"),
    ],
)
def test_a_wrong_line_is_named_and_its_value_is_not(file: Path, line: str, told: str) -> None:
    file.write_text(file.read_text() + line)
    with pytest.raises(ValueError, match=told) as error:
        kafka_config.read(str(file))
    assert "osebud" not in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "kafka.properties"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"kafka\.properties cannot be read"):
        kafka_config.read(str(path))


def test_the_agent_takes_the_file_of_its_conf_before_that_of_the_environment(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.write_text("security.protocol=SSL")
    monkeypatch.setenv("LINEAGE_KAFKA_CONFIG", str(other))
    assert read(lambda _key, default: default).client == (("security.protocol", "SSL"),)
    conf = {"spark.lineage.kafka.config": str(file)}
    settings = read(lambda key, default: conf.get(key, default))
    assert dict(settings.client)["sasl.password"] == SECRET
    assert "rosebud" not in repr(settings)


def test_a_file_that_is_not_there_is_told_and_does_not_stop_the_job(tmp_path: Path) -> None:
    conf = {"spark.lineage.kafka.config": str(tmp_path / "nowhere")}
    settings = read(lambda key, default: conf.get(key, default))
    assert settings.client == ()
    assert settings.problems == (
        f"spark.lineage.kafka.config: {tmp_path / 'nowhere'} cannot be read: No such file or directory",
    )


def test_the_service_reads_the_same_file_and_says_what_is_wrong_with_it(file: Path, tmp_path: Path) -> None:
    assert options(Settings(kafka_config=str(file)))["sasl.password"] == SECRET
    assert options(Settings()) == {}
    with pytest.raises(KafkaConfigError, match=r"--kafka-config: .*nowhere cannot be read"):
        options(Settings(kafka_config=str(tmp_path / "nowhere")))


def test_no_text_of_the_settings_holds_a_password() -> None:
    assert SECRET not in repr(Settings(neo4j_password=SecretStr(SECRET)))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"group.id": "group", "no.such.option": "1"}, id="unknown"),
        pytest.param({"group.id": "group", "session.timeout.ms": "-1"}, id="out of range"),
        pytest.param({"group.id": "group", "max.poll.interval.ms": "20000"}, id="below another"),
        pytest.param({"client.id": "without a group"}, id="missing"),
    ],
)
def test_options_that_the_client_refuses_are_one_line(options: dict[str, str]) -> None:
    with pytest.raises(KafkaConfigError, match=r"--kafka-config: [^\n]+$"):
        client_of(confluent_kafka.Consumer, options)


@pytest.mark.parametrize("command", [["consume"], ["dead-letters", "list"]])
def test_a_command_says_in_one_line_what_is_wrong_with_the_options(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kafka.properties"
    file.write_text("no.such.option=1\n")
    monkeypatch.setenv("LINEAGE_HOME", str(tmp_path / "home"))
    main([*command, "--kafka-config", str(file)])
    output = capsys.readouterr()
    [line] = [line for line in (output.out + output.err).splitlines() if "--kafka-config" in line]
    assert 'No such configuration property: "no.such.option"' in line
    assert "Traceback" not in output.err
