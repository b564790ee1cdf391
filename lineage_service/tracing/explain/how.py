"""How-provenance: which input rows gave a record together, and which others would have given it, too.

After Green, Karvounarakis and Tannen, "Provenance Semirings" (PODS 2007), with a row once however often it is
used, and without alternatives that hold another one. Records of the turns of a loop that are the same are one
fact. An alternative that needs its own fact gives nothing new and is left out. A fact is derived by what was
there when it was used, so each alternative alone gives the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lineage_service.tracing.columns.snapshot import Snapshot
from lineage_service.tracing.explain.derivations import Derivations
from lineage_service.tracing.walk.result import Position

__all__ = ["UNKNOWN", "Derivation", "Expression", "Fact", "How", "Product", "Sum", "how"]

#: Records that are looked at for expressions, and of one way from a record to a row.
MOST_VISITS, MOST_DEEP = 20_000, 250
#: Stands for what was not derived any more.
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Product:
    """All of these together."""

    factors: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """Any one of these."""

    terms: tuple[Expression, ...]


Expression = int | Product | Sum
"""A fact that is a row or not derived, or UNKNOWN; or what was made of several."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A record, or the same one in several turns. `versions`: the first and last node of these."""

    number: int
    position: Position  # the first one
    versions: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Derivation:
    """An operation, a node, that gave a fact of others together."""

    fact: int
    node: int
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class How:
    """`expressions`: of each start. Facts by number."""

    expressions: tuple[Expression, ...]
    facts: tuple[Fact, ...]
    derivations: tuple[Derivation, ...]
    is_truncated: bool
    is_exact: bool

    def fact(self, number: int) -> Fact:
        return next(fact for fact in self.facts if fact.number == number)


def how(snapshot: Snapshot, starts: Sequence[Position], check: Callable[[], None]) -> How:
    """`check` is called now and then, and ends it by what it raises."""
    derived = Derivations(snapshot, starts, check)
    facts = _Facts(snapshot, derived)
    expressions = tuple(facts.expression(start) for start in dict.fromkeys(derived.starts))
    shown, derivations = facts.graph()
    return How(
        expressions=expressions,
        facts=tuple(shown),
        derivations=tuple(derivations),
        is_truncated=derived.is_truncated or facts.is_cut,
        is_exact=derived.is_exact,
    )


class _Facts:
    def __init__(self, snapshot: Snapshot, derived: Derivations) -> None:
        self.is_cut = False
        self._snapshot, self._derived = snapshot, derived
        self._visits = 0
        self._first: dict[int, int] = {}
        for number in range(len(derived.records)):
            self._first_of(number)

    def _first_of(self, number: int) -> int:
        """The record that began to be the same: the number of the fact."""
        chain = [number]
        while chain[-1] in self._derived.same and chain[-1] not in self._first:
            chain.append(self._derived.same[chain[-1]])
        first = self._first.get(chain[-1], chain[-1])
        self._first |= dict.fromkeys(chain, first)
        return first

    def _same(self, number: int) -> Iterator[int]:
        """The record, and those of the turns before that are the same."""
        yield number
        while number in self._derived.same:
            number = self._derived.same[number]
            yield number

    # -- expressions -----------------------------------------------------------------------------------

    def expression(self, number: int) -> Expression:
        expression = self._expression(number, frozenset(), 0)
        return UNKNOWN if expression is None else expression

    def _expression(self, number: int, above: frozenset[int], depth: int) -> Expression | None:
        """None: it needs a fact above."""
        made_of = self._derived.made_of
        while True:  # past what only passes a record on
            fact = self._first[number]
            if fact in above:
                return None
            derivations = made_of.get(number, [])
            if number in self._derived.same or len(derivations) != 1 or len(derivations[0]) != 1:
                break
            [[number]] = derivations
        self._visits += 1
        if self._visits > MOST_VISITS or depth > MOST_DEEP:
            self.is_cut = True
            return UNKNOWN
        terms: dict[Expression, None] = {}
        for record in self._same(number):
            if record not in made_of:
                terms[self._leaf(record)] = None
            for derivation in made_of.get(record, ()):
                factors = []
                for factor in derivation:
                    expression = self._expression(factor, above | {fact}, depth + 1)
                    if expression is None:
                        break
                    factors.append(expression)
                else:
                    terms[_product(factors)] = None
        return _sum(list(terms)) if terms else None

    def _leaf(self, record: int) -> Expression:
        node = self._snapshot.graph.topology.nodes[self._derived.records[record].node]
        return record if node.kind == "source" or not self._derived.is_truncated else UNKNOWN

    # -- the graph -------------------------------------------------------------------------------------

    def graph(self) -> tuple[list[Fact], list[Derivation]]:
        """Facts of public nodes, and of those where there are alternatives."""
        shown: dict[int, list[int]] = {}
        derivations: dict[Derivation, None] = {}
        stack = [number for start in self._derived.starts for number in self._same(start)]
        seen = set(stack)
        while stack:
            number = stack.pop()
            fact, record = self._first[number], self._derived.records[number]
            shown.setdefault(fact, []).append(record.node)
            for derivation in self._derived.made_of.get(number, ()):
                inputs = list(dict.fromkeys(self._shown(derivation)))
                numbers = tuple(dict.fromkeys(self._first[one] for one in inputs))
                if fact not in numbers:
                    derivations[Derivation(fact, record.node, numbers)] = None
                new = [other for one in inputs for other in self._same(one) if other not in seen]
                seen.update(new)
                stack += new
        facts = [
            Fact(number, self._derived.records[number], (min(nodes), max(nodes)))
            for number, nodes in sorted(shown.items())
        ]
        return facts, sorted(derivations, key=lambda one: (one.fact, one.node, one.inputs))

    def _shown(self, numbers: Sequence[int]) -> Iterator[int]:
        """These records, or what those were made of that users do not see."""
        stack = list(reversed(numbers))
        while stack:
            number = stack.pop()
            node = self._snapshot.graph.topology.nodes[self._derived.records[number].node]
            derivations = self._derived.made_of.get(number, [])
            if node.is_public or len(derivations) != 1:
                yield number
            else:
                stack += reversed(derivations[0])


def _product(factors: Sequence[Expression]) -> Expression:
    flat: dict[Expression, None] = {}
    for factor in factors:
        flat |= dict.fromkeys(factor.factors if isinstance(factor, Product) else (factor,))
    return next(iter(flat)) if len(flat) == 1 else Product(tuple(flat))


def _sum(terms: Sequence[Expression]) -> Expression:
    flat: dict[Expression, None] = {}
    for term in terms:
        flat |= dict.fromkeys(term.terms if isinstance(term, Sum) else (term,))
    rows_of = [(term, _rows(term)) for term in flat]
    left: dict[Expression, None] = {}
    seen: set[frozenset[int]] = set()
    for term, rows in rows_of:
        if rows is None:
            left[term] = None
        elif rows not in seen and not any(other is not None and other < rows for _, other in rows_of):
            seen.add(rows)
            left[term] = None
    return next(iter(left)) if len(left) == 1 else Sum(tuple(left))


def _rows(term: Expression) -> frozenset[int] | None:
    """The rows of a product of rows alone."""
    factors = term.factors if isinstance(term, Product) else (term,)
    rows = frozenset(factor for factor in factors if isinstance(factor, int) and factor != UNKNOWN)
    return rows if len(rows) == len(factors) else None
