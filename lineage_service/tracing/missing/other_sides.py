"""The rows of the other side of a join that a row may have met, computed again from the files of that side.

They are followed from their scan to the join, past the operators between. What cannot be followed leaves the
join undecided, and says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic

from lineage_service.evaluation.expressions import Columns, Expression, equalities, evaluated
from lineage_service.evaluation.joins import OtherRow
from lineage_service.evaluation.steps import Step, arrived, scan_columns
from lineage_service.evaluation.values import INTEGERS, Unknown, Value
from lineage_service.tracing.files.decompression import Check
from lineage_service.tracing.files.file_parts import LINES, PARQUET, format_of
from lineage_service.tracing.files.file_systems import UnreadableError
from lineage_service.tracing.files.scan_rows import ScanRows
from lineage_service.tracing.model.elements import TopologyNode
from spark_agent import contract

__all__ = ["OtherSides", "may_skip"]

Nodes = Mapping[int, TopologyNode]
#: Rows of a side that are computed again.
MOST_ROWS = 50_000
#: For the sides of one query: an answer without them is better than none.
MOST_SECONDS = 5.0
_ROWS_AT_ONCE = 256
_MOST_LEAVES = 8
_EQUAL = frozenset((*INTEGERS, "string", "date"))
#: Operators that make rows of rows alone, each of one at least.
_MADE_OF_ROWS = frozenset(
    (
        *("Project", "Filter", "Join", "Union", "Sort", "Generate", "Sample", "TypedFilter", "SubqueryAlias"),
        *("View", "ResolvedHint", "Repartition", "RepartitionByExpression", "RebalancePartitions", "Window"),
        *("BatchEvalPython", "ArrowEvalPython", "GlobalLimit", "LocalLimit", "Offset", "Tail", "LimitAll"),
        "WindowGroupLimit",
    )
)
#: Join -> the inputs of which each row that it gives is made of a row. Of others that is not known.
_IN_ALL = {
    **{"Inner": (0, 1), "Cross": (0, 1), "LeftSemi": (0, 1), "LeftOuter": (0,), "LeftSingle": (0,)},
    **{"LeftAnti": (0,), "RightOuter": (1,)},
}


def may_skip(scan: TopologyNode) -> bool:
    """Was Spark told to skip what it could not read?"""
    options = (scan.expressions or {}).get("options") or {}
    return str(options.get("ignoreCorruptFiles", "")) == "true"


class OtherSides:
    """Of one query; what was read of a file is kept for its next rows."""

    def __init__(self, nodes: Nodes, rows: ScanRows, ended: int | None, check: Check) -> None:
        self._nodes, self._rows, self._ended, self._check = nodes, rows, ended, check
        self._read: dict[object, list[OtherRow] | Unknown] = {}
        self._seconds_left = MOST_SECONDS

    def of(self, join: TopologyNode, port: int) -> _JoinSide | None:
        """The input of a join that is not `port`."""
        if join.name != "Join" or len(join.parents) != 2:
            return None
        leaves = islice(_leaves(self._nodes, join.parents[1 - port], ()), _MOST_LEAVES + 1)
        return _JoinSide(self, (join.number, port), tuple(leaves))

    def arrived(
        self,
        place: tuple[int, int],
        leaf: _Leaf,
        ids: Sequence[int],
        read: set[int],
        keys: Mapping[str, Value],
    ) -> list[OtherRow] | Unknown:
        """The rows of a leaf as they come to a join. `ids` are those of the columns of its scan."""
        scan = leaf.node
        if scan.kind != "source" or format_of(scan) not in (*LINES, PARQUET) or may_skip(scan):
            return Unknown(f"{scan.name} is not read again here")
        if not scan.partitions:  # no ids of its rows were written down
            return Unknown(f"which files {scan.name} has read is not known")
        keys = {} if format_of(scan) in LINES else keys
        name = place, scan.number, leaf.ports, *ids, *sorted(map(str, keys.items()))
        if name not in self._read:
            self._read[name] = self._some(leaf, ids, read, keys)
        return self._read[name]

    def _some(
        self, leaf: _Leaf, ids: Sequence[int], read: set[int], keys: Mapping[str, Value]
    ) -> list[OtherRow] | Unknown:
        names = [column.name for column in leaf.node.schema]
        names_read = {name for number, name in zip(ids, names, strict=False) if number in read}
        rows: list[OtherRow] = []
        until = monotonic() + self._seconds_left

        def check() -> None:
            self._check()
            if monotonic() > until:
                raise UnreadableError("its files take too long to read")

        try:
            every = self._rows.every(leaf.node, names_read, keys, self._ended, check)
            for at, values in enumerate(every):
                if at % _ROWS_AT_ONCE == 0:
                    check()
                if at == MOST_ROWS:
                    return Unknown(f"it has more than {MOST_ROWS:,} rows")
                (columns,) = scan_columns({"columns": [ids]}, names, values)
                came = arrived(leaf.steps, columns)
                if came.has_come is not False:
                    rows.append(OtherRow(came.columns, is_sure=came.has_come is True))
        except UnreadableError as error:
            return Unknown(str(error))
        finally:
            self._seconds_left = until - monotonic()
        return rows


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Where rows of a side come from, and the operators up to the join."""

    node: TopologyNode
    steps: tuple[Step, ...]

    @property
    def ports(self) -> tuple[int, ...]:
        """The inputs by which its rows come: a scan may stand in a side more than once."""
        return tuple(step.port for step in self.steps)

    def scanned(self, columns: Columns) -> list[Sequence[int]]:
        """The columns of its scan, for each time that this may stand here: not where the row is from."""
        every = (self.node.expressions or {}).get("columns", ())
        return [ids for ids in every if not columns.keys() & set(ids)]

    @property
    def defined(self) -> set[int]:
        """The columns that its operators make, perhaps anew under the number of one of the scan."""
        return {one["column"] for step in self.steps for one in (step.expressions or {}).get("defined", ())}


def _leaves(nodes: Nodes, number: int, above: tuple[Step, ...]) -> Iterator[_Leaf]:
    node = nodes[number]
    if node.relation != contract.CARRIED or not node.parents:
        yield _Leaf(node, above)
        return
    for port, parent in enumerate(node.parents):
        yield from _leaves(nodes, parent, (Step(node.name, node.expressions, port), *above))


@dataclass(frozen=True, slots=True)
class _JoinSide:
    """An `OtherSide`."""

    sides: OtherSides
    place: tuple[int, int]
    leaves: tuple[_Leaf, ...]

    def rows(self, condition: Expression, columns: Columns) -> list[OtherRow] | Unknown:
        others = _columns_read(condition) - columns.keys()
        chosen = self._chosen(others, condition, columns)
        if isinstance(chosen, Unknown):
            return chosen
        rows: list[OtherRow] = []
        for leaf in chosen:
            some = self._of_leaf(leaf, condition, columns, others)
            if isinstance(some, Unknown):
                return some
            rows += some
        return rows

    def _chosen(self, others: set[int], condition: Expression, columns: Columns) -> list[_Leaf] | Unknown:
        """Leaves of which each row of the side that the condition holds of is made of one row at least."""
        if len(self.leaves) > _MOST_LEAVES:
            return Unknown("it is made of many inputs")
        steps = [step for leaf in self.leaves for step in leaf.steps]
        unlike = next((step.name for step in steps if not _is_made_of_rows(step)), None)
        if unlike is not None:
            return Unknown(f"{unlike} is not computed again here")
        names = {step.name for step in steps}
        if "Join" not in names:
            return list(self.leaves)
        if "Union" in names:
            return Unknown("it is made of joins and unions")
        # A row of the side that is made of no row of a leaf has null in its columns, which equals nothing.
        asked = _asked(condition)
        giving = []
        for leaf in self.leaves:
            scanned = {number for ids in leaf.scanned(columns) for number in ids}
            is_asked = asked & (scanned - leaf.defined)
            if is_asked or (others & (scanned | leaf.defined) and _is_in_all(leaf)):
                giving.append(leaf)
        return giving[:1] or Unknown("where its key comes from is not followed")

    def _of_leaf(
        self, leaf: _Leaf, condition: Expression, columns: Columns, others: set[int]
    ) -> list[OtherRow] | Unknown:
        scan, standing = leaf.node, leaf.scanned(columns)
        if len(standing) != 1:
            return Unknown(f"{scan.name} is not read again here")
        (ids,) = standing
        read = {number for step in leaf.steps for number in _columns_of(step)} | others
        names = [column.name for column in scan.schema]
        keys, by_id = _keys(condition, columns), dict(zip(ids, names, strict=False))
        in_scan = {
            by_id[number]: key for number, key in keys.items() if number in by_id.keys() - leaf.defined
        }
        rows = self.sides.arrived(self.place, leaf, ids, read, in_scan)
        return rows if isinstance(rows, Unknown) else [row for row in rows if not _has_others(row, keys)]


def _is_made_of_rows(step: Step) -> bool:
    """An aggregate without keys has a row of no rows, too."""
    return step.name in _MADE_OF_ROWS or bool(
        step.name == "Aggregate" and (step.expressions or {}).get("keys")
    )


def _is_in_all(leaf: _Leaf) -> bool:
    """Is each row of the side made of a row of it?"""
    return not any(
        step.port not in _IN_ALL.get((step.expressions or {}).get("join", ""), ())
        for step in leaf.steps
        if step.name == "Join"
    )


def _asked(condition: Expression) -> set[int]:
    """Columns that must equal something, and so are not null."""
    return {asked["column"] for _, asked in equalities(condition, "EqualTo") if "column" in asked}


def _keys(condition: Expression, columns: Columns) -> dict[int, Value]:
    """Columns of the other side that must have these values, of types that have one equality."""
    keys: dict[int, Value] = {}
    for own, asked in equalities(condition, "EqualTo"):
        value = evaluated(own, columns)
        is_plain = isinstance(value, Value) and value.type in _EQUAL and value.data is not None
        if isinstance(value, Value) and is_plain and "column" in asked:
            keys[asked["column"]] = value
    return keys


def _has_others(row: OtherRow, keys: Mapping[int, Value]) -> bool:
    """Has it surely another key?"""
    for number, key in keys.items():
        value = row.columns.get(number)
        if isinstance(value, Value) and value.type == key.type and value.data != key.data:
            return True
    return False


def _columns_of(step: Step) -> set[int]:
    """The columns that an operator reads."""
    expressions = step.expressions or {}
    read: set[int] = set()
    for expression in (expressions.get("condition"), *expressions.get("keys", ())):
        read |= _columns_read(expression or {})
    for defined in expressions.get("defined", ()):
        read |= _columns_read(defined["as"])
    for ids in expressions.get("inputs", ()):
        read |= set(ids)
    return read


def _columns_read(expression: Expression) -> set[int]:
    if "column" in expression:
        return {expression["column"]}
    return {number for part in expression.get("inputs", ()) for number in _columns_read(part)}
