"""Applications with a loop, as an agent tells them, and what explains their records, by loops over all.

Each turn reads the version before: through a union, from a cache, or through a shuffle. It ends with groups,
some of which one of their inputs alone decided. Some records have digests. `explained` knows nothing of runs,
messages and sites.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from tests.support.run_applications import Operator, Place, RunApplication, Stage

READ, MADE = "read", "made"
"""Sites: where a turn reads the version before, and where it makes its own."""


@dataclass
class Explained:
    """`rows` of files; the turn up to which a changed record stays; the turn that brought a row in."""

    rows: set[Place] = field(default_factory=set)
    until: dict[Place, int] = field(default_factory=dict)
    turn_of_row: dict[Place, int] = field(default_factory=dict)
    #: All records that explain something, those of files and those between.
    passed: set[Place] = field(default_factory=set, compare=False)


@dataclass(frozen=True)
class LoopApplication:
    """`versions`: the nodes of the loop variable, that before the loop first."""

    runs: RunApplication
    versions: Sequence[int]

    @cached_property
    def made(self) -> Mapping[Place, set[Place]]:
        return self.runs.made()

    @cached_property
    def winners(self) -> dict[Place, Place]:
        found: dict[Place, Place] = {}
        for stage in self.runs.stages:
            before = stage.begin
            for operator in stage.operators:
                for split, winners in enumerate(operator.winners):
                    found |= {(operator.node, split, at): (before, split, of) for at, of in winners.items()}
                before = operator.node
        return found

    @cached_property
    def digests(self) -> dict[Place, int]:
        told = [(stage.begin, stage.digests) for stage in self.runs.stages]
        told += [(each.node, each.digests) for stage in self.runs.stages for each in stage.operators]
        return {
            (node, split, at): digest
            for node, by_split in told
            for split, digests in enumerate(by_split)
            for at, digest in digests.items()
        }

    def all_before(self, place: Place) -> set[Place]:
        """The record, and all that it was made of, however far back."""
        seen, stack = {place}, [place]
        while stack:
            for before in self.made[stack.pop()] - seen:
                seen.add(before)
                stack.append(before)
        return seen

    def rows_before(self, places: Iterable[Place]) -> set[Place]:
        """The rows of files of a plain trace."""
        return {before for place in places for before in self.all_before(place) if not self.made[before]}

    def hops_before(self, places: Iterable[Place]) -> dict[Place, int]:
        """Of all that some records were made of: how many records back, by the shortest way."""
        hops = dict.fromkeys(places, 0)
        layer = list(hops)
        while layer:
            layer = [before for place in layer for before in sorted(self.made[place]) if before not in hops]
            hops |= dict.fromkeys(layer, max(hops.values()) + 1)
            layer = list(dict.fromkeys(layer))
        return hops

    def same_before(self, place: Place) -> Place | None:
        """The same record in the version before, if the record was made of it, too."""
        turn = self._turns.get(place[0], 0)
        if not turn or place not in self.digests:
            return None
        for is_along_winners in (True, False):
            same = [
                before
                for before in self._unmerged_before(place, is_along_winners=is_along_winners)
                if before[0] == self.versions[turn - 1] and self.digests.get(before) == self.digests[place]
            ]
            if same:
                return min(same)
        return None

    def _unmerged_before(self, place: Place, *, is_along_winners: bool) -> set[Place]:
        """As `all_before`, but not behind what was merged of several records, none of which decided it."""
        merges = {
            each.node for stage in self.runs.stages for each in stage.operators if each.relation == "codes"
        }
        seen, stack = {place}, [place]
        while stack:
            at = stack.pop()
            winner, inputs = self.winners.get(at), self.made[at]
            if at[0] in merges and winner is None and len(inputs) > 1:
                continue
            for before in ({winner} if winner is not None and is_along_winners else inputs) - seen:
                seen.add(before)
                stack.append(before)
        return seen

    @cached_property
    def _turns(self) -> dict[int, int]:
        return {node: turn for turn, node in enumerate(self.versions)}

    def explained(self, starts: Iterable[Place]) -> Explained:
        found = Explained()
        todo: list[tuple[Place, int | None, int | None]] = [(start, None, None) for start in starts]
        seen: set[tuple[Place, int | None, int | None]] = set()
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            place, until, turn = state
            if place[0] in self._turns:
                turn = self._turns[place[0]]
                until = turn if until is None else until
                same = self.same_before(place)
                if same is not None:
                    todo.append((same, until, None))
                    continue
                found.until[place] = max(until, found.until.get(place, 0))
            found.passed.add(place)
            if not self.made[place]:
                found.rows.add(place)
                if turn is not None:
                    found.turn_of_row[place] = min(turn, found.turn_of_row.get(place, turn))
            inputs = {self.winners[place]} if place in self.winners else self.made[place]
            todo += [(before, None, turn) for before in inputs]
        return found


# -- any of them ------------------------------------------------------------------------------------------

_digest = st.integers(0, 2) | st.integers(0, (1 << 63) - 1)


class _Builder:
    def __init__(self, draw: st.DrawFn, *, is_captured: bool) -> None:
        self.draw, self.is_captured = draw, is_captured
        self.stages: list[dict[str, Any]] = []
        self._node = 0

    def node(self) -> int:
        self._node += 1
        return self._node - 1

    def stage(self, kind: str, parents: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        for parent in parents:
            parent["is_read"] = True
        read: list[list[Place]] = []
        if kind == "file":
            sizes = self.draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
            read = [[] for _ in sizes]
        elif kind == "shuffle":
            read = [[] for _ in range(self.draw(st.integers(1, 2)))]
            for place in (place for parent in parents for split in _places(parent) for place in split):
                self.draw(st.sampled_from(read)).append(place)
        else:
            read = [list(split) for parent in parents for split in _places(parent)]
        if kind != "file":
            sizes = list(map(len, read))
        begin = Stage(**parents[0]).end if kind == "cache" else self.node()
        stage = {
            "begin": begin,
            "kind": kind,
            "read": read,
            "sizes": sizes,
            "parents": [Stage(**parent).end for parent in parents],
            "operators": [],
            "is_read": False,
            **more,
        }
        self.stages.append(stage)
        return stage

    def operator(self, stage: dict[str, Any], relation: str, **more: Any) -> None:
        made: list[list[list[int]]] = []
        for size in Stage(**stage).outputs:
            if relation == "codes":
                codes: list[int] = []
                for _ in range(size):
                    codes.append(self.draw(st.integers(0, max(codes, default=-1) + 1)))
                groups = range(max(codes, default=-1) + 1)
                made.append([[at for at, of in enumerate(codes) if of == code] for code in groups])
            elif relation == "gather" and size:
                some = st.lists(st.integers(0, size - 1), min_size=1, max_size=3, unique=True)
                made.append(self.draw(st.lists(some, max_size=4)))
            else:
                made.append([[at] for at in range(size)])
        operator = Operator(self.node(), relation, made, **{"is_public": False, **more})  # type: ignore[arg-type]
        stage["operators"].append(operator)

    def winners(self, made: Sequence[Sequence[Sequence[int]]]) -> list[dict[int, int]]:
        """Of some outputs."""
        if not self.is_captured:
            return []
        return [
            {at: self.draw(st.sampled_from(of)) for at, of in enumerate(split) if self.draw(st.booleans())}
            for split in made
        ]

    def digests(self, sizes: Iterable[int]) -> list[dict[int, int]]:
        if not self.is_captured:
            return []
        return [{at: self.draw(_digest) for at in range(size) if self.draw(st.booleans())} for size in sizes]


def _places(stage: dict[str, Any]) -> list[list[Place]]:
    of = Stage(**stage)
    return [[(of.end, split, at) for at in range(count)] for split, count in enumerate(of.outputs)]


def _turn(build: _Builder, before: dict[str, Any], constant: dict[str, Any]) -> dict[str, Any]:
    """The stage that makes the next version."""
    draw = build.draw
    way = draw(st.sampled_from(["union", "cache", "shuffle"]))
    if way == "union":
        parents = [before, constant] if draw(st.booleans()) else [before]
        read = build.stage("union", parents, is_public=True, site=READ)
    elif way == "shuffle":
        read = build.stage("shuffle", [before], is_public=True, site=READ)
    else:
        sizes = Stage(**before).outputs
        read = build.stage("cache", [before], is_public=True)
        if not Stage(**before).operators or not Stage(**before).operators[-1].digests:
            read["digests"] = build.digests(sizes)  # told by who reads it
        build.operator(read, draw(st.sampled_from(["identity", "gather"])), is_public=True, site=READ)
    if draw(st.booleans()):
        build.operator(read, "gather", **draw(st.sampled_from([{}, {"is_public": True, "site": "then"}])))
    if draw(st.booleans()):
        read["actions"] = [build.node()]
    version = build.stage("shuffle", [read])
    build.operator(version, "codes")
    grouped = version["operators"][-1]
    winners = build.winners(grouped.made)
    version["operators"][-1] = Operator(grouped.node, "codes", grouped.made, False, winners=winners)
    build.operator(version, "identity", is_public=True, site=MADE)
    if draw(st.booleans()):
        last = version["operators"][-1]
        digests = build.digests(map(len, last.made))
        version["operators"][-1] = Operator(last.node, "identity", last.made, True, MADE, digests=digests)
    return version


@st.composite
def loop_applications(draw: st.DrawFn, *, is_captured: bool = True) -> LoopApplication:
    build = _Builder(draw, is_captured=is_captured)
    version = build.stage("file", [], is_public=True)
    if draw(st.booleans()):
        build.operator(version, "gather", is_public=True)
    if not version["operators"]:
        version["digests"] = build.digests(version["sizes"])
    constant = build.stage("file", [], is_public=True)
    nodes = [Stage(**version).end]
    for _ in range(draw(st.integers(1, 4))):
        version = _turn(build, version, constant)
        nodes.append(Stage(**version).end)
    version["actions"] = [build.node()]
    if not constant["is_read"]:
        constant["actions"] = [build.node()]
    stages = [Stage(**stage) for stage in build.stages]
    return LoopApplication(RunApplication(stages), nodes if len(nodes) > 2 else [])
