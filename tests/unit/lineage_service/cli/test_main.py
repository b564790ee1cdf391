from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lineage_service.cli import main
from lineage_service.cli.installation import install_command
from lineage_service.errors import UnavailableError
from lineage_service.settings import Settings
from tests.support.settings_read import settings_read_by

Probe = Callable[[Callable[[Settings, argparse.Namespace], int]], None]


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"LINEAGE_{name.upper()}", raising=False)


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Probe]:
    module = types.ModuleType("probe_of_test_cli")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entry = main.Entry(f"{module.__name__}:command", "used by this test", tuple(Settings.model_fields))
    monkeypatch.setitem(main.COMMANDS, "probe", entry)

    def install(command: Callable[[Settings, argparse.Namespace], int]) -> None:
        module.command = command  # type: ignore[attr-defined]

    return install


def seen_settings(probe: Probe, *argv: str) -> Settings:
    seen: list[Settings] = []

    def command(settings: Settings, options: argparse.Namespace) -> int:
        seen.append(settings)
        return 0

    probe(command)
    assert main.main(["probe", *argv]) == 0
    return seen[0]


def test_help_shows_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    output = capsys.readouterr().out
    for name, entry in main.COMMANDS.items():
        assert f"{name} " in output
        assert entry.help in output


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    page = Path(__file__).parents[4] / "docs" / "operations.md"
    assert f"`lineage {name}`" in page.read_text(encoding="utf-8").partition("\n## What")[0]


def test_help_imports_nothing_but_the_standard_library() -> None:
    program = (
        "import sys; from lineage_service.cli.main import main; before = set(sys.modules); main(['--help']);"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    loaded = set(result.stdout.partition("LOADED")[2].split())
    # What start-up hooks of the environment (.pth files) load is not of our doing.
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*{name.partition('.')[0] for name in sys.modules})"],
        capture_output=True,
        text=True,
        check=True,
    )
    ours = loaded - set(bare.stdout.split()) - sys.stdlib_module_names
    assert ours == {"lineage_service"}


@pytest.mark.parametrize("name", ["up", "down", "status"])
def test_a_command_can_be_found_and_shows_its_flags(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([name, "--help"]) == 0
    output = capsys.readouterr().out
    assert "--only" in output


def test_the_table_names_modules_of_our_packages() -> None:
    for entry in main.COMMANDS.values():
        module, _, function = entry.target.partition(":")
        package = module.partition(".")[0]
        assert package in ("lineage_service", "lineage_api")
        assert importlib.util.find_spec(package) is not None
        assert function


@pytest.mark.parametrize("argv", [[], ["upp"], ["--hepl"], ["up", "--only", "spark"], ["up", "--unknown"]])
def test_arguments_that_cannot_be_understood_exit_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(argv) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("lineage")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["upp"], "up"),
        (["dead-leters", "list"], "dead-letters"),
        (["dead-letters", "lst"], "list"),
        (["trace", "last", "backwards", "write#0#1"], "backward"),
        (["apps", "--jsn"], "--json"),
        (["show", "last", "0", "--txt=x"], "--text"),
        (["up", "--only", "neo"], "neo4j"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_nearest_one(
    argv: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(argv) == 2
    assert f": did you mean {word}?" in capsys.readouterr().err


@pytest.mark.parametrize("name", main.COMMANDS)
def test_help_shows_the_settings_that_the_command_reads_and_no_other(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([name, "--help"]) == 0
    shown = set(re.findall(r"^  --([a-z0-9-]+) VALUE", capsys.readouterr().out, re.M))
    assert shown == {each.replace("_", "-") for each in settings_read_by(name) | {"home"}}


def test_a_flag_of_another_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["show", "last", "0", "--maven-repository", "x"]) == 2
    assert "lineage show: there is no --maven-repository" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("servers", "used"),
    [
        ("localhost", "localhost:9092"),
        (" a:1 , b,", "a:1,b:9092"),
        ("[::1]", "[::1]:9092"),
        ("[::1]:1", "[::1]:1"),
        ("SSL://a", "SSL://a:9092"),
        ("SSL://a:1", "SSL://a:1"),
    ],
)
def test_a_broker_without_a_port_has_kafkas(probe: Probe, servers: str, used: str) -> None:
    assert seen_settings(probe, "--kafka-bootstrap-servers", servers).kafka_bootstrap_servers == used


@pytest.mark.parametrize("servers", ["a:b", "a:0", "a:65536", ":1", "a:", "a:1,b:-2"])
def test_a_broker_that_is_none_is_refused_in_one_line(
    probe: Probe, servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    probe(lambda settings, options: 0)
    assert main.main(["probe", "--kafka-bootstrap-servers", servers]) == 1
    assert "is no host:port of a broker" in capsys.readouterr().err


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("lineage-master")


def test_a_flag_wins_over_the_environment(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINEAGE_API_PORT", "1111")
    monkeypatch.setenv("LINEAGE_CONSUMER_GROUP", "from-environment")
    settings = seen_settings(probe, "--api-port", "2222")
    assert settings.api_port == 2222
    assert settings.consumer_group == "from-environment"


def test_empty_addresses_are_filled_in_before_a_command_runs(probe: Probe, tmp_path: Path) -> None:
    settings = seen_settings(probe, "--home", str(tmp_path))
    assert settings.kafka_bootstrap_servers == "127.0.0.1:9092"
    assert settings.store == str(tmp_path / "flows")
    assert settings.neo4j_uri == ""


def test_the_commands_own_flags_come_without_the_settings(probe: Probe) -> None:
    seen: list[argparse.Namespace] = []

    def command(settings: Settings, options: argparse.Namespace) -> int:
        seen.append(options)
        return 7

    probe(command)
    assert main.main(["probe", "--api-port", "1"]) == 7
    assert vars(seen[0]) == {}


def test_invalid_settings_are_one_line_and_exit_with_2(
    probe: Probe, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_TRACE_SECONDS", "soon")
    probe(lambda settings, options: 0)
    assert main.main(["probe", "--api-port", "many"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "--api-port or LINEAGE_API_PORT is 'many'" in error
    assert "--trace-seconds or LINEAGE_TRACE_SECONDS is 'soon'" in error


def test_a_foreseeable_error_is_one_line_and_exits_with_1(
    probe: Probe, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(settings: Settings, options: argparse.Namespace) -> int:
        raise UnavailableError("the flow store does not answer")

    probe(command)
    assert main.main(["probe"]) == 1
    assert capsys.readouterr().err == "lineage: the flow store does not answer\n"


def test_an_unforeseen_error_is_not_hidden(probe: Probe) -> None:
    def command(settings: Settings, options: argparse.Namespace) -> int:
        raise ZeroDivisionError

    probe(command)
    with pytest.raises(ZeroDivisionError):
        main.main(["probe"])


def test_ctrl_c_exits_quietly_with_130(probe: Probe, capsys: pytest.CaptureFixture[str]) -> None:
    def command(settings: Settings, options: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    probe(command)
    assert main.main(["probe"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_missing_package_is_named_with_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    for name in [
        name
        for name in sys.modules
        if name.startswith(("lineage_service.devstack.", "lineage_service.cli.stack."))
    ]:
        monkeypatch.delitem(sys.modules, name)
    assert main.main(["status"]) == 1
    assert (
        capsys.readouterr().err == f"lineage: `lineage status` needs the module psutil: {install_command()}\n"
    )


def test_a_missing_module_of_our_own_is_no_reason_to_install_another_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(main.COMMANDS, "probe", main.Entry("lineage_api.absent:command", "for tests"))
    assert main.main(["probe"]) == 1
    assert capsys.readouterr().err == (
        "lineage: `lineage probe` does not find lineage_api.absent, which is its own: "
        "install lineage-master again\n"
    )


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "lineage_service.cli.main", "status", "--home", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (1, 141)  # rich exits with 1 by itself


@pytest.mark.parametrize("name", ["TRACE_SECONDS", "API_WAIT_SECONDS", "BATCH_MAX_SECONDS"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_a_time_without_an_end_or_a_beginning_is_refused(
    probe: Probe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv(f"LINEAGE_{name}", value)
    probe(lambda settings, options: 0)
    assert main.main(["probe"]) == 2
    assert f"LINEAGE_{name} is '{value}'" in capsys.readouterr().err
