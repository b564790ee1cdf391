"""How-provenance as people see it: an expression over rows of files, and a graph of facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lineage_service.lineage import HowDerivation, HowFact, HowGraph, Record
from lineage_service.tracing.explain.how import UNKNOWN, Expression, Fact, How, Product, Sum
from lineage_service.tracing.query.explained_records import ExplainedRecords
from lineage_service.tracing.walk.result import Position

__all__ = ["shown_how"]

#: Facts that are listed, and rows that an expression names.
MOST_FACTS, MOST_TERMS = 1_000, 200
_CUT = "\N{HORIZONTAL ELLIPSIS}"
_AND, _OR = " \N{MIDDLE DOT} ", " + "


def shown_how(records: ExplainedRecords, derived: How) -> dict[str, Any]:
    """`how` and `how_graph` of an explanation."""
    facts = {fact.number: fact for fact in derived.facts}
    text = _Text(records, facts)
    expressions = "\n".join(map(text.of, derived.expressions))
    listed = dict(list(facts.items())[:MOST_FACTS])
    derivations = [one for one in derived.derivations if {one.fact, *one.inputs} <= listed.keys()]
    nodes = records.opened.graph.topology.nodes
    graph = HowGraph(
        facts=tuple(_facts(records, list(listed.values()))),
        derivations=tuple(
            HowDerivation(
                fact=one.fact, node_id=records.node_id(one.node), name=nodes[one.node].name, inputs=one.inputs
            )
            for one in derivations
        ),
        truncated=derived.is_truncated or text.is_cut or len(derivations) < len(derived.derivations),
    )
    return {"how": expressions, "how_graph": graph}


def _facts(records: ExplainedRecords, facts: Sequence[Fact]) -> Iterator[HowFact]:
    families = records.opened.graph.families
    shown = records.records([fact.position for fact in facts])
    for fact, (position, record) in zip(facts, shown, strict=True):
        first, last = (families.place_of.get(version) for version in fact.versions)
        yield HowFact(
            fact=fact.number,
            node_id=records.node_id(position.node),
            name=records.opened.graph.topology.nodes[position.node].name,
            record=record,
            loop=None if first is None else families.families[first[0]].loop,
            first_turn=None if first is None else first[1],
            last_turn=None if last is None else last[1],
        )


@dataclass
class _Text:
    """Makes texts of expressions, of at most so many rows together."""

    records: ExplainedRecords
    facts: Mapping[int, Fact]
    is_cut: bool = False
    _named: int = 0
    _names: dict[int, str] = field(default_factory=dict)

    def of(self, expression: Expression) -> str:
        rows = list(dict.fromkeys(row for row in _rows(expression) if row in self.facts))[:MOST_TERMS]
        positions = [self.facts[row].position for row in rows]
        self._names = dict(zip(rows, _names(self.records, positions), strict=True))
        return self._text(expression)

    def _text(self, expression: Expression) -> str:
        if isinstance(expression, Sum):
            return _OR.join(self._several(expression.terms))
        if isinstance(expression, Product):
            return _AND.join(
                f"({text})" if isinstance(factor, Sum) and text != _CUT else text
                for factor, text in zip(expression.factors, self._several(expression.factors), strict=False)
            )
        self._named += 1
        if expression == UNKNOWN or self._named > MOST_TERMS or expression not in self._names:
            self.is_cut = True
            return _CUT
        return self._names[expression]

    def _several(self, expressions: Sequence[Expression]) -> Iterator[str]:
        for expression in expressions:
            yield self._text(expression)
            if self._named > MOST_TERMS:
                return


def _rows(expression: Expression) -> Iterator[int]:
    stack = [expression]
    while stack:
        one = stack.pop()
        if isinstance(one, int):
            yield one
        else:
            stack += reversed(one.terms if isinstance(one, Sum) else one.factors)


def _names(records: ExplainedRecords, positions: Sequence[Position]) -> list[str]:
    """`edges.csv:90`, with the whole path where two files have one name; else the record's id."""
    shown = list(records.records(positions))
    paths = {record.source.path for _, record in shown if record.source is not None}
    names = [path.rpartition("/")[2] for path in paths]
    return [_name(records, position, record, names) for position, record in shown]


def _name(records: ExplainedRecords, position: Position, record: Record, names: Sequence[str]) -> str:
    row = record.source
    if row is None:
        return f"{position.node}#{record.record_id}"
    name = row.path.rpartition("/")[2]
    return f"{name if names.count(name) == 1 else row.path}:{row.line}"
