"""What is known of a value while a function is read: which rows it is made of, and what it may be a part of.

An *atom* says one thing that a value depends on. ROW: the row that was read last. OLD: rows before it. COUNT:
how many rows there were before it. A `Batch` names the buffer whose rows it is made of. A `Need` is a
condition on an object from outside of the function, which can be checked only when the function runs.

A *place* is an object that can be changed: where it was created, or how it is reached from outside. What is
put into a place is found in every value that may be a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any, NamedTuple

ROW, OLD, COUNT = "row", "old", "count"

#: How an object from outside is reached: ("local" | "global" | "cell", name), ("attribute", path, name), or
#: ("part", path) of something that it holds.
Path = tuple[Any, ...]


#: Which argument of a call it is (a place, a keyword, None if unknown), and how its object is reached.
Argument = tuple[int | str | None, Path]


class Batch(NamedTuple):
    """Rows that are in the buffer variable `name`, or with `is_flushed` were in it before it was emptied."""

    name: str
    is_flushed: bool


class Need(NamedTuple):
    """What is at `path` keeps no rows if `method` uses it together with the objects at `arguments`.

    The kinds: "use" (a method, an operation), "call", "quiet" (a call that puts nothing of earlier rows into
    its arguments), "still" (one that puts nothing into them), "reads" (a generator that reads row by row),
    "value" (nothing is put into it later), "is" (it is the builtin `method`), "connection", "apart" (its
    methods give nothing that it holds later).
    """

    kind: str
    path: Path
    method: str | None = None
    arguments: tuple[Argument, ...] = ()


#: The method of a "quiet" need whose result nobody uses.
CALLED_FOR_EFFECT = "effect"
#: The method of a "use" need of what gives an item beside each row.
BESIDE = "__beside__"
Atom = str | Batch | Need
Atoms = frozenset[Atom]
NOTHING: Atoms = frozenset()
THIS_ROW: Atoms = frozenset((ROW,))
OLD_ROWS: Atoms = frozenset((OLD,))
COUNTED: Atoms = frozenset((COUNT,))


class Place(NamedTuple):
    """An object that can be changed. `root`: the offset of its creation, its path, or below 0: an argument.

    `age`: "" in the turn of its creation, "aged" later, "stale" where it is a buffer that another variable
    holds from an earlier turn, "flushed" where it is a buffer that its variable has let go of.
    """

    root: Any
    age: str = ""


class Value(NamedTuple):
    """What is known of one value.

    `items`: it is an iterator over the partition, and its items depend on these. `cells`: variables that the
    function in it reads when it is called. `code`: it is a function of this code.
    """

    atoms: Atoms = NOTHING
    places: frozenset[Place] = frozenset()
    path: Path | None = None
    items: Atoms | None = None
    cells: frozenset[str] = frozenset()
    code: CodeType | None = None
    constant: Any = None


CLEAN = Value()
#: What CPython pushes where there is no object.
NULL = Value(path=("null",))
#: The path of an iterator that gives one item for each row. Others leave rows out.
EVERY_ROW: Path = ("every",)
#: The path of an `islice` of such an iterator.
NEXT_ROWS: Path = ("next",)
Locals = Mapping[str, Value]


def joined(values: Iterable[Value]) -> Value:
    """What is known if any one of them may be it."""
    first, *rest = values
    for value in rest:
        if value != first:
            first = Value(
                first.atoms | value.atoms,
                first.places | value.places,
                first.path if first.path == value.path else None,
                _joined_items(first.items, value.items),
                first.cells | value.cells,
                first.code if first.code is value.code else None,
                first.constant if first.constant == value.constant else None,
            )
    return first


def _joined_items(items: Atoms | None, others: Atoms | None) -> Atoms | None:
    if items is None and others is None:
        return None
    unknown = OLD_ROWS if items is None or others is None else NOTHING
    return (items or NOTHING) | (others or NOTHING) | unknown


def is_outside(root: Any) -> bool:
    """Is it an object from outside of the function?"""
    return isinstance(root, tuple)


def outlives(place: Place) -> bool:
    """May the object be older than the turn?"""
    return bool(place.age) or is_outside(place.root)


def is_parameter(root: Any) -> bool:
    """Is it an argument of which the object is not known?"""
    return isinstance(root, int) and root < 0


def root_of(path: Path) -> Path:
    """Where the path of something that is stored into begins."""
    while path[0] in ("attribute", "part", "set"):
        path = path[1]
    return path


def value_at(path: Path) -> Atoms:
    return frozenset((Need("value", path),))


def is_demanding(atom: Atom) -> bool:
    """Does it ask for more than that an object stays as it is?"""
    return isinstance(atom, Need) and atom.kind != "value"


def is_reached(path: Path | None) -> bool:
    """Does `path` begin at an object from outside?"""
    while path is not None and path[0] in ("attribute", "part"):
        path = path[1]
    return path is not None and path[0] in ("local", "global", "cell", "import")


def part_of(path: Path | None) -> Path:
    """The path of something in the object at `path`; of a part that part."""
    if path is not None and path[0] == "part":
        return path
    return ("part", path if is_reached(path) else None)


def aged(atoms: Atoms) -> Atoms:
    """`atoms` once the next row was read."""
    if not any(is_of_rows(atom) for atom in atoms):
        return atoms
    return frozenset(atom for atom in atoms if not is_of_rows(atom)) | OLD_ROWS


def is_of_rows(atom: Atom) -> bool:
    return atom != COUNT and not isinstance(atom, Need)


def flushed(atoms: Atoms, name: str) -> Atoms:
    """`atoms` once the buffer `name` was emptied."""
    full = Batch(name, False)
    return atoms - {full} | {Batch(name, True)} if full in atoms else atoms


def beside(atoms: Atoms, control: Atoms) -> Atoms:
    """What `control` adds to `atoms`: not a batch, if the value is made of the same buffer."""
    if not control:
        return control
    names = {atom.name for atom in atoms if isinstance(atom, Batch)}
    return frozenset(atom for atom in control if not (isinstance(atom, Batch) and atom.name in names))
