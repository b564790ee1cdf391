"""The catalogue of random applications, beside one that is counted in the plainest way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lineage_service.datasets.pages import dataset_page, datasets_page
from lineage_service.queries import DatasetQuery, DatasetsQuery
from spark_agent import contract
from tests.support.dataset_applications import Job, dataset, state

STATES = ("complete", "failed", "aborted")


@dataclass(frozen=True)
class Source:
    """`named` is a file or folder; `files` are what was read."""

    named: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Sink:
    named: str
    state: str
    sources: tuple[int, ...]
    time: int


@dataclass(frozen=True)
class Run:
    name: str
    began: int
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]


folders = st.sampled_from(("/a", "/b", "/a/c", "/a/c/d", "/a/x"))
files = st.builds(lambda folder, name: f"{folder}/{name}", folders, st.sampled_from(("x", "y", "p-0")))


@st.composite
def sources(draw: st.DrawFn) -> Source:
    kind = draw(st.sampled_from(("file", "folder", "files", "unknown")))
    if kind == "file":
        file = draw(files)
        return Source(file, (file,))
    if kind == "files":
        several = draw(st.lists(files, min_size=1, max_size=4, unique=True))
        return Source(several[0], tuple(several))
    folder = draw(folders)
    if kind == "unknown":
        return Source(folder, ())
    names = draw(
        st.lists(st.sampled_from(("x", "y", "p-0", "c/x", "d/y")), min_size=1, max_size=4, unique=True)
    )
    return Source(folder, tuple(f"{folder}/{name}" for name in names))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    read = tuple(draw(st.lists(sources(), max_size=3)))
    began = draw(st.integers(0, 20))
    written = draw(st.lists(st.tuples(st.one_of(folders, files), st.sampled_from(STATES)), max_size=2))
    of = st.lists(st.sampled_from(range(len(read))), unique=True) if read else st.just([])
    sinks = tuple(
        Sink(path, how, tuple(sorted(draw(of))), began + 1 + at) for at, (path, how) in enumerate(written)
    )
    return Run(draw(st.sampled_from(("daily", "weekly", "ad hoc"))), began, read, sinks)


def job_of(number: int, run: Run) -> Job:
    job = Job(f"app-{number}", run.name, run.began)
    nodes = [job.read(source.named, source.files) for source in run.sources]
    for sink in run.sinks:
        job.time = sink.time
        parents = [nodes[at] for at in sink.sources]
        node = job.node("sink", contract.FLOWS, parents, dataset=dataset(sink.named))
        job.tell(contract.ACTION_ENDED, node=node, state=sink.state)
    return job.end()


# -- the plain way ----------------------------------------------------------------------------------------


def folder_of(path: str) -> str:
    return path[: path.rindex("/")]


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


class Plain:
    def __init__(self, every: list[Run]) -> None:
        self.every = every
        self.written = {sink.named for run in every for sink in run.sinks}
        self.folders = {source.named for run in every for source in run.sources} | {
            folder_of(file)
            for run in every
            for source in run.sources
            for file in source.files
            if sum(folder_of(other) == folder_of(file) for other in source.files) > 1
        }

    def innermost_written(self, path: str) -> str | None:
        return max((place for place in self.written if is_within(path, place)), key=len, default=None)

    def of_file(self, source: Source, file: str) -> str:
        outer = self.innermost_written(file)
        if outer is not None:
            return outer
        if file != source.named and is_within(file, source.named):
            return source.named
        return folder_of(file) if folder_of(file) in self.folders else file

    def of_source(self, source: Source) -> set[str]:
        if source.files:
            return {self.of_file(source, file) for file in source.files}
        outer = self.innermost_written(source.named)
        within = {place for place in self.written if is_within(place, source.named)} - {source.named}
        alone = folder_of(source.named) if folder_of(source.named) in self.folders else source.named
        return {outer or alone} | within

    def steps(self) -> set[tuple[str | None, str, str | None]]:
        """(read, job, written); None where a job only reads or only writes."""
        found: set[tuple[str | None, str, str | None]] = set()
        for run in self.every:
            for source in run.sources:
                found |= {(place, run.name, None) for place in self.of_source(source)}
            for sink in run.sinks:
                found.add((None, run.name, sink.named))
                for at in sink.sources:
                    found |= {(place, run.name, sink.named) for place in self.of_source(run.sources[at])}
        return found


def reached(steps: Collection[tuple[Any, str, Any]], start: str) -> set[tuple[str, str]]:
    """Edges of the graph from a dataset on, in the direction in which the steps lead."""
    edges: set[tuple[str, str]] = set()
    places, before = {start}, set[str]()
    while places != before:
        before = set(places)
        for near, job, far in steps:
            if near in before:
                edges.add((near, job))
                if far is not None:
                    edges.add((job, far))
                    places.add(far)
    return edges


applications = st.lists(runs(), min_size=1, max_size=6)


@given(applications)
def test_the_datasets_and_what_is_counted_of_them(every: list[Run]) -> None:
    plain = Plain(every)
    page = datasets_page(state(*(job_of(*numbered) for numbered in enumerate(every))), DatasetsQuery())
    reads = {
        (place, number)
        for number, run in enumerate(every)
        for source in run.sources
        for place in plain.of_source(source)
    }
    writes = [
        (sink.named, sink.time, number, sink.state) for number, run in enumerate(every) for sink in run.sinks
    ]
    expected = {}
    for place in {place for place, _ in reads} | {place for place, *_ in writes}:
        mine = [write for write in writes if write[0] == place]
        readers = {number for of, number in reads if of == place}
        expected[place] = (
            len({every[number].name for _, _, number, _ in mine}),
            len({every[number].name for number in readers}),
            len(mine),
            sum(how != "complete" for *_, how in mine),
            max((time for _, time, _, _ in mine), default=None),
            max((every[number].began for number in readers), default=None),
        )
    actual = {
        summary.name: (
            summary.writers,
            summary.readers,
            summary.runs,
            summary.failed_runs,
            None if summary.written is None else summary.written.at,
            summary.read_at,
        )
        for summary in page.datasets
    }
    assert actual == expected
    assert page.total == len(expected)


@given(applications, st.data())
def test_the_graph_and_the_history_of_a_dataset(every: list[Run], data: st.DataObject) -> None:
    plain, made = Plain(every), state(*(job_of(*numbered) for numbered in enumerate(every)))
    names = [summary.name for summary in datasets_page(made, DatasetsQuery()).datasets]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    page = dataset_page(made, DatasetQuery(name=name))

    steps = plain.steps()
    forward = reached(steps, name)
    back = {(far, job, near) for near, job, far in steps}
    backward = {(near, far) for far, near in reached(back, name)}
    ends = {node.id: node.name for node in page.graph.nodes}
    assert {(ends[edge.source], ends[edge.target]) for edge in page.graph.edges} == forward | backward
    assert {node.name for node in page.graph.nodes} == {name}.union(*forward, *backward)

    expected = [
        ("read", run.began, f"app-{number}")
        for number, run in enumerate(every)
        if any(name in plain.of_source(source) for source in run.sources)
    ] + [
        ("write", sink.time, f"app-{number}")
        for number, run in enumerate(every)
        for sink in run.sinks
        if sink.named == name
    ]
    assert sorted((use.kind, use.at, use.application_id) for use in page.history) == sorted(expected)
    assert [use.at for use in page.history] == sorted((use.at for use in page.history), reverse=True)


@given(applications)
def test_edges_lead_to_the_right_unless_there_is_a_circle(every: list[Run]) -> None:
    made = state(*(job_of(*numbered) for numbered in enumerate(every)))
    for summary in datasets_page(made, DatasetsQuery()).datasets:
        graph = dataset_page(made, DatasetQuery(name=summary.name, direction="backward")).graph
        layer = {node.id: node.layer for node in graph.nodes}
        followers: dict[str, set[str]] = {}
        for edge in graph.edges:
            followers.setdefault(edge.source, set()).add(edge.target)

        def leads_back(start: str, end: str, followers: dict[str, set[str]] = followers) -> bool:
            seen, stack = set[str](), [start]
            while stack:
                at = stack.pop()
                if at == end:
                    return True
                if at not in seen:
                    seen.add(at)
                    stack += followers.get(at, ())
            return False

        for edge in graph.edges:
            assert layer[edge.source] < layer[edge.target] or leads_back(edge.target, edge.source)
