"""The examples of the OpenAPI document, from real answers over the store of tests/support/api_store.py.

    python -m tests.support.api_examples        writes api/lineage_api/examples.json anew

What differs at each run (folder, times, numbers of runs and errors) is replaced; a test compares the rest.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from lineage_api.access import Access
from lineage_api.app import create_app
from lineage_api.openapi import EXAMPLES_FILE
from lineage_service.decode.batches import event_batch
from lineage_service.errors import UnavailableError
from lineage_service.lineage import (
    FailingOutput,
    Influence,
    InfluentialRow,
    Replay,
    ReplayedOutput,
    Replays,
    ReplayStep,
    Sift,
    SiftedRow,
    StepRecord,
    UsedRows,
)
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.api_client import Client
from tests.support.api_store import APP, build, service
from tests.support.file_applications import APP as FILE_APP
from tests.support.file_applications import MAP, SINK, SOURCE, questions_of, splits_of
from tests.support.flat_maps import APP as LINES_APP
from tests.support.flat_maps import SINK as LINES_SINK
from tests.support.flat_maps import add_flat_map
from tests.support.lineage_messages import event, messages
from tests.support.linked_applications import Applications
from tests.support.tables.written_tables import Lake

TOKEN = "a-token-of-the-examples"
STARTED_MS, LASTED_MS = 1_732_183_200_000, 2_500
DECIDED_S = 0.0125
BASE = f"/api/applications/{APP}"
TRACE = f"{BASE}/trace?direction=backward&path=FOLDER/sums.csv&row=0&values=true"
MISSING = f"{BASE}/missing?path=FOLDER/orders.csv&row=3"
MISSING_OF = "/api/missing?dataset=FOLDER/orders.csv&row=3"
ROWS = "/api/trace?dataset=FOLDER/orders.csv&where=value%20like%20'North,paid%25'&limit=1"
COMPARED = {
    "compare": "/api/compare?before=monday&after=tuesday",
    "compare_with": "/api/applications/monday/compare?with=tuesday",
}
ROW_SET = f"{BASE}/rowset?path=FOLDER/sums.csv&row=0"
ABSENCE = f"{BASE}/absence?node=3&key=West"
EXPLANATION = f"{BASE}/explanation?path=FOLDER/sums.csv&row=0"
RECORDS = f"{BASE}/nodes/0/records?text=paid&limit=2"
JOB = "/api/jobs/Sums%20by%20shop"
DATASETS, DATASET = "/api/datasets?text=sums", "/api/dataset?name=orders.csv"

PART = "part-00000-4d0efa3b-b8b9-4f50-b95e-85a7f1e4e077-c000.snappy.parquet"
_ENGINE = re.compile(r"delta-rs[^\",]*")

#: operationId -> what was asked.
ASKED = {
    "list_applications": "/api/applications?limit=1",
    "get_application": BASE,
    "get_graph": f"{BASE}/graph",
    "list_records": RECORDS,
    "trace": TRACE,
    "trace_of_dataset": ROWS,
    "get_row_set": ROW_SET,
    "get_explanation": EXPLANATION,
    "get_absence": ABSENCE,
    "get_missing": MISSING,
    "missing_of": MISSING_OF,
    "put_trace_into_neo4j": TRACE.replace("/trace?", "/trace/graph?"),
    "get_values": f"{BASE}/values?record=write%230%230&node=3",
    "list_datasets": DATASETS,
    "get_dataset": DATASET,
    "decide": f"{JOB}/decisions?wave=scheduled__2026-11-27",
    "list_jobs": "/api/jobs",
    "get_job": JOB,
    "list_waves": f"{JOB}/waves",
    "run_next": f"{JOB}/run-next",
    "retrain": f"{JOB}/retrain",
    "get_lag": "/api/lag",
    "check_health": "/healthz",
    "check_readiness": "/readyz",
}
CSV = {
    "list_records": RECORDS,
    "trace": TRACE,
    "trace_of_dataset": ROWS,
    "get_row_set": ROW_SET,
    "get_explanation": EXPLANATION,
    "get_absence": ABSENCE,
    "get_missing": MISSING,
    "missing_of": MISSING_OF,
    "list_datasets": DATASETS,
    "get_dataset": DATASET,
    "list_waves": f"{JOB}/waves",
}
#: Those that change something.
POSTED = ("put_trace_into_neo4j", "decide", "run_next", "retrain")
METRIC = "kafka_consumergroup_lag"


class Failing:
    """Questions that fail in ways which a store of two files does not."""

    def newest_applications(self) -> None:
        raise UnavailableError("the flow store /data/flows cannot be read: No such file or directory")

    def application(self, application_id: str) -> None:
        raise ZeroDivisionError


def examples() -> dict[str, Any]:
    """`answers` (JSON) and `csv` by operationId, `metrics`, and `problems` by status."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        store = build(folder)
        questions = LineageQueries(store, time_budget_s=60)
        app = service(store)
        client = Client(app)

        def ask(address: str, accept: str = "application/json", method: str = "GET") -> str:
            answer = client.request(
                method, address.replace("FOLDER", str(folder)), headers={"Accept": accept}
            )
            assert answer.status_code == 200, answer.text
            return steady(answer.text, folder)

        found: dict[str, Any] = {
            "answers": {
                name: json.loads(ask(address, method="POST" if name in POSTED else "GET"))
                for name, address in ASKED.items()
            },
            "csv": {
                name: re.sub(r"\b[0-9]{13}\b", str(STARTED_MS), ask(address, "text/csv"))
                for name, address in CSV.items()
            },
            "metrics": "".join(
                re.findall(r"^.*\b" + METRIC + r"\b.*\n", ask("/metrics"), flags=re.MULTILINE)
            ),
            "problems": problems(client, questions, store, folder),
        }
    for name, address in COMPARED.items():
        found["answers"][name], found["csv"][name] = comparison(address)
    found["answers"]["get_history"], found["csv"]["get_history"] = history()
    found["answers"]["get_failures"], found["csv"]["get_failures"] = failures()
    found["answers"]["get_slow"], found["csv"]["get_slow"] = slow_records()
    for name, answers in oddities().items():
        found["answers"][name], found["csv"][name] = answers
    found["answers"]["list_replays"] = replays()
    for application in found["answers"]["list_applications"]["applications"]:
        of_steady_times(application)
    of_steady_times(found["answers"]["get_application"])
    jobs = ("list_jobs", "get_job", "list_waves", "decide", "run_next", "retrain")
    for name in ("list_datasets", "get_dataset", *jobs):
        of_steady_moments(found["answers"][name])
    found["csv"]["list_waves"] = re.sub(r",0\.\d+,", f",{DECIDED_S},", found["csv"]["list_waves"])
    found["answers"]["trace_of_dataset"]["started"] = STARTED_MS
    for file in found["answers"]["get_row_set"]["sources"][0]["files"]:
        file["modified"] = STARTED_MS
    found["answers"]["list_applications"]["next"] = f"{STARTED_MS}:{APP}"
    for application in found["answers"]["get_lag"]["applications"]:
        application["seconds"] = 4.5
    return found


def comparison(address: str) -> tuple[Any, str]:
    """Of two runs that copy their input."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        applications = Applications(folder)
        for number, (day, rows) in enumerate(
            {"monday": "North 10\nSouth 7\n", "tuesday": "North 10\nSouth 8\nWest 3\n"}.items()
        ):
            (folder / day).mkdir()
            (folder / day / "sums").write_text(rows)
            applications.copy(day, STARTED_MS + number, folder / day / "sums", folder / day / "out")
            applications.end(day)
        client = Client(create_app(applications.questions))
        as_json = client.get(address)
        as_csv = client.get(address, headers={"Accept": "text/csv"})
        return json.loads(steady(as_json.text, folder)), steady(as_csv.text, folder)


def history() -> tuple[Any, str]:
    """Of a row that was inserted and deleted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        lake = Lake(folder)
        lake.write(
            APP, "orders", pa.table({"id": [41, 42], "shop": ["North", "South"]}), alias="sales.orders"
        )
        [file] = lake.files("orders")
        lake.delete("orders", file, [1])
        client = Client(create_app(lake.queries))
        address = "/api/history?dataset=sales.orders&where=id%20=%2042&version=0"
        texts = [
            re.sub(r"\b[0-9]{13}\b", str(STARTED_MS), steady(text, folder).replace(Path(file).name, PART))
            for text in (
                client.get(address).text,
                client.get(address, headers={"Accept": "text/csv"}).text,
            )
        ]
        return json.loads(_ENGINE.sub("delta-rs", texts[0])), _ENGINE.sub("delta-rs", texts[1])


def influence_and_sift() -> tuple[Influence, Sift]:
    """Of one output row."""
    order: dict[str, Any] = {
        "record": f"{APP}#0#0#2",
        "path": "/data/orders.csv",
        "row": 2,
        "line": 3,
        "text": "North,7",
    }
    output = FailingOutput(path="/data/sums.csv", row=0, line=1, text="North,17")
    influence = Influence(
        influence="8",
        application_id=APP,
        output=output,
        inputs=(InfluentialRow(**order, change=7.0, failed=False, without="North,10", estimated=False),),
        total=2,
        way="folds",
        why="",
        whole=False,
        tests=1,
        exact=True,
        sandbox="/home/ann/.local/share/lineage-master/replays/8",
        seconds=8.1,
        notes=(),
    )
    sift = Sift(
        sift="9",
        application_id=APP,
        test="a row for which int(line.split(',')[1]) > 15 holds",
        rows=(SiftedRow(**order),),
        total=1,
        of=2,
        outputs=(output,),
        tests=3,
        sufficient=True,
        necessary=True,
        minimal=True,
        whole=False,
        unresolved=0,
        exact=True,
        sandbox="/home/ann/.local/share/lineage-master/replays/9",
        seconds=9.8,
        saved=None,
        notes=(),
    )
    return influence, sift


def replays() -> Any:
    """One that reproduced the row that was asked for."""
    replay = Replay(
        replay="7",
        of=APP,
        application="local-1732183260000",
        mode="only",
        strategy="rows",
        rounds=1,
        rows=3,
        total=7,
        verdict="reproduced",
        outputs=(
            ReplayedOutput(
                path="/data/sums.csv",
                row=0,
                line=1,
                record=f"{APP}#3#write#0#0",
                verdict="reproduced",
                was="North,17",
                is_="North,17",
                alike=0,
            ),
        ),
        extra=0,
        used=(UsedRows(node=0, name="textFile", path="/data/orders.csv", rows=((0, 2), (5, 1))),),
        diff=None,
        skipped=None,
        refused=None,
        steps=(
            ReplayStep(
                node_id="local-1732183260000#0",
                name="textFile",
                kind="source",
                call_site="sums.py:3",
                exact=True,
                total=3,
                records=(
                    StepRecord(
                        record_id="read#0#0",
                        key=None,
                        value="North,10",
                        value_type="text",
                        path="/data/orders.csv",
                        line=1,
                        made_of=(),
                    ),
                ),
            ),
        ),
        exit_code=0,
        sandbox="/home/ann/.local/share/lineage-master/replays/7",
        began=STARTED_MS,
        seconds=2.9,
        notes=(),
    )
    influence, sift = influence_and_sift()
    answered = Replays(application_id=APP, replays=(replay,), influences=(influence,), sifts=(sift,))
    with tempfile.TemporaryDirectory() as name:
        questions = LineageQueries(build(Path(name).resolve()), time_budget_s=60)
        client = Client(create_app(questions, read_replays=lambda _: answered))
        return json.loads(client.get(f"{BASE}/replays").text)


def failures() -> tuple[Any, str]:
    """Of a job whose second row is no number."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "amounts.txt").write_text("10\nseven\n90\n")
        questions = questions_of(folder, splits_of(folder / "amounts.txt"), [])
        told = event(
            contract.RUN_FAILED,
            **{
                "time": STARTED_MS,
                "run": 1,
                "stage": 0,
                "action": SINK,
                "input": SOURCE,
                "nodes": [MAP, SINK],
            },
            **{"inputs": 2, "outputs": 1, "failed_node": MAP, "position": 1, "certain": True},
            **{"error": "ValueError", "message": "invalid literal for int() with base 10: 'seven'"},
            **{"frame": "/jobs/sums.py:12", "record": ["str", "seven"]},
        )
        DeltaFlowStore(folder / "flows").write_events(event_batch("more/node-0", messages(told)))
        client = Client(create_app(questions))
        address = f"/api/applications/{FILE_APP}/failures"
        as_csv = client.get(address, headers={"Accept": "text/csv"})
        return json.loads(steady(client.get(address).text, folder)), steady(as_csv.text, folder)


def slow_records() -> tuple[Any, str]:
    """Of a job whose second row took two seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "pages.txt").write_text("short\nvery long\nshort, too\n")
        questions = questions_of(folder, splits_of(folder / "pages.txt"), [])
        told = event(
            contract.RUN_COMMITTED,
            **{"run": 1, "stage": 0, "action": SINK, "input": SOURCE, "nodes": [MAP, SINK]},
            **{"inputs": 3, "outputs": 3, "slow": [[MAP, 1, 2104]]},
        )
        DeltaFlowStore(folder / "flows").write_events(event_batch("more/node-0", messages(told)))
        client = Client(create_app(questions))
        address = f"/api/applications/{FILE_APP}/slow"
        as_csv = client.get(address, headers={"Accept": "text/csv"})
        return json.loads(steady(client.get(address).text, folder)), steady(as_csv.text, folder)


def oddities() -> dict[str, tuple[Any, str]]:
    """Of a job one of whose lines gave far more words than others; suspects, and what its words share."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        lines = [[f"{shop} open" for shop in ("North", "South", "West")] for _ in range(4)]
        lines[2][1] = "South " + 9 * "paid "
        queries = add_flat_map(folder, lines, [[len(line.split()) for line in part] for part in lines])
        client = Client(create_app(queries))
        address = f"/api/applications/{LINES_APP}"
        bad = quote(json.dumps([{"record": f"{LINES_SINK}#write#2#{offset}"} for offset in range(2, 12)]))
        asked = {
            "get_suspects": f"{address}/suspects?limit=1",
            "get_contrast": f"{address}/contrast?bad={bad}&limit=2",
        }
        return {
            operation: (
                json.loads(steady(client.get(address).text, folder)),
                steady(client.get(address, headers={"Accept": "text/csv"}).text, folder),
            )
            for operation, address in asked.items()
        }


def problems(client: Client, questions: LineageQueries, store: Any, folder: Path) -> dict[str, Any]:
    """By status."""
    locked = Client(create_app(questions, access=Access.of(TOKEN, {"localhost"})))
    failing = Client(create_app(Failing()))
    hurried = Client(create_app(LineageQueries(store, time_budget_s=1e-9)))
    local = {"Host": "localhost"}
    asked = [
        client.get("/api/applications/%ff"),
        locked.get("/api/applications", headers=local),
        client.post(
            f"{BASE}/trace/graph?direction=backward&node=3&key=a", headers={"Sec-Fetch-Site": "cross-site"}
        ),
        client.get("/api/applications/no-such-application"),
        client.post(f"{BASE}/trace/graph", content=b"{}"),
        client.get("/healthz", params={"x": "x" * 65_530}),
        locked.get("/api/applications", headers={"Host": "rebound.example"}),
        client.get(f"{BASE}/nodes/0/records?limit=0"),
        client.get("/healthz", headers={"X-Large": "x" * 16_384}),
        failing.get(BASE),
        failing.get("/api/applications"),
        hurried.get(TRACE.replace("FOLDER", str(folder))),
    ]
    return {str(answer.status_code): json.loads(steady(answer.text, folder)) for answer in asked}


def steady(text: str, folder: Path) -> str:
    """Without what differs at each run."""
    text = text.replace(str(folder), "/data")
    text = text.replace("1e-09 s", "30 s")
    text = re.sub(r"run \d{6,}", "run 4181920033301", text)
    return re.sub(r"error [0-9a-f]{8}\b", "error 5d41402a", text)


def of_steady_times(application: dict[str, Any]) -> None:
    application["started"], application["ended"] = STARTED_MS, STARTED_MS + LASTED_MS


def of_steady_moments(answer: Any) -> None:
    """Of writes and reads, wherever they stand."""
    for value in answer.values() if isinstance(answer, dict) else answer:
        if isinstance(value, dict | list):
            of_steady_moments(value)
    if isinstance(answer, dict):
        answer.update(
            {name: STARTED_MS for name in ("at", "read_at", "asked", "began") if answer.get(name) is not None}
        )
        if "is_audit" in answer:
            answer["seconds"] = DECIDED_S
        if "spent_seconds" in answer:
            answer["spent_seconds"] = DECIDED_S


def main() -> int:
    EXAMPLES_FILE.write_text(json.dumps(examples(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{EXAMPLES_FILE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
