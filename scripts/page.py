"""Builds, checks and tests the web page with Node.js, and does only what is not done yet.

    python -m scripts.page build|check|test|format

`build` makes ui/lineage_page/dist from ui/, unless the same sources are built there already. `check` is
TypeScript's check and the format, which `format` mends; `test` runs the tests of modules (Vitest). Where
there is no Node.js, or npm cannot download, each says so in one line and is done: the service works without
its page. With LINEAGE_TEST_NODE=required that is a failure. hatch_build.py builds with it, too, and there it
is always one. Needs the standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts.environment import EnvironmentFailed, alone, say

ROOT = Path(__file__).resolve().parents[1]
UI = ROOT / "ui"
DIST = UI / "lineage_page" / "dist"
NOTICE = ROOT / "NOTICE"
#: As package.json says it: the first that Vite runs on.
NEEDED = (20, 19)
_SOURCES = (
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "src",
    "public",
)
_COMMANDS = ("build", "check", "test", "format")


class PageNotBuilt(Exception):
    """There is nothing to build the page with; the message says what to do."""


def is_built() -> bool:
    """True if the page is there and made of the sources as they are."""
    return _is_made(DIST, _page_digest())


def check_tools() -> None:
    """Raises PageNotBuilt where this machine cannot build it."""
    _npm()


def run(command: str) -> None:
    """Raises PageNotBuilt, and CalledProcessError where the page's own check or test fails."""
    with alone(UI / "node_modules"):
        if command == "build" and is_built():
            return
        digest = _page_digest()
        npm = _npm()
        _install(npm)
        if command == "build":
            say("Building the page ...")
            _quietly([npm, "run", "build"], "the page cannot be built")
            # The terms of the libraries in it go along with it, to browsers, too.
            (DIST / "static").mkdir(exist_ok=True)
            shutil.copyfile(NOTICE, DIST / "static" / "NOTICE.txt")
            (DIST / ".made").write_text(digest)
        else:
            subprocess.run([npm, "run", "--silent", command], cwd=UI, check=True)


def _npm() -> str:
    """Path of npm, where Node.js is new enough."""
    npm, node = shutil.which("npm"), shutil.which("node")
    needed = ".".join(map(str, NEEDED))
    if npm is None or node is None:
        raise PageNotBuilt(f"there is no Node.js on this machine: install Node.js {needed} or later with npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < NEEDED:
        raise PageNotBuilt(f"Node.js {version} is too old: install {needed} or later")
    return npm


def _install(npm: str) -> None:
    """The packages of the lock file, if they are not there."""
    folder, digest = UI / "node_modules", _digest(("package-lock.json",))
    if _is_made(folder, digest):
        return
    say("Installing what builds the page ...")
    _quietly([npm, "ci", "--no-audit", "--no-fund"], "npm cannot install what builds the page")
    (folder / ".made").write_text(digest)


def _quietly(command: Sequence[str], failure: str) -> None:
    done = subprocess.run(
        command, cwd=UI, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        said = next((line for line in lines if "rror" in line), lines[-1] if lines else "nothing")
        raise PageNotBuilt(f"{failure}: {said[:200]}")


def _is_made(folder: Path, digest: str) -> bool:
    stamp = folder / ".made"
    return stamp.is_file() and stamp.read_text() == digest


def _page_digest() -> str:
    """Of all that the page is made of."""
    return hashlib.sha256(_digest(_SOURCES).encode() + NOTICE.read_bytes()).hexdigest()


def _digest(names: Iterable[str]) -> str:
    """Of the contents of these files and folders of the page."""
    digest = hashlib.sha256()
    for name in names:
        place = UI / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                digest.update(f"{path.relative_to(UI)}\n".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in _COMMANDS:
        say("usage: python3 -m scripts.page build|check|test|format", sys.stderr)
        return 2
    try:
        run(arguments[0])
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    except EnvironmentFailed as error:
        say(f"page: {error}", sys.stderr)
        return 1
    except PageNotBuilt as error:
        without = "left out"
        if arguments[0] == "build":
            is_old = (DIST / "index.html").is_file()
            without = "the page stays as it is" if is_old else "the API is served without its page"
        say(f"page: {error}; {without}", sys.stderr)
        return 1 if os.environ.get("LINEAGE_TEST_NODE") == "required" else 0
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
