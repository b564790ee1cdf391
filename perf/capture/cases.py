"""The one table of what is measured: each case's job, its input and the ratios that it is held against."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

WORKLOADS = Path(__file__).parents[1] / "workloads"

STOCK, LINEAGE, NOLIN, DETAILED = "stock", "lineage", "nolin", "detailed"
#: Of DataFrames: lineage that goes no further than to ids beside the rows, to arrays, to blocks.
CARRIED, CAPTURED, ENCODED = PARTS = ("carried", "captured", "encoded")
#: Lineage with the thread that looks which records take long.
PACED = "paced"
UNEXPLAINED = "unexplained"
MODES = (STOCK, LINEAGE, NOLIN, DETAILED, *PARTS, PACED, UNEXPLAINED)
#: The ratios of CPU seconds that are published: a name and the two modes.
RATIOS: Mapping[str, tuple[str, str]] = {
    "lineage/stock": (LINEAGE, STOCK),
    "lineage/nolin": (LINEAGE, NOLIN),
    "detailed/stock": (DETAILED, STOCK),
    "paced/lineage": (PACED, LINEAGE),
    "lineage/unexplained": (LINEAGE, UNEXPLAINED),
    **{f"{part}/stock": (part, STOCK) for part in PARTS},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One generated file. `kind` and `options` are those of perf.workloads.generate.

    With `columns` it is a table of Delta Lake with these: what the file of CSV has.
    """

    kind: str
    options: tuple[str, ...] = ()
    is_sized: bool = True  # false: the whole of a kind that has an end
    columns: Mapping[str, pa.DataType] = field(default_factory=dict)

    def file(self, folder: Path, megabytes: float, seed: int) -> Path:
        """The file, or the folder of the table, made if it is not there yet."""
        path = self._file(folder, megabytes, seed)
        return delta_table(path, self.columns) if self.columns else path

    def _file(self, folder: Path, megabytes: float, seed: int) -> Path:
        size = f"-{megabytes:g}" if self.is_sized else ""
        path = folder / f"{'-'.join((self.kind, *self.options)).replace('--', '')}{size}-{seed}.txt"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            command = [sys.executable, "-m", "perf.workloads.generate", self.kind, *self.options]
            size_option = ["--megabytes", f"{megabytes:g}"] if self.is_sized else []
            out = ["--seed", str(seed), "--out", str(path)]
            subprocess.run([*command, *size_option, *out], check=True, cwd=WORKLOADS.parents[1])
        return path


def delta_table(file: Path, columns: Mapping[str, pa.DataType]) -> Path:
    """The table beside the file of CSV, made if it is not there yet."""
    from deltalake import write_deltalake

    path = file.with_suffix(".delta")
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        options = csv.ReadOptions(column_names=list(columns)), csv.ConvertOptions(column_types=dict(columns))
        rows = csv.open_csv(file, read_options=options[0], convert_options=options[1])
        write_deltalake(unfinished, rows)
        unfinished.rename(path)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One job with its inputs. `targets` are upper bounds by the names of RATIOS.

    `is_delta`: it needs the jars of Delta Lake, and a PySpark that these are for.
    """

    name: str
    title: str
    job: str
    inputs: tuple[Input, ...]
    after_output: tuple[str, ...] = ()
    targets: Mapping[str, float] = field(default_factory=dict)
    bytes_per_flow: float | None = None
    is_delta: bool = False

    def arguments(self, inputs: list[Path], output: Path) -> list[str]:
        """What the job is called with."""
        return [*map(str, inputs), str(output), *self.after_output]


_ZIPF = (Input(kind="words"),)
_PURCHASES = Input(kind="purchases")
_SHOP = (_PURCHASES, Input(kind="customers", is_sized=False))

_DELTA_SHOP = (
    Input(
        kind="purchases",
        columns={
            "number": pa.int32(),
            "customer": pa.string(),
            "product": pa.string(),
            "day": pa.string(),
            "amount": pa.decimal128(9, 2),
        },
    ),
    Input(
        kind="customers",
        is_sized=False,
        columns={name: pa.string() for name in ("customer", "name", "country")},
    ),
)

_PIGMIX = (
    Input(kind="page-views"),
    Input(kind="pigmix-users", is_sized=False),
    Input(kind="power-users", is_sized=False),
)
PIGMIX = ("L2", "L3", "L5", "L6", "L7", "L11")

CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case(
            name="wordcount",
            title="WordCount",
            job="wordcount.py",
            inputs=_ZIPF,
            targets={"lineage/stock": 0.90, "lineage/nolin": 1.05, "detailed/stock": 1.20},
            bytes_per_flow=0.45,
        ),
        Case(
            name="extremes",
            title="Longest lines of words",
            job="extremes.py",
            inputs=_ZIPF,
            targets={"lineage/unexplained": 1.02},
        ),
        Case(
            name="components",
            title="Connected components",
            job="components.py",
            inputs=(Input(kind="edges"),),
            targets={"lineage/unexplained": 1.15},
        ),
        Case(
            name="grep",
            title="Grep",
            job="grep.py",
            inputs=_ZIPF,
            targets={"lineage/stock": 1.00, "lineage/nolin": 1.02, "detailed/stock": 1.10},
        ),
        Case(
            name="tweets",
            title="Tweets",
            job="tweets.py",
            inputs=(Input(kind="tweets"),),
            targets={"lineage/stock": 1.00, "lineage/nolin": 1.02, "detailed/stock": 1.20},
        ),
        Case(
            name="grep-most",
            title="Grep that keeps most rows",
            job="grep.py",
            inputs=_ZIPF,
            after_output=("word2",),
            targets={"lineage/nolin": 1.02},
        ),
        Case(
            name="wordcount-uniform",
            title="WordCount, uniform keys",
            job="wordcount.py",
            inputs=(Input(kind="words", options=("--keys", "uniform")),),
            targets={"lineage/nolin": 1.05},
        ),
        Case(
            name="join",
            title="Join",
            job="join.py",
            inputs=_SHOP,
            targets={"lineage/nolin": 1.02},
        ),
        Case(
            name="group",
            title="groupByKey",
            job="group.py",
            inputs=(_PURCHASES,),
            targets={"lineage/nolin": 1.02},
        ),
        Case(name="kept", title="Words that are kept", job="kept.py", inputs=_ZIPF),
        Case(
            name="newt-wordcount",
            title="WordCount with a long tail",
            job="wordcount.py",
            inputs=(Input(kind="tail-words"),),
        ),
        *(
            Case(
                name=f"pigmix-{query}" if form == "rdd" else f"pigmix-{form}-{query}",
                title=f"PigMix {query}" if form == "rdd" else f"PigMix {query} in SQL",
                job="pigmix.py",
                inputs=_PIGMIX,
                after_output=(query, form),
                targets={"lineage/nolin": 1.25} if form == "rdd" else {"lineage/stock": 1.25},
            )
            for form in ("rdd", "sql")
            for query in PIGMIX
        ),
        *(
            Case(
                name=f"dataframe-{name}",
                title=title,
                job=f"dataframe_{name.replace('-', '_')}.py",
                inputs=inputs,
                targets={"lineage/stock": 1.15},
                bytes_per_flow=1.0,
            )
            for name, title, inputs in (
                ("wordcount", "WordCount of DataFrames", _ZIPF),
                ("grep", "Grep of DataFrames", _ZIPF),
                ("join", "Join and aggregate in SQL", _SHOP),
                ("join-all", "Join of three tables", _SHOP),
                ("tweets", "Tweets as a DataFrame", (Input(kind="tweets"),)),
            )
        ),
        Case(
            name="delta-join",
            title="Join and aggregate of Delta tables",
            job="delta_join.py",
            inputs=_DELTA_SHOP,
            targets={"lineage/stock": 1.15},
            bytes_per_flow=1.0,
            is_delta=True,
        ),
        Case(
            name="dataframe-groups",
            title="Functions of pandas over groups",
            job="dataframe_groups.py",
            inputs=(_PURCHASES,),
            targets={"lineage/stock": 1.25},
            bytes_per_flow=1.0,
        ),
        *(
            Case(
                name=f"window-{name}",
                title=title,
                job="dataframe_windows.py",
                inputs=(_PURCHASES,),
                after_output=(name,),
                targets={"lineage/stock": 1.25},
            )
            for name, title in (
                ("lag", "lag() over a window"),
                ("rank", "rank() over a window"),
                ("running", "Running sum"),
                ("moving", "Mean of seven rows"),
                ("range", "Count within a range"),
            )
        ),
    )
}
