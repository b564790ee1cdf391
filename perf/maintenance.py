"""Measures what `lineage maintain` does to a flow store: files, bytes, a backward step, its own cost.

    python -m perf.maintenance [--rows 5000000] [--files 100] [--out perf/results]

Writes blocks as a consumer does, sixteen runs side by side, compacts in a process of its own, and asks before
and after: which inputs became one output of one run (DuckDB over the files, the median of many outputs).
Writes maintenance-DATE.json and .md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from lineage_service.decode.batches import Message, flow_batch
from lineage_service.store.flow_store import DeltaFlowStore
from lineage_service.store.maintenance import Maintenance
from perf.tables import publish
from spark_agent import contract
from spark_agent.contract import Block

APPLICATION = "measured"
NODE, RUNS, KEYS, QUESTIONS, SEED = 3, 16, 10_000, 200, 7


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.maintenance", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="flows in all (default: 5000000)")
    parser.add_argument("--files", type=int, default=100, help="batches of the consumer (default: 100)")
    parser.add_argument("--out", type=Path, default=Path("perf/results"), help="folder of the results")
    parser.add_argument("--compact", type=Path, help=argparse.SUPPRESS)  # the process that is measured
    options = parser.parse_args(argv)
    if options.compact:
        print(json.dumps(_compacted(options.compact)))
        return 0
    with tempfile.TemporaryDirectory(prefix="lineage-perf-") as folder:
        figures = _measured(Path(folder), options.rows, options.files)
    publish(options.out, "maintenance", figures, _page(figures))
    return 0


def _measured(folder: Path, rows: int, files: int) -> dict[str, Any]:
    store = DeltaFlowStore(folder)
    began = time.perf_counter()
    _fill(store, rows, files)
    wrote_s = time.perf_counter() - began
    before = _state(store)
    done = subprocess.run(
        [sys.executable, "-m", "perf.maintenance", "--compact", str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    return {
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end",
        "rows": rows,
        "written_s": round(wrote_s, 2),
        "before": before,
        "after": _state(store),
        "compaction": json.loads(done.stdout),
    }


def _fill(store: DeltaFlowStore, rows: int, files: int) -> None:
    """Each batch brings the next block of some of the runs; which key a row has follows a power law."""
    rng = np.random.default_rng(SEED)
    size = min(max(rows // (files * 4), 1), contract.MAX_COLUMN_VALUES)
    written, offset = 0, 0
    while written < rows:
        messages = []
        for _ in range(4):
            run, seq = offset % RUNS, offset // RUNS
            codes = (rng.zipf(1.3, size) % KEYS).tolist()
            block = Block(
                application_id=APPLICATION,
                node=NODE,
                run=run + 1,
                split=run,
                seq=seq,
                relation=contract.CODES,
                base_in=seq * size,
                base_out=0,
                columns={"code": codes},
            )
            value = contract.encode_block(block)
            messages.append(Message(topic="flow", partition=0, offset=offset, key=b"", value=value))
            written, offset = written + size, offset + 1
        store.write_flows(flow_batch("measured/flow-0", messages))


def _state(store: DeltaFlowStore) -> dict[str, Any]:
    stored = Maintenance(store).stored()[APPLICATION]
    steps = _steps_ms(store)
    return {
        "files": stored.files["flows"],
        "bytes": sum(Path(path).stat().st_size for path in store.files("flows", APPLICATION)),
        "step_ms_median": round(statistics.median(steps), 2),
        "step_ms_95": round(sorted(steps)[int(0.95 * len(steps))], 2),
    }


def _steps_ms(store: DeltaFlowStore) -> list[float]:
    database = duckdb.connect(config={"threads": 2})
    files = store.files("flows", APPLICATION)
    database.execute(f"CREATE VIEW flows AS SELECT * FROM read_parquet({files!r}, hive_partitioning = false)")
    chosen, times = random.Random(SEED), []
    for _ in range(QUESTIONS):
        key, run = chosen.randrange(KEYS), chosen.randint(1, RUNS)
        began = time.perf_counter()
        database.execute(
            f"SELECT in_pos, coalesce(in_run, run) FROM flows WHERE node = {NODE} AND run = {run} "
            f"AND out_pos <= {key} AND out_pos + out_count > {key} ORDER BY in_pos LIMIT 1000"
        ).fetchall()
        times.append(1000 * (time.perf_counter() - began))
    return times


def _compacted(folder: Path) -> dict[str, Any]:
    maintenance = Maintenance(DeltaFlowStore(folder))
    began = time.perf_counter()
    maintenance.compact(APPLICATION)
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def _page(figures: dict[str, Any]) -> str:
    before, after, compaction = figures["before"], figures["after"], figures["compaction"]
    return (
        "# What `lineage maintain` does to a flow store\n\n"
        f"`python -m perf.maintenance`, Python {figures['python']}, {figures['machine']}. "
        f"{figures['rows']:,} flows of one node in {RUNS} runs; compacted in {compaction['seconds']} s, "
        f"{compaction['peak_mib']} MiB of memory at its peak. "
        "A step: the first 1,000 inputs of one output.\n\n"
        "| | files | bytes | step, median | step, 95 % |\n|---|---|---|---|---|\n"
        + "".join(
            f"| {name} | {state['files']} | {state['bytes']:,} "
            f"| {state['step_ms_median']} ms | {state['step_ms_95']} ms |\n"
            for name, state in (("before", before), ("after", after))
        )
    )


if __name__ == "__main__":
    sys.exit(main())
