"""docs/tutorial.md as a newcomer follows it: each of its commands, in one shell, in its order."""

from __future__ import annotations

import re
import subprocess
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.devstack.errors import DownloadError, JavaError
from lineage_service.settings import Settings
from tests.support.e2e.clone import TUTORIAL, Clone, newcomers_environment, steps

#: What more than one page says, in the same words.
INSTALL = steps()[0][0]
ROOT = Path(__file__).parents[3]
_DEADLINE_S = 240.0


class Shell:
    """One bash; `run` gives what a command printed, and fails where it fails."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["/bin/bash"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._errors = folder / "dist" / "errors.log"

    def run(self, command: str) -> tuple[int, str]:
        """(exit code, standard output)."""
        end = uuid.uuid4().hex
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{{ {command.rstrip()}\n}} 2>> {self._errors}\necho {end} $?\n")
        process.stdin.flush()
        lines: list[str] = []
        for line in process.stdout:
            text, mark, code = line.rpartition(end)
            if mark:
                lines.append(text)
                return int(code), "".join(lines)
            lines.append(line)
        raise AssertionError(f"the shell ended in {command!r}\n{self.errors()}")

    def errors(self) -> str:
        return self.all_errors()[-3000:]

    def all_errors(self) -> str:
        return self._errors.read_text() if self._errors.exists() else ""

    def end(self) -> None:
        """The shell, and what it still runs in the background."""
        try:
            self._process.communicate("kill $(jobs -p) 2>/dev/null; wait; exit\n", timeout=_DEADLINE_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def shell(
    clone: Clone, tmp_path: Path, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Shell]:
    """In the clone, behind the page's first block; with the environment active that it made."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "jars").symlink_to(jar_folder)
    (home / "spark-defaults.conf").write_text(
        "spark.master local[2]\nspark.ui.enabled false\nspark.lineage.delivery.timeout 60\n"
    )
    try:
        # Not through the command line: only here is "cannot be had on this machine" told from "is broken".
        state = start(Settings(home=home), jars=jar_folder)
    except (DownloadError, JavaError) as error:
        cannot_have(str(error))
    environment = {
        **newcomers_environment(tmp_path),
        "SPARK_CONF_DIR": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "LINEAGE_HOME": str(home),
        # The well-known ports may be another's here.
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": state.servers["kafka"].addresses["bootstrap_servers"],
        "LINEAGE_API_PORT": "0",
        "LINEAGE_METRICS": "false",
        "COLUMNS": "200",
    }
    started = Shell(clone.folder, environment)
    try:
        code, _ = started.run(". lineage-env/bin/activate")
        assert code == 0
        yield started
    finally:
        started.end()
        stop(home)


def is_as_told(printed: str, told: str) -> bool:
    """`...` on the page stands for what differs from machine to machine."""
    pattern = ".*?".join(map(re.escape, told.rstrip().split("...")))
    return re.fullmatch(pattern, printed.rstrip()) is not None


def test_the_pages_install_in_the_same_words_the_version_that_is_built() -> None:
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    version = re.search(r'^version = "(.*)"', project, re.M)
    assert version is not None
    assert f"pip install 'dist/lineage_master-{version[1]}-py3-none-any.whl[service]' pyspark\n" in INSTALL
    assert textwrap.indent(INSTALL, "   ") in (ROOT / "README.md").read_text("utf-8")
    assert steps(ROOT / "docs" / "install.md")[0][0] == INSTALL
    others = {
        name
        for page in (ROOT / "README.md", ROOT / "docs" / "install.md", ROOT / "docs" / "tutorial.md")
        for name in re.findall(r"lineage_master-[\d.]+-py3-none-any.whl", page.read_text("utf-8"))
    }
    assert others == {f"lineage_master-{version[1]}-py3-none-any.whl"}


@pytest.mark.thorough
@pytest.mark.timeout(3600)  # an installation, two Spark jobs, and a stack of its own
def test_every_command_of_the_tutorial_does_what_it_says(clone: Clone, shell: Shell) -> None:
    assert clone.installed_by == INSTALL
    compared = 0
    for commands, told in steps()[1:]:
        text = commands.rstrip()
        # What the page shows is printed by the last command of a block.
        rest, _, last = text.rpartition("\n") if told is not None else (text, "", "")
        if rest:
            code, _ = shell.run(rest)
            assert code == 0, f"{rest}\n{shell.errors()}"
        if told is not None:
            compare(shell, last, told)
            compared += 1
    assert compared >= 4
    told_notices = re.findall(r"^lineage: .+$", TUTORIAL.read_text("utf-8"), re.M)
    notices = re.findall(r"^lineage: .+$", shell.all_errors(), re.M)
    assert (len(told_notices), len(notices)) == (2, 4), notices  # of two jobs
    for told_notice, notice in zip(told_notices, notices, strict=False):
        assert is_as_told(notice, told_notice), f"{notice}\nbut the page says\n{told_notice}"


def compare(shell: Shell, command: str, told: str) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    code, printed = shell.run(command)
    while not (code == 0 and is_as_told(printed, told)):
        may_come = command.startswith("lineage ") and time.monotonic() < deadline
        assert may_come, f"$ {command}\n{printed}\nbut the page says\n{told}\n{shell.errors()}"
        time.sleep(0.5)  # between two looks: the page says to ask again
        code, printed = shell.run(command)
