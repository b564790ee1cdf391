"""From measured cases to figures and a page of Markdown. Values in, text out: measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from perf.tables import table

#: What a case is there for, in the order of the page.
BESIDE, WAITING, GROWN, SHAPES = "beside", "waiting", "grown", "shapes"
FLOW_STORE, BOTH = "flow store", "flow store and Neo4j"

#: What DESIGN.md asks for: of WordCount with 500 MB of input, and of every WordCount.
QUERYABLE_S, BYTES_A_FLOW = 30.0, 0.4
#: A cost that grows by more than this from the first size to the last is no longer linear.
LINEAR = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one process: CPU seconds, resident memory at its peak, and the rows that it wrote."""

    cpu_s: float
    peak_mib: float
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One application consumed once by `consumers` into `stores`.

    `seconds` go from the application's end (`beside` the job), else from the start of the processes, until
    the API says that it is complete; `committed_s` until the group's offsets say so. `store_bytes` and
    `files` are by table, `rows` those of `flows`, `commits` of all tables. `flows` counts the widest node of
    each run, as perf.capture does; `times` is how much larger than the first of its kind a grown one is.
    """

    kind: str
    case: str
    title: str
    megabytes: float
    consumers: int
    stores: str
    input_bytes: int
    messages: int
    topic_bytes: int
    seconds: float
    committed_s: float
    costs: Sequence[Cost]
    flows: int
    rows: int
    store_bytes: Mapping[str, int]
    files: Mapping[str, int]
    commits: int
    load: float
    times: int = 1

    @property
    def cpu_s(self) -> float:
        return sum(cost.cpu_s for cost in self.costs)

    @property
    def flows_per_s(self) -> float:
        return self.flows / self.seconds

    @property
    def bytes_per_flow(self) -> float:
        """Of all four tables."""
        return sum(self.store_bytes.values()) / self.flows

    @property
    def positions_per_flow(self) -> float:
        """Bytes of the table `flows` alone: without keys, values, events and receipts."""
        return self.store_bytes["flows"] / self.flows


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """Questions to a fresh store, and `lineage maintain` of it. Times of traces in ms, in the order asked.

    `largest` are the records that the trace of the commonest word counted, 0 where it got no answer in time.
    """

    case: str
    megabytes: float
    flows: int
    backward_ms: Sequence[float]
    forward_ms: Sequence[float]
    largest_ms: float
    largest: int
    serve: Cost
    maintain_s: float
    maintain: Cost
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCost:
    """Of a batch of one small block, on average over the last batches, when there were `batches` in all."""

    batches: int
    ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the JSON file holds."""

    about: Mapping[str, Any]
    measured: Sequence[Measured] = field(default_factory=list)
    afterwards: Afterwards | None = None
    commits: Sequence[CommitCost] = field(default_factory=list)


def as_json(result: Result) -> dict[str, Any]:
    return asdict(result)


def from_json(body: Mapping[str, Any]) -> Result:
    measured = [
        Measured(**{**fields, "costs": [Cost(**cost) for cost in fields["costs"]]})
        for fields in body["measured"]
    ]
    after = body["afterwards"]
    if after is not None:
        after = Afterwards(
            **{**after, "serve": Cost(**after["serve"]), "maintain": Cost(**after["maintain"])}
        )
    return Result(
        about=body["about"],
        measured=measured,
        afterwards=after,
        commits=[CommitCost(**fields) for fields in body["commits"]],
    )


# -- figures -----------------------------------------------------------------------------------------


def growth(grown: Sequence[Measured], figure: Callable[[Measured], float]) -> float:
    """A figure for each flow at the largest size, over that at the smallest whose start-up does not hide it.

    The smallest size is mostly the start of a process; it is left out where there are three sizes.
    """
    first, last = _compared(grown)
    return (figure(last) / last.flows) / (figure(first) / first.flows)


def _compared(grown: Sequence[Measured]) -> tuple[Measured, Measured]:
    sizes = sorted(grown, key=lambda case: case.times)
    return sizes[1 if len(sizes) > 2 else 0], sizes[-1]


def marginal_flows_per_s(grown: Sequence[Measured]) -> float:
    """Flows a second between the smallest and the largest size: the time of starting up is taken off."""
    sizes = sorted(grown, key=lambda case: case.times)
    first, last = sizes[0], sizes[-1]
    return (last.flows - first.flows) / max(last.seconds - first.seconds, 0.01)


def percentile(figures: Iterable[float], share: float) -> float:
    """The smallest figure that `share` of all do not exceed."""
    ordered = sorted(figures)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def unequal(measured: Iterable[Measured]) -> list[str]:
    """Cases that stored another number of flows than others of the same application: something is wrong."""
    flows_of: dict[tuple[str, float, int], set[int]] = {}
    for case in measured:
        flows_of.setdefault((case.case, case.megabytes, case.times), set()).add(case.flows)
    return [
        f"{case}, {megabytes:g} MB x {times}: {sorted(flows)} flows"
        for (case, megabytes, times), flows in flows_of.items()
        if len(flows) > 1
    ]


# -- the page ----------------------------------------------------------------------------------------


def markdown(result: Result) -> str:
    """The page for people."""
    by_kind = {
        kind: [case for case in result.measured if case.kind == kind]
        for kind in (BESIDE, WAITING, GROWN, SHAPES)
    }
    sections = [
        "# From Kafka to queryable",
        "Made by `python -m perf.ingest`; [README.md](../README.md) says how and what the words mean.",
        "\n".join(f"- {name}: {value}" for name, value in result.about.items()),
    ]
    if by_kind[BESIDE]:
        sections += ["## Job end to queryable, consumers running beside the job", _ways(by_kind[BESIDE])]
    if by_kind[WAITING]:
        sections += [
            "## All messages waiting, consumers started afterwards",
            "Seconds hold the start of the processes, one to two.",
            _ways(by_kind[WAITING]),
        ]
    if by_kind[GROWN]:
        sections += [
            "## The same job, larger: one consumer, flow store",
            "Ten and a hundred times the runs, blocks and events in one application. "
            + _linear(by_kind[GROWN]),
            _grown(by_kind[GROWN]),
        ]
    sections += ["## Bytes a flow", _sizes(result.measured)]
    if result.afterwards is not None:
        sections += ["## Afterwards", _afterwards(result.afterwards)]
    if result.commits:
        sections += ["## One small block a batch", _commits(result.commits)]
    problems = unequal(result.measured)
    sections += [
        "## Equality",
        "\n".join(f"- {problem}" for problem in problems)
        or "However many processes wrote it, an application has the same number of flows in the store.",
    ]
    return "\n\n".join(sections) + "\n"


def _name(case: Measured) -> str:
    return f"{case.title}, {case.megabytes:g} MB"


def _verdict(is_met: bool, target: str) -> str:
    return f"{'**met**' if is_met else 'missed'}: <= {target}"


def _ways(measured: Sequence[Measured]) -> str:
    rows = []
    for case in measured:
        seconds = f"{case.seconds:.1f}"
        if case.case == "wordcount" and case.megabytes == 500 and case.consumers == 1:
            seconds += f", {_verdict(case.seconds <= QUERYABLE_S, f'{QUERYABLE_S:g}')}"
        rows.append(
            [
                _name(case),
                str(case.consumers),
                case.stores,
                f"{case.flows:,}",
                seconds,
                f"{case.committed_s:.1f}",
                "-" if case.kind == BESIDE else f"{case.flows_per_s:,.0f}",
                f"{case.cpu_s:.1f}",
                ", ".join(f"{cost.peak_mib:.0f}" for cost in case.costs),
            ]
        )
    head = ["", "consumers", "into", "flows", "s to queryable", "s to the last offset", "flows/s", "CPU s"]
    return table([*head, "peak MiB of each"], rows)


def _linear(grown: Sequence[Measured]) -> str:
    cpu = growth(grown, lambda case: case.cpu_s)
    wall = growth(grown, lambda case: case.seconds)
    first, last = _compared(grown)
    verdict = "linear" if max(cpu, wall) <= LINEAR else f"not linear: more than {LINEAR}"
    return (
        f"CPU for each flow at {last.times} times is {cpu:.2f} of that at {first.times}, wall time "
        f"{wall:.2f} ({verdict}); without the start, {marginal_flows_per_s(grown):,.0f} flows a second."
    )


def _grown(grown: Sequence[Measured]) -> str:
    return table(
        ["times", "flows", "messages", "commits", "s", "CPU s", "us a flow", "CPU us a flow", "peak MiB"],
        [
            [
                str(case.times),
                f"{case.flows:,}",
                f"{case.messages:,}",
                f"{case.commits:,}",
                f"{case.seconds:.1f}",
                f"{case.cpu_s:.1f}",
                f"{1e6 * case.seconds / case.flows:.3f}",
                f"{1e6 * case.cpu_s / case.flows:.3f}",
                ", ".join(f"{cost.peak_mib:.0f}" for cost in case.costs),
            ]
            for case in sorted(grown, key=lambda case: case.times)
        ],
    )


def _commits(commits: Sequence[CommitCost]) -> str:
    rows = [[f"{cost.batches:,}", f"{cost.ms:.1f}", f"{cost.cpu_ms:.1f}"] for cost in commits]
    return (
        "The price of commits: a thousand flows a batch, two commits and two files each, nothing compacted."
        "\n\n" + table(["batches so far", "ms a batch", "CPU ms a batch"], rows)
    )


def _sizes(measured: Sequence[Measured]) -> str:
    shown: dict[tuple[str, float], Measured] = {}
    for case in measured:
        if case.times == 1 and case.consumers == 1:
            shown.setdefault((case.title, case.megabytes), case)
    rows = []
    for case in shown.values():
        positions = f"{case.positions_per_flow:.3f}"
        if case.case == "wordcount":
            positions += f", {_verdict(case.positions_per_flow <= BYTES_A_FLOW, f'{BYTES_A_FLOW:g}')}"
        rows.append(
            [
                _name(case),
                f"{case.flows:,}",
                f"{case.rows:,}",
                positions,
                f"{case.bytes_per_flow:.3f}",
                f"{sum(case.store_bytes.values()) / case.input_bytes:.4f}",
                f"{case.topic_bytes / case.flows:.3f}",
                f"{sum(case.files.values()):,}",
            ]
        )
    head = [
        "",
        "flows",
        "rows",
        "bytes a flow, table `flows`",
        "all tables",
        "all tables / input",
        "in Kafka",
    ]
    return (
        "Fresh, before `lineage maintain`. A word that a flatMap made and a combine took counts as one flow "
        "and is two rows.\n\n" + table([*head, "files"], rows)
    )


def _afterwards(after: Afterwards) -> str:
    def times(name: str, figures: Sequence[float]) -> str:
        return (
            f"- {len(figures)} {name} traces: median {percentile(figures, 0.5):.0f} ms, 95 % "
            f"{percentile(figures, 0.95):.0f} ms, the first {figures[0]:.0f} ms"
        )

    took = (
        f"{after.largest:,} records in {after.largest_ms / 1000:.1f} s"
        if after.largest
        else "no answer within the time of one question"
    )
    return "\n".join(
        [
            f"Of {after.flows:,} flows of {after.case}, {after.megabytes:g} MB, over HTTP, fresh.",
            "",
            times("backward", after.backward_ms),
            times("forward", after.forward_ms),
            f"- backward from the commonest word: {took}; `lineage serve` took "
            f"{after.serve.peak_mib:.0f} MiB at its peak",
            f"- `lineage maintain`: {after.maintain_s:.1f} s, {after.maintain.cpu_s:.1f} s of CPU, "
            f"{after.maintain.peak_mib:.0f} MiB; {after.files_before:,} files became {after.files_after:,}, "
            f"{after.bytes_before:,} bytes {after.bytes_after:,}",
        ]
    )
