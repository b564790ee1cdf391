"""What the objects of a function may hold, whichever way its execution goes. Only ever grows.

An object that outlives a turn holds the rows of earlier turns. Only a buffer does not: a variable's own list,
which is emptied now and then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spark_agent.worker.reading.instructions import Undecided
from spark_agent.worker.reading.values import (
    COUNTED,
    NOTHING,
    OLD_ROWS,
    ROW,
    Atoms,
    Batch,
    Path,
    Place,
    Value,
    aged,
    flushed,
    is_demanding,
    is_outside,
    is_parameter,
)


class Heap:
    """What was put into each place."""

    def __init__(self, buffers: dict[Any, str]) -> None:
        #: Where the list of a buffer variable is created -> the variable.
        self.buffers = buffers
        #: Buffers whose items may be made of items before them.
        self.self_fed: set[str] = set()
        self._contents: dict[Any, Atoms] = {}
        self._links: dict[Any, frozenset[Place]] = {}
        self._delegates: dict[Any, frozenset[Place]] = {}
        #: Objects from outside that something was put into.
        self.stored: set[Any] = set()
        #: Where a function is called -> how it is reached.
        self.results: dict[Any, Path] = {}
        self.is_changed = False
        #: Was a row read?
        self.is_started = False

    def atoms(self, value: Value) -> Atoms:
        """All that `value` depends on, with what it may hold."""
        if value.items is not None:
            raise Undecided  # the partition itself goes somewhere
        return value.atoms | self.contents(value.places) if value.places else value.atoms

    def contents(self, places: Iterable[Place]) -> Atoms:
        atoms = NOTHING
        for place in self.reachable(places):
            atoms |= self._seen_at(place)
        return atoms

    def reachable(self, places: Iterable[Place]) -> frozenset[Place]:
        """`places`, and what is in them."""
        reached = set(places)
        pending = list(reached)
        while pending:
            place = pending.pop()
            for inner in self._links.get(place.root, ()):
                is_let_go = place.age in ("flushed", "stale") and inner.age != "stale"
                inside = inner._replace(age=place.age) if is_let_go or not inner.age else inner
                if inside not in reached:
                    reached.add(inside)
                    pending.append(inside)
        return frozenset(reached)

    def parts(self, places: frozenset[Place]) -> frozenset[Place]:
        """What a part of one of `places` may be. An object from outside stands for all that it holds."""
        return places | {place for place in self.reachable(places) if not is_outside(place.root)}

    def _seen_at(self, place: Place) -> Atoms:
        atoms = self._contents.get(place.root, NOTHING)
        if place.age == "flushed":
            return flushed(atoms, self.buffers.get(place.root, ""))
        if place.age == "stale":
            return aged(atoms)
        if place.age == "aged" and ROW in atoms:
            return atoms - {ROW} | OLD_ROWS
        return atoms

    def link(self, root: Any, places: Iterable[Place]) -> None:
        """What is created at `root` may hold `places`."""
        before = self._links.get(root, frozenset())
        after = before | {place for place in places if place.root != root}
        if after != before:
            self._links[root] = after
            self.is_changed = True

    def delegate(self, root: Any, places: Iterable[Place]) -> None:
        """What is created at `root` was given `places`: what is done to it may be done to them."""
        before = self._delegates.get(root, frozenset())
        self._delegates[root] = before | {place for place in places if place.root != root}
        self.is_changed |= self._delegates[root] != before

    def delegates(self, places: Iterable[Place]) -> frozenset[Place]:
        """`places`, and the objects that they were created with."""
        reached = set(places)
        pending = list(reached)
        while pending:
            place = pending.pop()
            for inner in self._delegates.get(place.root, ()):
                inside = inner._replace(age=inner.age or place.age)
                if inside not in reached:
                    reached.add(inside)
                    pending.append(inside)
        return frozenset(reached)

    def store(
        self,
        places: Iterable[Place],
        atoms: Atoms,
        inner: frozenset[Place] = frozenset(),
        *,
        is_noted: bool = True,
    ) -> None:
        """Something that depends on `atoms`, and is or holds `inner`, is put into one of `places`."""
        for place in places:
            root = place.root
            if is_outside(root) and is_noted:
                self.stored.add(root)
            elif root in self.results and is_noted:
                self.stored.add(("result", self.results[root]))
            before = self._contents.get(root, NOTHING)
            after = before | self._kept(place, atoms)
            if after != before:
                self._contents[root] = after
                self.is_changed = True
            self.link(root, inner)

    def _kept(self, place: Place, atoms: Atoms) -> Atoms:
        name = self.buffers.get(place.root)
        if name is not None:
            if Batch(name, False) in atoms:
                self.self_fed.add(name)
            return atoms - {ROW} | {Batch(name, False)} if ROW in atoms else atoms
        is_counting = self.is_started and not any(map(is_demanding, atoms))
        count = COUNTED if is_counting else NOTHING
        if place.age or is_outside(place.root):
            return aged(atoms) | count
        return atoms | count if is_parameter(place.root) else atoms
