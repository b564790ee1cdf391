"""The story of the tweets: why is Breaking Bad rated so badly?

    lineage up && lineage consume & lineage serve &
    python -m examples.tweets_story [--folder FOLDER] [--json FILE]

Makes tweets, runs the job `perf/workloads/tweets.py` on them as it is, with `spark.lineage.detailed=true`,
and asks the running service over HTTP what the row of that movie was made of. docs/tweets-story.md tells it.
Leaves the stack as it is. What a user can mend is one line on standard error, exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lineage_cypher
from lineage_service.devstack.state import read_state, resolve
from lineage_service.errors import LineageError
from lineage_service.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
JOB = ROOT / "perf" / "workloads" / "tweets.py"
JOB_NAME = "Tweets"
MOVIE = "breakingbad"
#: The operation that makes an opinion of a text.
SUSPECT = "mapValues"
#: Some ten tweets about each movie, and so few records that all of them come into Neo4j by themselves.
MEGABYTES, SEED = 4, 7

_ARRIVAL_DEADLINE_S = 120.0
_BIN = Path(sys.executable).parent

Answer = dict[str, Any]


class StoryFailed(Exception):
    """A step failed; the message says what to do, or what the command said last."""


def run(folder: Path, settings: Settings) -> Answer:
    """Tells the story on standard output, and returns what was found."""
    url = _service(settings)
    tweets, output = folder / "tweets.json", folder / "ratings"
    print(f"1. {MEGABYTES} MB of tweets, one in a hundred about a movie: {tweets}")
    folder.mkdir(parents=True, exist_ok=True)
    size = ["--megabytes", str(MEGABYTES), "--seed", str(SEED)]
    _command(["python", "-m", "perf.workloads.generate", "tweets", *size, "--out", str(tweets)], settings)

    print("2. The job as it is, with two flags")
    shutil.rmtree(output, ignore_errors=True)
    began = time.time()
    flags = ["--conf", "spark.lineage.enabled=true", "--conf", "spark.lineage.detailed=true"]
    _command(["spark-submit", *flags, str(JOB), str(tweets), str(output)], settings)
    application = _arrived(url, began)

    print("3. Movie, tweets that praise it, tweets that blame it")
    path, row = _rows(output)
    print(
        f"4. What was the row of {MOVIE} made of? "
        f"At {SUSPECT} these texts became these opinions (praise, blame):"
    )
    trace = f"/api/applications/{application}/trace"
    question = {"direction": "backward", "path": str(path), "row": row, "across": "false"}
    answer = _get(url, trace, **question, limit=1000, values="true")
    suspect, pairs = _pairs(answer)
    for text, opinion in pairs:
        print(f"    {opinion}  {text}")
    graph = _put(url, f"{trace}/graph", **question)

    story = {
        "application": application,
        "url": url,
        "path": str(path),
        "row": row,
        "trace": answer,
        "suspect": suspect,
        "pairs": pairs,
        "flow_id": f"{answer['start_node']}#{answer['start'][0]['record_id']}",
        "graph": graph,
    }
    _further(story, settings)
    return story


def _rows(output: Path) -> tuple[Path, int]:
    """Prints the job's rows; (file, row) of the one that is wondered at."""
    place = None
    for part in sorted(output.glob("part-*")):
        for row, text in enumerate(part.read_text().splitlines()):
            is_it = text.startswith(f"{MOVIE},")
            print(f"    {text}" + "    <- nobody likes it?" * is_it)
            place = (part, row) if is_it else place
    if place is None:
        raise StoryFailed(f"the job saved no row of {MOVIE} in {output}")
    return place


def _pairs(trace: Answer) -> tuple[str, list[tuple[str, str]]]:
    """The suspect's node id, and of each of its records (the value that went in, the value that came out)."""
    values = {
        f"{node['node_id']}#{record['record_id']}": record.get("value")
        for node in trace["nodes"]
        for record in node["records"]
    }
    (suspect,) = [node["node_id"] for node in trace["nodes"] if node["name"] == SUSPECT]
    ways = [(flow["hash_in"], flow["hash_out"]) for flow in trace["flows"] if flow["node_id"] == suspect]
    return suspect, sorted((str(values[before]), str(values[after])) for before, after in ways)


def _further(story: Answer, settings: Settings) -> None:
    row = f"{Path(story['path'])}:{story['row'] + 1}"
    print("\nThe same at a terminal:")
    print(f"    lineage trace {story['application']} backward {row} --values --in-application")
    neo4j = read_state(settings.home.absolute()).servers.get("neo4j")
    where = f" ({neo4j.addresses['browser']})" if neo4j else ""
    print(f"In Neo4j Browser{where}:")
    query = lineage_cypher.pasted("show/step", flowId=story["flow_id"], nodeId=story["suspect"])
    print("\n".join(f"    {line}" for line in query.splitlines()))
    print(f"On the page: {story['url']}/")


# -- the service and the commands ---------------------------------------------------------------------


def _service(settings: Settings) -> str:
    """The address that `lineage serve` has left."""
    try:
        url = str(json.loads((settings.home / "api.json").read_text())["url"])
        _get(url, "/readyz")
    except (OSError, ValueError, StoryFailed):
        raise StoryFailed("start `lineage up`, `lineage consume` and `lineage serve` first") from None
    return url


def _command(command: Sequence[str], settings: Settings) -> None:
    print(f"   $ {' '.join(map(_in_short, command))}")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(_BIN), os.environ.get("PATH", os.defpath)]),
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": settings.kafka_bootstrap_servers,
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [str(_BIN / command[0]), *command[1:]],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise StoryFailed(f"{command[0]} failed with exit code {done.returncode}: {done.stdout[-2000:]}")


def _arrived(url: str, began: float) -> str:
    """The id of the application that has just run, once the stores have every flow of it."""
    deadline = time.monotonic() + _ARRIVAL_DEADLINE_S
    missing = "nothing of it has arrived; does `lineage consume` run?"
    while time.monotonic() < deadline:
        for application in _get(url, "/api/applications")["applications"]:  # newest first
            if application["name"] == JOB_NAME and application["started"] >= began * 1000:
                if application["complete"]:
                    return str(application["application_id"])
                missing = str(application["missing"])
                break
        time.sleep(0.3)
    raise StoryFailed(f"the job's lineage was not complete within {_ARRIVAL_DEADLINE_S:.0f} s: {missing}")


def _get(url: str, place: str, /, **parameters: object) -> Answer:
    return _answer(urllib.request.Request(f"{url}{place}?{urllib.parse.urlencode(parameters)}"))


def _put(url: str, place: str, /, **parameters: object) -> Answer:
    """Neo4j has the records by themselves; this adds the rows of the files."""
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


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.tweets_story", allow_abbrev=False)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache/tweets", help="keep the tweets and the ratings here"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write there too what was found, in full")
    options = parser.parse_args(argv)
    try:
        story = run(options.folder.absolute(), resolve(Settings()))
        if options.json:
            options.json.write_text(json.dumps(story))
    except (StoryFailed, LineageError, OSError) as error:
        print(f"tweets_story: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
