"""What a replay did: which rows it took, what came out, and how that differs from the run before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lineage_service.lineage.influences import Influence
from lineage_service.lineage.results import Result, doc
from lineage_service.lineage.sifts import Sift

ReplayMode = Literal["only", "without", "replace", "all"]
ReplayStrategy = Literal["rows", "repair", "watch"]
#: Of an output row, and of the replay as a whole.
Verdict = Literal["reproduced", "close", "changed", "no", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedOutput(Result):
    """An output row that was asked for, or a failure, and what the replay has in its place."""

    path: str | None = field(metadata=doc("File of the original; null of what is no row of a file."))
    row: int | None = field(metadata=doc("Counted from 0, header lines included; else null."))
    line: int | None = field(metadata=doc("`row` + 1, for people; else null."))
    record: str | None = field(metadata=doc("The record of the original, `NODE_ID#RECORD_ID`; else null."))
    verdict: Verdict = field(
        metadata=doc(
            "`reproduced`: the same text. `close`: numbers differ by less than 1e-9 of their size. "
            "`changed`: another value of the same key. `no`: nothing corresponds to it."
        )
    )
    was: str | None = field(metadata=doc("The text of the original; null if it cannot be read."))
    is_: str | None = field(metadata=doc("The text of the replay; null if there is none.", name="is"))
    alike: int | None = field(
        metadata=doc("How many other rows of the original have the same text; null if they were not counted.")
    )
    why: str = field(default="", metadata=doc("What the verdict rests on, or why it is none; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRows(Result):
    """The rows of one input that a replay took, left out or replaced."""

    node: int = field(metadata=doc("Number of the source in the original application."))
    name: str = field(metadata=doc("The operation, for example `textFile`."))
    path: str | None = field(metadata=doc("Path of the file; null of what is no file."))
    rows: tuple[tuple[int, int], ...] | None = field(
        metadata=doc("`[first, count]`, rows counted from 0; null: all of them, and `why` says so.")
    )
    why: str = field(default="", metadata=doc("Why the source was read whole; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOutput(Result):
    """An output row that has another value."""

    was: str = field(metadata=doc("The text of the original."))
    is_: str = field(metadata=doc("The text of the replay.", name="is"))
    key: str | None = field(metadata=doc("What both have in common; null if only their forms agree."))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDifferences(Result):
    """How what one sink wrote differs from what it wrote in the original."""

    path: str = field(metadata=doc("What the original wrote."))
    to: str | None = field(metadata=doc("Where the replay wrote it; null if it did not."))
    gone: tuple[str, ...] = field(metadata=doc("Texts of rows of the original only, at most 1,000."))
    new: tuple[str, ...] = field(metadata=doc("Texts of rows of the replay only, at most 1,000."))
    changed: tuple[ChangedOutput, ...] = field(metadata=doc("Rows with another value, at most 1,000."))
    gone_total: int | None = field(metadata=doc("Number of rows that are gone; null: not compared."))
    new_total: int | None = field(metadata=doc("Number of new rows; null as above."))
    changed_total: int | None = field(metadata=doc("Number of rows with another value; null as above."))
    same: int | None = field(metadata=doc("Number of equal rows; null as above."))
    note: str = field(default="", metadata=doc("Why it was not compared, or not all; else empty."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Result):
    """What a replay would have done to something that is not its own."""

    what: str = field(metadata=doc("What was refused."))
    path: str | None = field(metadata=doc("The file, folder or table; null of anything else."))
    where: str | None = field(metadata=doc("`FILE:LINE` of the job; null if unknown."))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord(Result):
    """A record that an operation gave in a replay."""

    record_id: str | None = field(metadata=doc("Its id in the replay; null of an error."))
    key: str | None = field(metadata=doc("Its key; null if it has none that is known."))
    value: str | None = field(metadata=doc("Its value, or the row of a file that it is; null if unknown."))
    value_type: str | None = field(
        metadata=doc("As in a trace; `text` of a row of a file, `error` of an error; null without a value.")
    )
    path: str | None = field(metadata=doc("The file that it is a row of; or null."))
    line: int | None = field(metadata=doc("Its line there, counted from 1; or null."))
    made_of: tuple[str, ...] = field(
        metadata=doc("The listed records that went in for it, `NODE_ID#RECORD_ID`.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStep(Result):
    """What came out of one operation, on the way of what was asked for."""

    node_id: str = field(metadata=doc("The operation in the replay, `APPLICATION_ID#NUMBER`."))
    name: str = field(metadata=doc("For example `map`."))
    kind: str = field(metadata=doc("`source`, `operator` or `sink`."))
    call_site: str = field(metadata=doc("File and line of the job that called it; empty if unknown."))
    exact: bool = field(metadata=doc("False: only an upper bound of what went in is known."))
    total: int = field(metadata=doc("Number of its records on the way, listed or not."))
    records: tuple[StepRecord, ...] = field(metadata=doc("At most 100 of them."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay(Result):
    """One replay of an application."""

    replay: str = field(metadata=doc("Its id: the name of its sandbox."))
    of: str = field(metadata=doc("The application that was run again.", name="of_application"))
    application: str | None = field(metadata=doc("The application that ran; null if none began."))
    mode: ReplayMode = field(
        metadata=doc("`only` the rows, all `without` them, some of them `replace`d, or `all`.")
    )
    strategy: ReplayStrategy = field(
        metadata=doc(
            "`rows`: those of the lineage. `repair`: with rows added, to reproduce outputs. `watch`: all."
        )
    )
    rounds: int = field(metadata=doc("How often the command ran."))
    rows: int = field(metadata=doc("Number of input rows that were named."))
    total: int | None = field(metadata=doc("Number of all rows of their inputs; null if unknown.", name="of"))
    verdict: Verdict = field(metadata=doc("The worst of its outputs; `refused` if it was not safe."))
    outputs: tuple[ReplayedOutput, ...] = field(metadata=doc("The output rows that were asked for."))
    extra: int | None = field(
        metadata=doc("Rows in the same outputs that nobody asked for; null if they were not counted.")
    )
    used: tuple[UsedRows, ...] = field(metadata=doc("The input rows, source by source."))
    diff: tuple[OutputDifferences, ...] | None = field(
        metadata=doc("How the outputs differ, sink by sink; null with the mode `only`.")
    )
    skipped: tuple[str, ...] | None = field(
        metadata=doc("With `--skip-failing`: what was left out, and why; else null.")
    )
    refused: tuple[Refusal, ...] | None = field(
        metadata=doc("What was refused, before it was done; null if nothing was.")
    )
    steps: tuple[ReplayStep, ...] | None = field(
        default=None,
        metadata=doc(
            "With `--step`: operation by operation, from the inputs on; null if not asked or known."
        ),
    )
    exit_code: int | None = field(metadata=doc("Of the command; null if it did not start."))
    sandbox: str = field(metadata=doc("Folder with what the replay wrote and said."))
    began: int = field(metadata=doc("Unix time in milliseconds."))
    seconds: float = field(metadata=doc("How long it took."))
    notes: tuple[str, ...] = field(
        metadata=doc("Where the script went another way than the original, what was read whole, and more.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayChain(Result):
    """Replays of applications of which each reads what earlier ones wrote, in their order."""

    verdict: Verdict = field(metadata=doc("That of the last one."))
    replays: tuple[Replay, ...] = field(metadata=doc("Up to the first that was refused or failed."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays(Result):
    """What ran an application again, while its sandbox is there."""

    application_id: str = field(metadata=doc("Spark's `applicationId`."))
    replays: tuple[Replay, ...] = field(metadata=doc("The newest first."))
    influences: tuple[Influence, ...] = field(
        metadata=doc("What `lineage influence` found, the newest first; 20 inputs of each.")
    )
    sifts: tuple[Sift, ...] = field(
        metadata=doc("What `lineage sift` found, the newest first; 20 rows and outputs of each.")
    )
