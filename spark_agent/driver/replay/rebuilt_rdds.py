"""Makes an RDD of the session again by its recipe, with sources of which only some rows are read.

What is made here is no part of the job: no record of it is captured, whatever the program does with it. The
functions of the program run as they are now, or as executors got them. Promises the records that the
operations give of these rows, in partitions that differ only where no operation on the way can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_agent.driver.operation_scope import is_left_out
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.few_partitions import in_few_parts, in_one_partition
from spark_agent.driver.replay.functions_then import FunctionsThen
from spark_agent.driver.replay.restriction import NOT_NAMED, kept, literal, reads_texts
from spark_agent.worker.operators.kept_positions import Keep

if TYPE_CHECKING:
    from spark_agent.driver.session import Session

__all__ = [
    "Choice",
    "Rebuilt",
    "RowsOfSource",
    "SourceRead",
    "operation_by_places",
    "operations_by_places",
    "rebuilt",
]

#: Operations whose outputs depend on the places of records among all others.
_BY_PLACE = frozenset(("randomSplit", "sample", "sampleByKey", "zip", "zipWithIndex", "zipWithUniqueId"))
#: Operations that can tell in which partition a record is, and with which others.
_BY_PARTITION = frozenset(
    ("glom", "mapPartitions", "mapPartitionsWithIndex", "pipe", "repartitionAndSortWithinPartitions")
)


Choice = Callable[[Any], bool]
"""Does it take a record? Executors get it."""


@dataclass(frozen=True)
class RowsOfSource:
    """Which rows of a source are meant: `source` as in a row set, `texts` by partition if they are sure."""

    source: Mapping[str, Any]
    texts: Mapping[str, list[str]] | None = None


@dataclass(frozen=True)
class SourceRead:
    """How a source was read: `literal`, `filter` or `whole`, and why it is read whole."""

    number: int
    name: str
    way: str
    why: str = ""


@dataclass(frozen=True)
class Rebuilt:
    """An RDD that was made again, and how its sources are read."""

    rdd: Any
    sources: tuple[SourceRead, ...]


def operation_by_places(recipe: Recipe) -> str | None:
    """The first operation on the way to an RDD that no part of its rows can repeat; None if all can."""
    return next((step.name for step in operations_by_places(recipe)), None)


def operations_by_places(recipe: Recipe) -> list[Recipe]:
    """All of these, parents first."""
    return [step for step in recipe.lineage() if step.name in _BY_PLACE]


def rebuilt(
    session: Session,
    recipe: Recipe,
    rows: Mapping[int, RowsOfSource],
    *,
    is_without: bool = False,
    keeps_places: bool = False,
    chosen: Mapping[int, Choice] | None = None,
    functions: FunctionsThen | None = None,
    pins: Mapping[int, Callable[[int, Any], Any]] | None = None,
) -> Rebuilt:
    """The RDD of `recipe`, of these rows of its sources, by node. `is_without`: of all but these.

    A source that `rows` does not name is read whole. `keeps_places`: nothing is left out but rows. Of the
    operations that `chosen` names by their nodes, only the records go on that it takes. `functions` of the
    program that have other values now run with those of then. `pins`, by the `id` of an operation's recipe,
    run in the place of operations, and get (partition, records).
    """
    lineage = recipe.lineage()
    sources = [
        _Base(session, step, rows, is_without=is_without) for step in lineage if step.source is not None
    ]
    can_be_compact = not keeps_places and not any(step.name in _BY_PARTITION for step in lineage)
    is_compact = can_be_compact and all(base.read.way == "literal" for base in sources)
    made_of = {id(base.recipe): base.rdd(is_compact=is_compact) for base in sources}
    for step in lineage:
        if step.source is None:
            pin = (pins or {}).get(id(step))
            if pin is None:
                then = {} if functions is None else functions.of(step)
                result = _made(session, step, made_of, then, is_compact=is_compact)
            else:
                result = made_of[id(step.parents[0])].mapPartitionsWithIndex(pin, True)
            choice = (chosen or {}).get(step.number)
            made_of[id(step)] = result if choice is None else result.filter(choice)
    result = made_of[id(recipe)]
    assert is_left_out(result)
    return Rebuilt(result, tuple(base.read for base in sources))


# -- sources -----------------------------------------------------------------------------------------


class _Base:
    """One source, and how it is to be read."""

    def __init__(
        self, session: Session, recipe: Recipe, rows: Mapping[int, RowsOfSource], *, is_without: bool
    ) -> None:
        self.recipe, self._session, self._is_without = recipe, session, is_without
        self._rows = rows.get(recipe.number)
        way, why = self._way()
        self.read = SourceRead(recipe.number, recipe.name, way, why)

    def _way(self) -> tuple[str, str]:
        if self.recipe.why_whole:
            return "whole", self.recipe.why_whole
        if self._rows is None:
            return "whole", "" if self._is_without else NOT_NAMED
        source, texts = self._rows.source, self._rows.texts
        if source["whole"]:
            return "whole", source.get("why") or "all its rows are meant"
        if not self._is_without and texts is not None and reads_texts(self.recipe.source):
            return "literal", ""
        return "filter", ""

    def rdd(self, *, is_compact: bool) -> Any:
        dataset = self.recipe.source
        if self.read.way == "literal":
            result = self._literal(dataset, is_compact=is_compact)
        elif self.read.way == "filter":
            result = kept(dataset, self._keep(), is_text=reads_texts(dataset))
        else:
            result = object.__new__(type(dataset))
            vars(result).update(vars(dataset))
        is_plain = dataset._lineage_node.origins.are_plain
        result._lineage_node = self._session.scope.left_out_source(self.recipe.name, is_plain=is_plain)
        return result

    def _literal(self, dataset: Any, *, is_compact: bool) -> Any:
        texts = self._rows.texts if self._rows is not None else None
        assert texts is not None
        return literal(dataset, *(in_few_parts(texts) if is_compact else (texts, dataset.getNumPartitions())))

    def _keep(self) -> Keep:
        assert self._rows is not None
        positions = {split["split"]: split["positions"] for split in self._rows.source.get("splits", ())}
        return Keep(positions, is_without=self._is_without)


# -- operations ----------------------------------------------------------------------------------------


def _made(
    session: Session,
    recipe: Recipe,
    made_of: Mapping[int, Any],
    then: Mapping[int, Any],
    *,
    is_compact: bool,
) -> Any:
    """The result of the operation, of what its parents were made to. `then`: in the place of arguments."""

    def argument(value: Any) -> Any:
        if isinstance(value, Recipe):
            return made_of[id(value)]
        if isinstance(value, list) and value and isinstance(value[0], Recipe):
            return [argument(one) for one in value]
        return then.get(id(value), value)

    arguments = [argument(value) for value in recipe.arguments]
    keywords = {name: argument(value) for name, value in recipe.keywords.items()}
    if recipe.is_of_context:
        arguments = [session.context, *arguments]
    operation = getattr(type(arguments[0]), recipe.name)
    if is_compact:
        arguments, keywords = in_one_partition(operation, arguments, keywords)
    result = operation(*arguments, **keywords)
    return result if recipe.place is None else result[recipe.place]
