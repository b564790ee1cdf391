"""Applications of RDDs of any shape, as Hypothesis makes them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.support.run_applications import Operator, Place, RunApplication, Stage


@st.composite
def operators(draw: st.DrawFn, node: int, sizes: list[int]) -> Operator:
    relation = draw(st.sampled_from(["identity", "positions", "counts", "gather"]))
    made: list[list[list[int]]] = []
    for size in sizes:
        inputs = st.integers(0, size - 1)
        if relation == "identity":
            made.append([[at] for at in range(size)])
        elif relation == "counts":
            made.append([[at] for at in range(size) for _ in range(draw(st.integers(0, 2)))])
        elif relation == "positions":
            made.append([[at] for at in draw(st.lists(inputs, max_size=6))] if size else [])
        else:
            groups = st.lists(st.lists(inputs, min_size=1, max_size=4, unique=True), max_size=4)
            made.append(draw(groups) if size else [])
    return Operator(node=node, relation=relation, made=made, is_public=draw(st.booleans()))


@st.composite
def reads(draw: st.DrawFn, kind: str, before: list[Stage]) -> tuple[list[int], list[list[Place]]]:
    """(the nodes that a stage reads, which records its splits are)."""
    if kind == "shuffle":
        read = draw(st.sampled_from(before))
        buckets: list[list[Place]] = [[] for _ in range(draw(st.integers(1, 3)))]
        for split, count in enumerate(read.outputs):
            for at in range(count):
                buckets[draw(st.integers(0, len(buckets) - 1))].append((read.end, split, at))
        return [read.end], buckets
    both = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2, unique_by=lambda each: each.end))
    whole = [
        [(read.end, split, at) for at in range(count)]
        for read in both
        for split, count in enumerate(read.outputs)
    ]
    whole = [each for each in whole if each]
    if len(whole) > 1 and draw(st.booleans()):  # as coalesce does
        whole = [whole[0] + whole[1], *whole[2:]]
    return [read.end for read in both], whole


@st.composite
def applications(draw: st.DrawFn) -> RunApplication:
    stages: list[dict[str, Any]] = []
    node = 0
    for at in range(draw(st.integers(1, 4))):
        made = [Stage(**stage) for stage in stages]
        kind = draw(st.sampled_from(["file", "shuffle", "union", "cache"])) if at else "file"
        parents: list[int] = []
        begin = node
        if kind == "file":
            sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
            read: list[list[Place]] = [[] for _ in sizes]
        elif kind == "cache":
            cached = draw(st.sampled_from(made))
            begin, sizes = cached.end, cached.outputs
            read = [[(begin, split, one) for one in range(size)] for split, size in enumerate(sizes)]
            parents = [begin]
        else:
            parents, read = draw(reads(kind, made))
            sizes = list(map(len, read))
        for stage in stages:
            stage["is_read"] |= Stage(**stage).end in parents
        node += kind != "cache"
        is_public = kind == "file" or draw(st.booleans())
        if kind == "cache":
            is_public = RunApplication(made).public()[begin]
        chain: list[Operator] = []
        now = list(sizes)
        for _ in range(draw(st.integers(1, 3))):
            chain.append(draw(operators(node, now)))
            now = [len(each) for each in chain[-1].made]
            node += 1
        stages.append(
            {
                "begin": begin,
                "kind": kind,
                "read": read,
                "sizes": sizes,
                "parents": parents,
                "operators": chain,
                "is_public": is_public,
                "is_read": False,
            }
        )
    for stage in stages:
        count = draw(st.integers(int(not stage["is_read"]), 2))
        stage["actions"] = list(range(node, node + count))
        node += count
        stage["copies"] = draw(st.sampled_from([0, 0, 0, 1]))
    return RunApplication([Stage(**stage) for stage in stages])
