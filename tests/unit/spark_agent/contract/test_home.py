from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from lineage_service.cli import main
from lineage_service.settings import Settings
from spark_agent.client.http import DEFAULT, default_address
from spark_agent.contract.home import lineage_home
from spark_agent.delivery.settings import default_bootstrap_servers

ASKING = (
    ["apps"],
    ["graph", "last"],
    ["graph", "nobody"],
    ["show", "last", "0"],
    ["trace", "last", "backward", "write#0#0"],
    ["values", "last", "write#0#0"],
    ["status"],
    ["maintain"],
    ["down"],
)


@pytest.mark.parametrize(
    ("environment", "platform", "home"),
    [
        ({}, "linux", "/users/u/.local/share/lineage-master"),
        ({"XDG_DATA_HOME": "/data"}, "linux", "/data/lineage-master"),
        ({"XDG_DATA_HOME": "data"}, "linux", "/users/u/.local/share/lineage-master"),
        ({"XDG_DATA_HOME": "/data"}, "darwin", "/users/u/Library/Application Support/lineage-master"),
        ({"LINEAGE_HOME": "/h", "XDG_DATA_HOME": "/data"}, "linux", "/h"),
        ({"LINEAGE_HOME": " "}, "linux", "/users/u/.local/share/lineage-master"),
        ({"LINEAGE_HOME": "~/h"}, "linux", "/users/u/h"),
        ({"LINEAGE_HOME": "h"}, "linux", "h"),
    ],
)
def test_the_home_is_the_users_data_folder_unless_it_is_named(
    environment: dict[str, str], platform: str, home: str
) -> None:
    assert lineage_home({"HOME": "/users/u", **environment}, platform) == home


def test_on_windows_it_is_in_the_local_application_data() -> None:
    home = lineage_home({"LOCALAPPDATA": r"C:\Users\u\AppData\Local"}, "win32")
    assert home.startswith(r"C:\Users\u\AppData\Local")
    assert home.endswith("lineage-master")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, in a folder of some work."""
    for name in Settings.model_fields:
        monkeypatch.delenv(f"LINEAGE_{name.upper()}", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setattr("sys.platform", "linux")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return tmp_path / "user"


def test_agent_and_service_find_the_same_home_in_every_folder(user: Path) -> None:
    home = user / ".local/share/lineage-master"
    assert Settings().home == home
    environment = {"HOME": str(user)}
    assert (default_bootstrap_servers(environment), default_address(environment)) == (
        "127.0.0.1:9092",
        DEFAULT,
    )
    home.mkdir(parents=True)
    (home / "stack.json").write_text('{"kafka": {"bootstrap_servers": "127.0.0.1:29092"}}')
    (home / "api.json").write_text('{"url": "http://127.0.0.1:28080"}')
    assert default_bootstrap_servers(environment) == "127.0.0.1:29092"
    assert default_address(environment) == "http://127.0.0.1:28080"


def test_an_empty_home_is_the_default_and_a_tilde_the_users_folder(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_HOME", "")
    assert Settings().home == user / ".local/share/lineage-master"
    monkeypatch.setenv("LINEAGE_HOME", "~/other")
    assert Settings().home == user / "other"


def test_a_user_without_a_folder_is_asked_for_one(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(ValidationError, match="no home folder"):
        Settings()


@pytest.mark.parametrize("argv", ASKING, ids=" ".join)
def test_who_only_asks_makes_nothing_and_is_told_where_it_was_looked(
    user: Path, argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main.main([*argv, "--kafka-bootstrap-servers", "127.0.0.1:1"] if argv == ["status"] else argv)
    said = capsys.readouterr()
    told = (said.out + said.err).replace("\n", "")
    assert str(user / ".local/share/lineage-master") in told
    if argv != ["status"]:
        assert (said.out + said.err).count("\n") == 1
    assert not user.exists()


def test_a_store_of_an_earlier_version_below_this_folder_is_named_once(
    user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    former = Path.cwd() / ".cache/lineage"
    (former / "flows/events").mkdir(parents=True)
    assert main.main(["apps"]) == 0
    assert capsys.readouterr().err.count(f"LINEAGE_HOME={former}\n") == 1
    assert main.main(["apps", "--store", "/elsewhere"]) == 0
    assert capsys.readouterr().err == ""
    (user / ".local/share/lineage-master/flows").mkdir(parents=True)
    main.main(["apps"])
    assert "earlier" not in capsys.readouterr().err
