"""The story of the movies: a job that fails, children of one year, and a score that no rating explains.

    lineage up && lineage consume & lineage serve &
    python -m examples.movies_story [--folder FOLDER] [--json FILE]

Runs `perf/workloads/newt_movies.py`, three jobs in a chain, as it is, with lineage on, and asks the running
service over HTTP. The pipeline and its three faults are those of Newt (De, thesis, UCSD 2012).
docs/movies-story.md tells it.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

from examples.story_platform import (
    ROOT,
    Answer,
    StoryFailed,
    arrived,
    command,
    get,
    replayed,
    service,
    tell,
)
from lineage_service.settings import Settings

JOB = ROOT / "perf" / "workloads" / "newt_movies.py"
SCORES, TOP, AGES = "Movies: scores", "Movies: top genres", "Movies: ages"
MEGABYTES, SEED = 0.5, 7
SHOWN = 3

Mend = Callable[[list[str]], list[str]]


def run(folder: Path, settings: Settings) -> Answer:
    """Tells the story on standard output, and returns what was found."""
    url = service(settings)
    print(f"1. Ratings, movies and users: {folder}")
    _inputs(folder, settings)
    story: Answer = {"url": url}

    print("\n2. Three jobs in a chain, with one flag. The last one fails.")
    began = _jobs(folder, "broken-movies", "users", "first", settings, must_fail=True)
    story["crash"] = _culprit(url, arrived(url, AGES, began))
    print("   Step by step, on these two rows alone, in a sandbox:")
    job = _job(folder, "broken-movies", "users", "first")
    story["steps"] = _steps(story["crash"], job, settings)

    print("\n3. The same without the commas: users by genre and decade of age")
    began = _jobs(folder, "movies", "users", "second", settings)
    ages, scores = arrived(url, AGES, began), arrived(url, SCORES, began)
    story["children"] = _children(url, ages, folder / "second" / "ages")

    row = urlencode(
        {"path": story["children"]["path"], "row": story["children"]["row"], "direction": "backward"}
    )
    print(f"   On the page: {url}/#/app/{ages}/trace?{row}")
    print("   What would the result be without them?")
    story["without"] = _without(story["children"], _job(folder, "movies", "users", "second"), settings)

    print("\n4. The highest score that one user gave to one genre")
    story["score"] = _highest(url, scores, folder / "second" / "scores")

    print("\n5. The inputs mended, and what that has changed")
    mended = {"movies": _once_each, "users": _with_birthdays}
    for name, mend in mended.items():
        lines = (folder / f"{name}.txt").read_text().splitlines()
        (folder / f"mended-{name}.txt").write_text("".join(f"{line}\n" for line in mend(lines)))
    began = _jobs(folder, "mended-movies", "mended-users", "third", settings)
    story["compared"] = _compared(url, ages, arrived(url, AGES, began))
    return story


def _inputs(folder: Path, settings: Settings) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, name in (
        ("ratings", "ratings"),
        ("broken-movies", "broken-movies"),
        ("movies", "movies"),
        ("movie-users", "users"),
    ):
        size = ["--megabytes", str(MEGABYTES)] if kind == "ratings" else []
        out = ["--seed", str(SEED), "--out", str(folder / f"{name}.txt")]
        command(["python", "-m", "perf.workloads.generate", kind, *size, *out], settings)


def _jobs(
    folder: Path, movies: str, users: str, output: str, settings: Settings, *, must_fail: bool = False
) -> float:
    """When they began, in seconds since 1970."""
    shutil.rmtree(folder / output, ignore_errors=True)
    began = time.time()
    program, *words = _job(folder, movies, users, output)
    flags = ["--conf", "spark.lineage.enabled=true"]
    command([program, *flags, *words], settings, must_fail=must_fail)
    return began


def _job(folder: Path, movies: str, users: str, output: str) -> list[str]:
    inputs = [str(folder / f"{name}.txt") for name in ("ratings", movies, users)]
    return ["spark-submit", str(JOB), *inputs, str(folder / output), "rdd"]


# -- which record made the last job fail? -------------------------------------------------------------


def _culprit(url: str, application: str) -> Answer:
    place = f"/api/applications/{application}"
    failures = get(url, f"{place}/failures")["failures"]
    if not failures:
        raise StoryFailed(f"{application} has no failure")
    failure = failures[0]
    print(f"    {failure['error']}: {failure['message']}")
    print(f"    {failure['name']} at {_short(failure['call_site'])}")
    for row in failure["sources"]:
        print(f"    {_place(row)}  {_shown(row)}")
    print("   The same record, traced through the jobs before:")
    trace = get(url, f"{place}/trace", direction="backward", failure=failure["failure"], limit=1000)
    movies = _rows(trace, "broken-movies.txt")
    for row in movies:
        print(f"    {_place(row)}  {_shown(row)}" + "    <- a genre with a comma" * ("," in row["text"]))
    print(f"   At a terminal: lineage failures {application}")
    print(f"                  lineage trace {application} backward --failure {failure['failure']}")
    return {"application": application, "failure": failure, "movies": movies, "exact": trace["exact"]}


def _steps(crash: Answer, job: list[str], settings: Settings) -> Answer:
    number = str(crash["failure"]["failure"])
    replay = replayed([crash["application"], "--failure", number, "--step"], job, settings)
    print(f"    {replay['verdict']}: {replay['outputs'][0]['was']}")
    for step in replay["steps"] or ():
        for record in step["records"]:
            print(f"    {step['name']}: {_shown({'text': record['value']})}")
    return replay


# -- who are the children? ----------------------------------------------------------------------------


def _children(url: str, application: str, output: Path) -> Answer:
    place: tuple[Path, int] | None = None
    for part in sorted(output.glob("part-*")):
        for row, text in enumerate(part.read_text().splitlines()):
            genre, decade, _ = text.split(",")
            is_shown = genre == "Drama"
            is_child = is_shown and decade == "0"
            if is_shown:
                print(f"    {text}" + "    <- children of less than ten years?" * is_child)
            place = (part, row) if is_child else place
    if place is None:
        raise StoryFailed(f"no child likes Drama in {output}")
    path, row = place
    question = {"direction": "backward", "path": str(path), "row": row, "across": "false", "limit": 1000}
    trace = get(url, f"/api/applications/{application}/trace", **question)
    users = _rows(trace, "users.txt")
    print(f"   Made of {len(users)} users, such as:")
    for user in users[:SHOWN]:
        print(f"    {_place(user)}  {_shown(user)}")
    years = sorted({user["text"].split(",")[1][:4] for user in users})
    print(f"   Years of their birthdays: {', '.join(years)}. In that year they have registered.")
    print(f"   At a terminal: lineage trace {application} backward {path}:{row + 1} --in-application")
    return {
        "application": application,
        "path": str(path),
        "row": row,
        "users": users,
        "exact": trace["exact"],
    }


def _without(children: Answer, job: list[str], settings: Settings) -> Answer:
    users = children["users"]
    rows = f"{users[0]['path']}:{','.join(str(user['row'] + 1) for user in users)}"
    replay = replayed([children["application"], "--without", rows], job, settings)
    for diff in replay["diff"]:
        for changed in diff["changed"]:
            print(f"    {changed['was']} -> {changed['is']}")
        for text in diff["gone"]:
            print(f"    gone: {text}")
    return replay


# -- where does a score come from? --------------------------------------------------------------------


def _highest(url: str, application: str, output: Path) -> Answer:
    lines = [
        (int(text.rsplit("\t", 1)[1]), text, part, row)
        for part in sorted(output.glob("part-*"))
        for row, text in enumerate(part.read_text().splitlines())
    ]
    _, text, path, row = max(lines)
    print(f"    {_shown({'text': text})}")
    question = {"direction": "backward", "path": str(path), "row": row, "limit": 1000}
    trace = get(url, f"/api/applications/{application}/trace", **question)
    ratings, movies = _rows(trace, "ratings.txt"), _rows(trace, "movies.txt")
    print(f"   Made of {len(ratings)} ratings of at most five stars, and of these movies:")
    for source in (*ratings, *movies):
        print(f"    {_place(source)}  {_shown(source)}")
    return {"text": text, "ratings": ratings, "movies": movies, "exact": trace["exact"]}


# -- what did it change? ------------------------------------------------------------------------------


def _once_each(movies: list[str]) -> list[str]:
    mended = []
    for line in movies:
        movie, title, genres = line.split("\t")
        mended.append(f"{movie}\t{title}\t{'|'.join(dict.fromkeys(genres.split('|')))}")
    return mended


def _with_birthdays(users: list[str]) -> list[str]:
    return [line for line in users if not line.split(",")[1].startswith("2011")]


def _compared(url: str, before: str, after: str) -> Answer:
    compared = get(url, "/api/compare", before=before, after=after, limit=1000)
    gone, new, changed = (compared[f"{kind}_total"] for kind in ("gone", "new", "changed"))
    print(f"    {compared['same']} rows are the same, {gone} gone, {new} new, {changed} changed")
    children = sorted(
        text for row in compared["gone"] if (text := _text(row["columns"])).split(",")[1] == "0"
    )
    for text in children:
        print(f"    gone: {text}")
    print(f"   At a terminal: lineage compare {before} {after}")
    return {"before": before, "after": after, "compared": compared, "children": children}


# -- rows ---------------------------------------------------------------------------------------------


def _text(columns: Answer) -> str:
    return ",".join(str(value) for value in columns.values())


def _rows(trace: Answer, file: str) -> list[Answer]:
    """The rows of an input among the sources of a trace, each once, in their order."""
    rows = {
        record["source"]["row"]: record["source"]
        for node in trace["nodes"]
        for record in node["records"]
        if node["kind"] == "source" and record.get("source") and Path(record["source"]["path"]).name == file
    }
    return [rows[row] for row in sorted(rows)]


def _shown(row: Answer) -> str:
    return str(row["text"]).replace("\t", "  ")


def _place(row: Answer) -> str:
    path = Path(row["path"])
    folder = f"{path.parent.name}/" if path.name.startswith("part-") else ""
    return f"{folder}{path.name}:{row['row'] + 1}"


def _short(call_site: str | None) -> str:
    return (call_site or "").rpartition("/")[2]


def main(argv: Sequence[str] | None = None) -> int:
    return tell("movies_story", run, ROOT / ".cache/movies", argv)


if __name__ == "__main__":
    sys.exit(main())
