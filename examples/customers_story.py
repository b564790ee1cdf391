"""The story of the customers: why are these two one?

    make story                                 # or, beside a running platform:
    python -m examples.customers_story [--folder FOLDER] [--json FILE] [--start]

Makes records of customers and runs `examples/customer_clusters.py` on them as it is, with lineage on. One
cluster has twelve people in it. The explanation of two of its records has the pairs that made them one.
docs/customers-story.md tells it.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from urllib.parse import urlencode

from examples.story_platform import ROOT, Answer, StoryFailed, arrived, command, get, service, tell
from lineage_service.settings import Settings

JOB = ROOT / "examples" / "customer_clusters.py"
PAIRS, CLUSTERS = "Customers: pairs", "Customers: clusters"
SEED = 3
SHOWN = 5

Records = Mapping[str, list[str]]
"""Record -> its fields."""


def run(folder: Path, settings: Settings) -> Answer:
    """Tells the story on standard output, and returns what was found."""
    url = service(settings)
    customers = folder / "customers.csv"
    print(f"1. Records of customers: {customers}")
    folder.mkdir(parents=True, exist_ok=True)
    seed = ["--seed", str(SEED), "--out", str(customers)]
    command(["python", "-m", "perf.workloads.generate", "customer-records", *seed], settings)
    records = {line.split(",")[0]: line.split(",") for line in customers.read_text().splitlines()}

    print("\n2. Pairs that match, and clusters of what they connect: two jobs with one flag")
    began = _jobs(customers, folder / "first", settings)
    pairs, clusters = arrived(url, PAIRS, began), arrived(url, CLUSTERS, began)

    print("\n3. The largest clusters: records, and people by their e-mails")
    one, other = _wondered_at(folder / "first" / "clusters", records)

    print("\n4. Why are these two one?")
    print("\n".join(f"    {','.join(records[record])}" for record in (one, other)))
    story: Answer = {"url": url, "pairs": pairs, "clusters": clusters, "asked": [one, other]}
    story |= _explained(url, clusters, folder / "first" / "clusters", [one, other])

    print("\n5. Which records are behind the pair that is wrong?")
    story["records"] = _behind(url, pairs, story["explanation"])

    print("\n6. Without the number of the hotel")
    number = story["records"]["number"]
    mended = folder / "mended.csv"
    mended.write_text("".join(f"{line.replace(number, '')}\n" for line in customers.read_text().splitlines()))
    _jobs(mended, folder / "second", settings)
    story["mended"] = _apart(folder / "second" / "clusters", [one, other])
    return story


def _jobs(customers: Path, output: Path, settings: Settings) -> float:
    """When they began, in seconds since 1970."""
    shutil.rmtree(output, ignore_errors=True)
    began = time.time()
    flags = ["--conf", "spark.lineage.enabled=true"]
    command(["spark-submit", *flags, str(JOB), str(customers), str(output)], settings)
    return began


def _labels(output: Path) -> Iterator[tuple[str, str, Path, int]]:
    """(record, cluster, file, row) of all that a job has saved."""
    for part in sorted(output.glob("part-*")):
        for row, text in enumerate(part.read_text().splitlines()):
            record, cluster = text.split(",")
            yield record, cluster, part, row


def _wondered_at(output: Path, records: Records) -> tuple[str, str]:
    """The first record of the largest cluster, and one with a name that is least like that one's.

    Of these, the first with an e-mail and a telephone number that few others have.
    """
    clusters: dict[str, list[str]] = defaultdict(list)
    for record, cluster, _, _ in _labels(output):
        clusters[cluster].append(record)
    largest = sorted(clusters.items(), key=lambda cluster: (-len(cluster[1]), cluster[0]))
    for name, members in largest[:SHOWN]:
        people = len({email for member in members if (email := records[member][2])})
        print(f"    {name}: {len(members)} records, {people} e-mails" + "    <- one customer?" * (people > 3))
    first, members = largest[0]
    (usual, _), *_ = Counter(records[member][3] for member in members if records[member][3]).most_common()

    def likeness(record: str) -> tuple[float, str]:
        return SequenceMatcher(None, records[first][1], records[record][1]).ratio(), record

    candidates = [record for record in members if records[record][2] and records[record][3] != usual]
    return first, min(candidates, key=likeness)


# -- why are they one? --------------------------------------------------------------------------------


def _explained(url: str, application: str, output: Path, asked: Sequence[str]) -> Answer:
    rows = {record: (part, row) for record, _, part, row in _labels(output)}
    if set(asked) - set(rows):
        raise StoryFailed(f"{asked} are not in {output}")
    starts = [{"path": str(rows[record][0]), "row": rows[record][1]} for record in asked]
    question = {"starts": json.dumps(starts), "same": "true"}
    explanation = get(url, f"/api/applications/{application}/explanation", **question)
    total, of, plain = (explanation[name] for name in ("total", "of", "plain_total"))
    trace = "" if plain is None else f" (a plain trace: {plain:,})"
    print(f"   {total:,} of {of:,} input rows{trace}, turn by turn:")
    for turn in explanation["turns"]:
        for row in turn["rows"]:
            print(f"    turn {turn['turn']}  {row['text']}")
    places = [f"{rows[record][0]}:{rows[record][1] + 1}" for record in asked]
    print(f"   At a terminal: lineage explain {application} --same {' '.join(places)}")
    part, row = rows[asked[1]]
    page = urlencode({"path": str(part), "row": row, "same": places[0]})
    print(f"   On the page: {url}/#/app/{application}/explanation?{page}")
    return {"explanation": explanation, "row": page}


def _behind(url: str, application: str, explanation: Answer) -> Answer:
    """The records of the pair that shares a telephone number, and that number."""
    wrong = [row for row in explanation["rows"] if row["path"] and "same phone" in row["text"]]
    if not wrong:
        raise StoryFailed("no pair of the explanation shares a telephone number")
    number = wrong[0]["text"].rpartition("same phone ")[2]
    question = {"direction": "backward", "path": wrong[0]["path"], "row": wrong[0]["row"]}
    trace = get(url, f"/api/applications/{application}/trace", **question)
    rows = {
        record["source"]["row"]: record["source"]
        for node in trace["nodes"]
        for record in node["records"]
        if node["kind"] == "source" and record.get("source")
    }
    print(f"    {wrong[0]['text']}")
    for _, row in sorted(rows.items()):
        print(f"    {Path(row['path']).name}:{row['line']}  {row['text']}")
    print(f"   {number} is the number of a hotel, and its guests have left it.")
    return {"pair": wrong[0]["text"], "number": number, "rows": [rows[row] for row in sorted(rows)]}


def _apart(output: Path, asked: Sequence[str]) -> dict[str, str]:
    """Record -> its cluster."""
    clusters = {record: cluster for record, cluster, _, _ in _labels(output) if record in asked}
    for record in asked:
        print(f"    {record} is in {clusters[record]}")
    return clusters


def main(argv: Sequence[str] | None = None) -> int:
    return tell("customers_story", run, ROOT / ".cache/customers", argv)


if __name__ == "__main__":
    sys.exit(main())
