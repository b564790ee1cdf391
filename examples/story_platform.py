"""What stories are told on: commands beside a running platform, and questions to its service over HTTP.

Leaves the stack as it is, or starts one for the story and stops it again. What a user can mend is a
StoryFailed, whose message says what to do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from examples.demo import DemoFailed, alone, demo_in, platform, stay
from lineage_service.devstack.state import resolve
from lineage_service.errors import LineageError
from lineage_service.settings import Settings

ROOT = Path(__file__).resolve().parents[1]

_ARRIVAL_DEADLINE_S = 120.0
_BIN = Path(sys.executable).parent

Answer = dict[str, Any]


class StoryFailed(Exception):
    """A step failed; the message says what to do, or what the command said last."""


def service(settings: Settings) -> str:
    """The address that `lineage serve` has left."""
    try:
        url = str(json.loads((settings.home / "api.json").read_text())["url"])
        get(url, "/readyz")
    except (OSError, ValueError, StoryFailed):
        raise StoryFailed("start `lineage up`, `lineage consume` and `lineage serve` first") from None
    return url


def command(words: Sequence[str], settings: Settings, *, must_fail: bool = False) -> None:
    """Run it, and print it. Raises StoryFailed where it ends otherwise than it must."""
    print(f"   $ {' '.join(map(_in_short, words))}")
    done = subprocess.run(
        [str(_BIN / words[0]), *words[1:]],
        cwd=ROOT,
        env=_environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if must_fail and done.returncode == 0:
        raise StoryFailed(f"{words[0]} ended well, and should have failed")
    if not must_fail and done.returncode != 0:
        raise StoryFailed(f"{words[0]} failed with exit code {done.returncode}: {done.stdout[-2000:]}")


def replayed(words: Sequence[str], job: Sequence[str], settings: Settings) -> Answer:
    """What `lineage replay WORDS -- JOB` answers. Raises StoryFailed where it reaches nothing."""
    print(f"   $ lineage replay {' '.join(map(_in_short, words))} -- {' '.join(map(_in_short, job))}")
    command = [str(_BIN / "lineage"), "replay", *words, "--json", "--", str(_BIN / job[0]), *job[1:]]
    done = subprocess.run(command, cwd=ROOT, env=_environment(settings), capture_output=True, text=True)
    if done.returncode != 0:
        raise StoryFailed(f"the replay ended with {done.returncode}: {done.stderr}{done.stdout[-2000:]}")
    answer: Answer = json.loads(done.stdout)
    return answer


def _environment(settings: Settings) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(_BIN), os.environ.get("PATH", os.defpath)]),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
        "PYSPARK_PYTHON": sys.executable,
    }


def arrived(url: str, name: str, began: float) -> str:
    """The id of the application `name` that has just run, once the stores have every flow of it."""
    deadline = time.monotonic() + _ARRIVAL_DEADLINE_S
    missing = "nothing of it has arrived; does `lineage consume` run?"
    while time.monotonic() < deadline:
        for application in get(url, "/api/applications")["applications"]:  # newest first
            if application["name"] == name and application["started"] >= began * 1000:
                if application["complete"]:
                    return str(application["application_id"])
                missing = str(application["missing"])
                break
        time.sleep(0.3)
    raise StoryFailed(f"the job's lineage was not complete within {_ARRIVAL_DEADLINE_S:.0f} s: {missing}")


def get(url: str, place: str, /, **parameters: object) -> Answer:
    return _answer(urllib.request.Request(f"{url}{place}?{urllib.parse.urlencode(parameters)}"))


def post(url: str, place: str, /, **parameters: object) -> Answer:
    return _answer(
        urllib.request.Request(f"{url}{place}?{urllib.parse.urlencode(parameters)}", method="POST")
    )


def _answer(request: urllib.request.Request) -> Answer:
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            answer: Answer = json.load(response)
            return answer
    except urllib.error.HTTPError as error:
        raise StoryFailed(f"{request.full_url}: {error.code}: {error.read().decode()[:500]}") from error


def _in_short(word: str) -> str:
    """Without the current folder, if it is in there."""
    return str(Path(word).relative_to(Path.cwd())) if Path(word).is_relative_to(Path.cwd()) else word


def tell(
    name: str, story: Callable[[Path, Settings], Answer], folder: Path, argv: Sequence[str] | None
) -> int:
    """The story as a command. What goes wrong is one line on standard error, exit code 1."""
    parser = argparse.ArgumentParser(prog=f"python -m examples.{name}", allow_abbrev=False)
    parser.add_argument("--folder", type=Path, default=folder, help="keep inputs and outputs here")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write there too what was found, in full")
    parser.add_argument(
        "--start",
        action="store_true",
        help="start Kafka, Neo4j, the consumer and the service for it, and stop them with Ctrl-C",
    )
    options = parser.parse_args(argv)
    folder = options.folder.absolute()
    try:
        if options.start:
            demo = demo_in(folder)
            with alone(folder), platform(demo) as (consumer, api):
                _written(story(folder, resolve(Settings(home=demo.home))), options.json)
                stay(demo, consumer, api.process)
        else:
            _written(story(folder, resolve(Settings())), options.json)
    except (StoryFailed, DemoFailed, LineageError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _written(result: Answer, report: Path | None) -> None:
    if report is not None:
        report.write_text(json.dumps(result))
