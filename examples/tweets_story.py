"""The story of the tweets: why is Breaking Bad rated so badly?

    lineage up && lineage consume & lineage serve &
    python -m examples.tweets_story [--folder FOLDER] [--json FILE]

Makes tweets, runs the job `perf/workloads/tweets.py` on them as it is, with `spark.lineage.detailed=true`,
and asks the running service over HTTP what the row of that movie was made of. docs/tweets-story.md tells it.
Leaves the stack as it is. What a user can mend is one line on standard error, exit code 1.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import lineage_cypher
from examples.story_platform import ROOT, Answer, StoryFailed, arrived, command, get, post, service, tell
from lineage_service.devstack.state import read_state
from lineage_service.settings import Settings

JOB = ROOT / "perf" / "workloads" / "tweets.py"
JOB_NAME = "Tweets"
MOVIE = "breakingbad"
#: The operation that makes an opinion of a text.
SUSPECT = "mapValues"
#: Some ten tweets about each movie, and so few records that all of them come into Neo4j by themselves.
MEGABYTES, SEED = 4, 7


def run(folder: Path, settings: Settings) -> Answer:
    """Tells the story on standard output, and returns what was found."""
    url = service(settings)
    tweets, output = folder / "tweets.json", folder / "ratings"
    print(f"1. {MEGABYTES} MB of tweets, one in a hundred about a movie: {tweets}")
    folder.mkdir(parents=True, exist_ok=True)
    size = ["--megabytes", str(MEGABYTES), "--seed", str(SEED)]
    command(["python", "-m", "perf.workloads.generate", "tweets", *size, "--out", str(tweets)], settings)

    print("2. The job as it is, with two flags")
    shutil.rmtree(output, ignore_errors=True)
    began = time.time()
    flags = ["--conf", "spark.lineage.enabled=true", "--conf", "spark.lineage.detailed=true"]
    command(["spark-submit", *flags, str(JOB), str(tweets), str(output)], settings)
    application = arrived(url, JOB_NAME, began)

    print("3. Movie, tweets that praise it, tweets that blame it")
    path, row = _rows(output)
    print(
        f"4. What was the row of {MOVIE} made of? "
        f"At {SUSPECT} these texts became these opinions (praise, blame):"
    )
    trace = f"/api/applications/{application}/trace"
    question = {"direction": "backward", "path": str(path), "row": row, "across": "false"}
    answer = get(url, trace, **question, limit=1000, values="true")
    suspect, pairs = _pairs(answer)
    for text, opinion in pairs:
        print(f"    {opinion}  {text}")
    graph = post(url, f"{trace}/graph", **question)  # Neo4j has the records; this adds the rows of files

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


def main(argv: Sequence[str] | None = None) -> int:
    return tell("tweets_story", run, ROOT / ".cache/tweets", argv)


if __name__ == "__main__":
    sys.exit(main())
