"""The level lazy as its user meets it: `spark_agent.trace` in the session, over a real consumer and API."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_agent import TraceError, agent, trace
from spark_agent.client.http import ApiClient
from tests.support.spark.application import part_rows
from tests.support.spark.sessions import Servers, rows_of_files, session
from tests.support.spark.shop import write_text as write

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(2700)]

LINES = ["to be or", "not to be", "", "that is", "be", "or not", " a,b", "a,b", '"q" to', "twice", "twice"]


@dataclass(frozen=True)
class Ran:
    folder: Path
    context: SparkContext
    spark: SparkSession

    def lines(self, name: str) -> DataFrame:
        return self.spark.read.text(str(self.folder / name))


@pytest.fixture(scope="module")
def ran(servers: Servers, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("lazy")
    for name in ("kept", "touched", "grown", "shrunk", "gone"):
        write(folder / name / "one.txt", LINES[:6])
        write(folder / name / "other.txt", LINES[6:])
    conf = {"spark.sql.shuffle.partitions": "2", "spark.lineage.dataframes.level": "lazy"}
    with session({**servers.conf, **conf}) as context:
        ran = Ran(folder, context, SparkSession.builder.getOrCreate())
        words = ran.lines("kept").select(F.explode(F.split("value", " ")).alias("word"))
        words.groupBy("word").count().write.csv(str(folder / "counts"))
        ran.lines("kept").write.csv(str(folder / "lines"))
        ran.lines("kept").selectExpr("value as v", "length(value) as n").write.json(str(folder / "objects"))
        ran.lines("kept").write.text(str(folder / "copy"))
        ran.lines("kept").orderBy("value").limit(3).groupBy().count().write.csv(str(folder / "chosen"))
        context.parallelize([(1,), (2,)]).toDF("n int").write.csv(str(folder / "of an rdd"))
        yield ran


def rows_of(ran: Ran, name: str) -> list[tuple[Path, int, str]]:
    return part_rows(ran.folder / name)


def with_word(word: str) -> set[tuple[str, int, int, str]]:
    files = (("one.txt", LINES[:6]), ("other.txt", LINES[6:]))
    return {
        (name, row, row + 1, line)
        for name, lines in files
        for row, line in enumerate(lines)
        if word in line.split(" ")
    }


@pytest.mark.parametrize("word", ["be", "not", '"q"', "a,b"])
def test_a_word_goes_back_to_its_lines(ran: Ran, word: str) -> None:
    quoted = {'"q"': '"\\"q\\""', "a,b": '"a,b"'}.get(word, word)
    ((part, row, _),) = [row for row in rows_of(ran, "counts") if row[2].rpartition(",")[0] == quoted]
    assert rows_of_files(trace(part).backward(row=row)) == with_word(word)
    assert rows_of_files(trace(part).row(row).go_back_all().rows()) == with_word(word)


@pytest.mark.parametrize("output", ["lines", "objects", "copy"])
def test_a_line_of_each_text_format_is_found_as_it_was_written(ran: Ran, output: str) -> None:
    """What differs in spaces and quotes alone is told apart wherever its text is."""
    for part, row, text in rows_of(ran, output):
        if "twice" not in text and text.strip('" ') not in ("", "a,b"):
            (source,) = rows_of_files(trace(part).backward(row=row))
            assert source[3].strip() in text.replace("\\", "")


def test_rows_with_the_same_values_are_a_bound(ran: Ran) -> None:
    part, row, _ = next(row for row in rows_of(ran, "copy") if row[2] == "twice")
    with (
        pytest.warns(UserWarning, match="2 rows of the query have the values of row"),
        pytest.warns(UserWarning, match="it has all records that it should, and may have others"),
    ):
        assert rows_of_files(trace(part).backward(row=row)) == with_word("twice")
    api = ApiClient(trace(part)._application.client.address)
    graph = api.get("applications", ran.context.applicationId, "graph")
    reasons = [node["reason"] for node in graph["nodes"] if node["name"] == "row found again"]
    assert any("cannot be told apart" in reason for reason in reasons)


def test_a_row_that_is_missing_ended_at_a_filter(ran: Ran) -> None:
    ran.lines("kept").where("value like '%be'").write.text(str(ran.folder / "bes"))
    file = trace(ran.folder / "kept" / "one.txt")
    before = agent.active().session.events.emitted_events  # type: ignore[union-attr]
    missing, reached = file.missing(row=3)[0], file.missing(row=1)[0]
    assert missing.ended is not None
    assert missing.ended.why == "not EndsWith(value, be)"
    assert missing.ended.node_id is not None
    assert missing.output.description == str(ran.folder / "bes")
    assert (missing.exact, reached.ended, reached.exact) == (True, None, True)
    assert "did not reach" in str(missing)
    assert agent.active().session.events.emitted_events == before  # type: ignore[union-attr] # no part of the job


CHANGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "touched": (lambda folder: os.utime(folder / "one.txt", (1, 1)), "touched/one.txt was written again"),
    "grown": (lambda folder: write(folder / "third.txt", ["be"]), "grown/third.txt is new"),
    "shrunk": (lambda folder: write(folder / "one.txt", ["be"]), "shrunk/one.txt has changed"),
    "gone": (lambda folder: shutil.rmtree(folder), "gone/one.txt is gone"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_trace_over_inputs_that_have_changed_is_refused(ran: Ran, name: str) -> None:
    change, said = CHANGES[name]
    output = ran.folder / f"from {name}"
    ran.lines(name).write.text(str(output))
    (part, row, _) = next(part_row for part_row in part_rows(output) if part_row[2] == "not to be")
    assert rows_of_files(trace(part).backward(row=row)) == {("one.txt", 1, 2, "not to be")}
    change(ran.folder / name)
    with pytest.raises(TraceError, match=said):
        trace(part).row(row)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda ran: trace(rows_of(ran, "copy")[0][0]).row(99), "has no row 99"),
        (lambda ran: trace(ran.folder / "copy").row(0), "trace a file below"),
        (lambda ran: trace(ran.folder / "copy").count(), "say row"),
        (lambda ran: trace(rows_of(ran, "copy")[0][0]).key("be"), "choose with row"),
        (lambda ran: trace(rows_of(ran, "copy")[0][0]).go_back_all(), "say row"),
        (lambda ran: trace(rows_of(ran, "chosen")[0][0]).row(0), "may choose other rows.*level=eager"),
        (lambda ran: trace(rows_of(ran, "of an rdd")[0][0]).row(0), "it reads LogicalRDD.*level=eager"),
        (lambda ran: trace(ran.folder / "kept").forward(row=0), "were not captured"),
        (lambda ran: trace(ran.folder / "kept" / "one.txt").forward(row=0), "were not captured"),
    ],
)
def test_what_cannot_be_answered_says_why(ran: Ran, ask: Any, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        ask(ran)


def test_a_file_that_was_altered_has_no_rows_of_the_query(ran: Ran) -> None:
    output = ran.folder / "altered"
    ran.lines("kept").coalesce(1).write.text(str(output))
    (part,) = output.glob("part-*")
    write(part, ["nobody wrote this"])
    (output / f".{part.name}.crc").unlink(missing_ok=True)
    with pytest.raises(TraceError, match="gives no row like its row 0"):
        trace(part).row(0)


def test_asking_is_no_part_of_the_job(ran: Ran) -> None:
    part, row, _ = rows_of(ran, "counts")[0]
    client, application = trace(part)._application.client, ran.context.applicationId

    def names() -> list[str]:
        return [node["name"] for node in client.get("applications", application, "graph")["nodes"]]

    before = names()
    trace(part).backward(row=row).collect()
    assert names().count("row found again") == before.count("row found again") + 1
    assert [name for name in names() if name in ("collect", "toRdd", "save", "csv", "text")] == [
        each for each in before if each in ("collect", "toRdd", "save", "csv", "text")
    ]


def test_without_the_session_the_api_says_what_to_do(ran: Ran) -> None:
    part, row, _ = rows_of(ran, "counts")[0]
    lineage = trace(part)
    client, application = lineage._application.client, ran.context.applicationId
    (sink,) = [
        node["node_id"]
        for node in lineage._application.nodes.values()
        if node["kind"] == "sink" and node["description"] == str(part.parent)
    ]
    for start in ({"path": str(part), "row": row}, {"node": sink, "partition": 0, "offset": 0}):
        with pytest.raises(TraceError, match=r"level=lazy.*with the level eager") as refused:
            next(client.trace(application, direction="backward", **start))
        assert refused.value.status in (404, 422)
