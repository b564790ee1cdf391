"""From a result of perf.ingest to what a day of so many bytes needs: arithmetic, and tables of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perf.ingest import report
from perf.ingest.report import Measured, Result, percentile
from perf.scale.day import Day, Model, simulate
from spark_agent import contract

DAY_S = 86_400.0
TB = 1e12
COPIES = 3
#: How busy consumers may be on average, so that bursts and failures are caught up with.
BUSY = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One measured job, by the byte of its input and by the flow."""

    title: str
    flows_per_byte: float
    flows_per_message: float
    topic_bytes_per_flow: float
    store_bytes_per_flow: float
    flows_per_file: float
    flows_per_s: float  # of one consumer that has started


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a day of such jobs takes."""

    flows: float
    messages: float
    in_per_s: float  # bytes into Kafka, one copy
    broker_bytes: float  # of a day, all copies
    busy: float  # consumers at work on average
    consumers: int
    store_bytes: float
    files: float


def shapes(result: Result) -> list[Shape]:
    """Of each job that one consumer took from waiting messages into the flow store alone.

    The start of a process is taken off: it is the smallest grown case, which is hardly more.
    """
    start_s = min((case.seconds for case in result.measured if case.kind == report.GROWN), default=0.0)
    shapes_by_title: dict[str, Shape] = {}
    for case in result.measured:
        is_one = case.consumers == 1 and case.stores == report.FLOW_STORE
        if is_one and case.kind in (report.WAITING, report.SHAPES):
            shapes_by_title.setdefault(case.title, _shape(case, start_s))
    return list(shapes_by_title.values())


def _shape(case: Measured, start_s: float) -> Shape:
    return Shape(
        title=case.title,
        flows_per_byte=case.flows / case.input_bytes,
        flows_per_message=case.flows / case.messages,
        topic_bytes_per_flow=case.topic_bytes / case.flows,
        store_bytes_per_flow=case.bytes_per_flow,
        flows_per_file=case.flows / sum(case.files.values()),
        # At least half of what was measured: a start that was slow by chance must not make a rate.
        flows_per_s=case.flows / max(case.seconds - start_s, case.seconds / 2),
    )


def need(shape: Shape, input_bytes: float) -> Need:
    """Of `input_bytes` a day, all of this shape."""
    flows = shape.flows_per_byte * input_bytes
    busy = flows / shape.flows_per_s / DAY_S
    return Need(
        flows=flows,
        messages=flows / shape.flows_per_message,
        in_per_s=flows * shape.topic_bytes_per_flow / DAY_S,
        broker_bytes=flows * shape.topic_bytes_per_flow * COPIES,
        busy=busy,
        consumers=math.ceil(busy / BUSY),
        store_bytes=flows * shape.store_bytes_per_flow,
        files=flows / shape.flows_per_file,
    )


# -- simulated days ----------------------------------------------------------------------------------

#: Assumed, not measured: how often a consumer dies and how long it is away.
MTBF_S, RESTART_S = 12 * 3600.0, 60.0
#: The default of lineage-flow; where more consumers are wanted, several times as many.
PARTITIONS = contract.FLOW_PARTITIONS
BURST = 0.3


def busy_in(needed: Need, jobs: int, job_s: float) -> float:
    """Consumers at work on average while there are jobs: one job has less than the day."""
    return needed.busy * max(DAY_S / (jobs * job_s), 1.0)


def _numbers(busy: float) -> list[int]:
    """Numbers of consumers, from too few on."""
    return sorted({max(math.ceil(busy * share), 1) for share in (0.9, 1.1, 1 / BUSY, 2.5, 4.0)})


def partitions_for(busy: float) -> int:
    """Partitions that give the largest number of consumers something to do."""
    return PARTITIONS * max(math.ceil(_numbers(busy)[-1] / PARTITIONS), 1)


def model_of(shape: Shape, input_bytes: float, *, jobs: int, job_s: float) -> Model:
    """A day on which `jobs` of this shape read `input_bytes` in all."""
    needed = need(shape, input_bytes)
    return Model(
        jobs=jobs,
        messages_a_job=round(needed.messages / jobs),
        job_s=job_s,
        burst=BURST,
        partitions=partitions_for(busy_in(needed, jobs, job_s)),
        messages_per_s=shape.flows_per_s / shape.flows_per_message,
        mtbf_s=MTBF_S,
        restart_s=RESTART_S,
    )


# -- the page ----------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def needs_table(shapes: Sequence[Shape], input_bytes: float) -> str:
    rows = []
    for shape in shapes:
        needed = need(shape, input_bytes)
        rows.append(
            [
                shape.title,
                f"{needed.flows:.2g}",
                f"{needed.messages / 1e6:.1f} M",
                f"{needed.in_per_s / 1e6:.1f} MB/s",
                in_words(needed.broker_bytes),
                f"{shape.flows_per_s / 1e6:.2f} M/s",
                f"{needed.busy:.1f}",
                str(needed.consumers),
                in_words(needed.store_bytes),
                f"{needed.files:,.0f}",
            ]
        )
    head = ["all of the day is", "flows", "messages", "into Kafka", f"brokers' disk, {COPIES} copies"]
    head += ["one consumer", "consumers busy", f"to have ({BUSY:.0%} busy)", "flow store", "files, fresh"]
    return table(head, rows)


def day_table(model: Model, busy: float) -> str:
    rows = [_day_row(simulate(model, number)) for number in _numbers(busy)]
    head = [
        "consumers",
        "busy",
        "failures",
        "most that waited",
        "job end to queryable: median",
        "95 %",
        "worst",
    ]
    return table([*head, "waits at midnight"], rows)


def _day_row(day: Day) -> list[str]:
    waiting, seconds = day.waiting, day.queryable_s()
    return [
        str(day.consumers),
        f"{day.busy:.0%}",
        str(day.failures),
        f"{int(waiting.max()):,}",
        duration(percentile(seconds, 0.5)),
        duration(percentile(seconds, 0.95)),
        duration(max(seconds)),
        f"{int(waiting[-1]):,}",
    ]


def duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.1f} h"


def in_words(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
