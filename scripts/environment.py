"""Makes the virtual environment of the Makefile's targets: this package, its tools and the demo's data.

    python3 -m scripts.environment FOLDER

Needs nothing but Python 3.10. What is installed is named by requirements.lock, which `make lock` writes anew.
Says every few seconds what pip is doing; all that pip said is in FOLDER/pip.log. Two at once would spoil the
folder: the second ends with a line that names the first.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
_SILENCE_S = 3.0
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|NameResolutionError|SSLError"
    r"|Connection (refused|reset)"
)


class EnvironmentFailed(Exception):
    """The environment cannot be made; the message says what to do."""


#: (what it is for people, pip's options) of the environment of the Makefile's targets. The lock has what
#: builds the package, too, so that nothing is installed that it does not name.
DEVELOPMENT = (
    ("PySpark, and what the service and its tools need", ["--requirement", f"{ROOT}/requirements.lock"]),
    ("lineage-master", ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]),
)


def make(folder: Path, installations: Sequence[tuple[str, list[str]]] = DEVELOPMENT) -> None:
    """Bring the environment in `folder` up to date; raises EnvironmentFailed."""
    began = time.monotonic()
    python = new_environment(folder)
    log = folder / "pip.log"
    log.unlink(missing_ok=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
    for what, options in installations:
        code, output = run_told(f"Installing {what}", [*pip, *options])
        with log.open("a") as file:
            file.write(output)
        if code != 0:
            raise EnvironmentFailed(advice(what, output, log))
    say(f"The environment is ready after {time.monotonic() - began:.0f} s")


def new_environment(folder: Path) -> Path:
    """The Python of the virtual environment in `folder`, made unless it works; raises EnvironmentFailed."""
    python = folder / "bin" / "python"
    if not _runs(python):
        code, output = run_told(
            f"Making a virtual environment in {folder}",
            [sys.executable, "-m", "venv", "--clear", str(folder)],
        )
        if code != 0:
            raise EnvironmentFailed(
                f"{sys.executable} -m venv does not work: install Python's venv module (Debian and Ubuntu: "
                f"apt install python3-venv). It said: {last_line(output)}"
            )
    return python


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, which the kernel frees however this process ends; raises EnvironmentFailed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise EnvironmentFailed(
                f"another process ({lock.read().strip() or 'unknown'}) is making {folder}: "
                "wait until it has ended"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def _runs(python: Path) -> bool:
    try:
        done = subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def run_told(what: str, command: Sequence[str]) -> tuple[int, str]:
    """Exit code and output of a command; says every few seconds how far it is."""
    say(f"{what} ...")
    began = said = time.monotonic()
    lines: list[str] = []
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    reader = Thread(target=_collect, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        while reader.is_alive():
            reader.join(0.2)
            if time.monotonic() - said >= _SILENCE_S:
                said = time.monotonic()
                say(f"  {said - began:.0f} s: {_in_short(lines)}")
        return process.wait(), "".join(lines)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        reader.join()
        process.stdout.close()


def _collect(output: IO[str], lines: list[str]) -> None:
    for line in output:
        lines.append(line)  # one by one: another thread looks on


def _in_short(lines: Sequence[str]) -> str:
    """The last line, without the addresses and lists that make pip's long."""
    line = lines[-1].strip() if lines else "begun"
    return line.split(" (from ")[0].split(": ")[0][:70]


def advice(what: str, output: str, log: Path) -> str:
    """Why pip did not install `what`, and what to do, from its output, which is in `log`."""
    if _NO_NETWORK.search(output):
        return (
            f"cannot download {what}: the package index does not answer; check the network and its proxy "
            f"(HTTPS_PROXY, PIP_INDEX_URL) and try again. pip's own words are in {log}"
        )
    return f"pip cannot install {what}: {last_line(output)}; all that it said is in {log}"


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["nothing"])[-1].removeprefix("ERROR: ")[:200]


def say(text: str, stream: IO[str] | None = None) -> None:
    stream = stream or sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        say("usage: python3 -m scripts.environment FOLDER", sys.stderr)
        return 2
    folder = Path(arguments[0]).absolute()
    try:
        with alone(folder):
            make(folder)
    except (EnvironmentFailed, OSError) as error:
        say(f"environment: {error}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
