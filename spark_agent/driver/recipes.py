"""How the RDDs of a session were made, so that one can be made again of some rows.

A recipe has an operation's name and its arguments, and recipes in the place of RDDs. It keeps no RDD alive
but what is read: a source, or one that was made in a way that is not known. A recipe lives as long as an RDD
that was made by it or of it, with its functions and what these hold, over shuffles, too. Of the files that
were written last, it lives longer, unless it has many steps, or a source has data of the program or is read
whole. Whoever is checkpointed forgets how it was made, as in Spark, which a job that goes on for ever needs.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_agent.driver.function_state import States, changed_since, states_of
from spark_agent.driver.monkeypatch import is_rdd
from spark_agent.driver.nodes import UNNAMED_OPERATION, Node
from spark_agent.driver.pickled_chains import PickledFunction

__all__ = ["MOST_PICKLED", "MOST_SAVED", "Recipe", "Recipes", "recipe_of"]

#: Actions that wrote files, and whose recipes are kept though nothing else is: a function may hold data.
MOST_SAVED = 16
#: Recipes of more steps are kept no longer than their RDDs.
MOST_STEPS = 300
#: Actions whose recipes can be asked for as long as their RDD lives.
MOST_SINKS = 10_000
#: Chains of an operation that were pickled: a loop may make one at each turn of what it reads.
MOST_PICKLED = 8
#: Its operator knows what it counted.
_COUNTING = "zipWithIndex"
_CONTAINERS = (list, dict, set, bytearray)
_OF_DRIVER = "parallelize"
_ELSEWHERE = "it was made in a way that is not known"
_CHECKPOINTED = "it was checkpointed, and how it was made is forgotten then"


@dataclass(eq=False)
class Recipe:
    """How one RDD was made. `number` and `name` are those of its node.

    `source` is what is read, without a recipe; then there are no arguments, and `why_whole` says why rows of
    it cannot be chosen. `place` is that among several results.
    """

    number: int
    name: str
    arguments: Sequence[Any] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    source: Any = None
    why_whole: str = ""
    place: int | None = None
    is_of_context: bool = False  # a method of SparkContext, not of the first argument
    #: What its functions used when it was called; None where nobody looked.
    states: States | None = None
    #: Its operators in the chains that executors got; one more than `MOST_PICKLED` where there were more.
    pickled: list[PickledFunction] = field(default_factory=list)

    @property
    def parents(self) -> list[Recipe]:
        """In the order of the arguments."""
        return list(_recipes_in([*self.arguments, *self.keywords.values()]))

    def changed(self) -> str | None:
        """A name that a function of it uses, whose value is not known to be what it was; None: all are."""
        if self.source is not None:
            return None
        used = self.used()
        if self.states is None:
            return "a function" if any(map(callable, used)) else None
        return changed_since(self.states, used) or None

    def used(self) -> list[Any]:
        """Of its arguments the functions, and what they may change."""
        return _used((*self.arguments, *self.keywords.values()))

    def note_pickled(self, function: PickledFunction) -> None:
        """An operator of it went to executors. Not kept where functions use nothing that may change."""
        if (self.states or self.name == _COUNTING) and len(self.pickled) <= MOST_PICKLED:
            self.pickled.append(function)

    def lineage(self) -> list[Recipe]:
        """This one and all that it is made of, parents first. Each is there once."""
        ordered: list[Recipe] = []
        seen: set[int] = set()
        stack: list[tuple[Recipe, bool]] = [(self, False)]
        while stack:
            recipe, has_parents_before = stack.pop()
            if has_parents_before:
                ordered.append(recipe)
            elif id(recipe) not in seen:
                seen.add(id(recipe))
                stack.append((recipe, True))
                stack.extend((parent, False) for parent in reversed(recipe.parents))
        return ordered


def recipe_of(dataset: Any) -> Recipe | None:
    recipe: Recipe | None = getattr(dataset, "_lineage_recipe", None)
    return recipe


class Recipes:
    """Those of one application. Thread-safe. `has_states`: do they say what functions used?"""

    def __init__(self, *, has_states: bool = False) -> None:
        self._has_states = has_states
        self._by_number: weakref.WeakValueDictionary[int, Recipe] = weakref.WeakValueDictionary()
        self._sinks: OrderedDict[int, weakref.ref[Recipe]] = OrderedDict()
        self._saved: OrderedDict[int, Recipe] = OrderedDict()
        self._lock = threading.Lock()

    # -- what is made ----------------------------------------------------------------------------------

    def add_source(self, dataset: Any) -> None:
        """`dataset` is read from outside of the application, and its node says so."""
        if recipe_of(dataset) is None:
            self._add(dataset, _reading(dataset, ""))

    def add(
        self,
        name: str,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        result: Any,
        *,
        is_of_context: bool = False,
        pickled: Sequence[PickledFunction] = (),
    ) -> None:
        """An operation has given `result`, an RDD or a list of them. The first argument is its own RDD.

        `pickled`: its operators in chains that went to executors before it ended.
        """
        results = list(enumerate(result)) if isinstance(result, list) else [(None, result)]
        for place, dataset in results:
            node: Node | None = getattr(dataset, "_lineage_node", None)
            if node is None or node.is_left_out or recipe_of(dataset) is not None:
                continue
            recipe = Recipe(
                node.number,
                name,
                tuple(map(self._argument, arguments)),
                {key: self._argument(value) for key, value in keywords.items()},
                place=place,
                is_of_context=is_of_context,
                states=states_of(_used((*arguments, *keywords.values()))) if self._has_states else None,
            )
            for function in pickled:
                recipe.note_pickled(function)
            self._add(dataset, recipe)

    def cut(self, dataset: Any) -> None:
        """`dataset` was just checkpointed."""
        recipe = recipe_of(dataset)
        if recipe is not None:
            recipe.source, recipe.why_whole = _without_recipe(dataset), _CHECKPOINTED
            recipe.arguments, recipe.keywords = (), {}
            recipe.pickled.clear()

    def note_pickled(self, node: Node, function: PickledFunction) -> bool:
        """The operator with this node went to executors. False: its operation has not ended."""
        number = node.number if node.operation is None else node.operation
        if number == UNNAMED_OPERATION:
            return False
        recipe = self._by_number.get(number)
        if recipe is not None:
            recipe.note_pickled(function)
        return True

    def add_sink(self, number: int, dataset: Any, *, is_saved: bool = False) -> None:
        """An action with the node `number` takes the records of `dataset`; `is_saved`: into files."""
        recipe = recipe_of(dataset)
        if recipe is None:
            return
        is_kept = is_saved and _is_light(recipe.lineage())
        with self._lock:
            self._sinks[number] = weakref.ref(recipe)
            if len(self._sinks) > MOST_SINKS:
                self._sinks.popitem(last=False)
            if is_kept:
                self._saved[number] = recipe
                if len(self._saved) > MOST_SAVED:
                    self._saved.popitem(last=False)

    def _argument(self, value: Any) -> Any:
        if is_rdd(value):
            return self._of_argument(value)
        if isinstance(value, (list, tuple)) and any(map(is_rdd, value)):
            return [self._argument(one) for one in value]
        return value

    def _of_argument(self, dataset: Any) -> Recipe:
        recipe = recipe_of(dataset)
        if recipe is None:
            recipe = _reading(dataset, _ELSEWHERE)
            self._add(dataset, recipe)
        return recipe

    def _add(self, dataset: Any, recipe: Recipe) -> None:
        dataset._lineage_recipe = recipe
        self._by_number[recipe.number] = recipe

    # -- what is asked ---------------------------------------------------------------------------------

    def of(self, number: int) -> Recipe | None:
        """Of the RDD with this node, or of the RDD that this action read. None: it is not there any more."""
        sink = self._sinks.get(number)
        return self._by_number.get(number) if sink is None else sink()

    def __len__(self) -> int:
        """How many are alive."""
        return len(self._by_number)


def _used(values: Sequence[Any]) -> list[Any]:
    """The functions among them, and containers, such as the value that a fold begins with."""
    return [value for value in values if callable(value) or _is_plain_container(value)]


def _is_plain_container(value: Any) -> bool:
    """Is it a container, and not one of RDDs or their recipes?"""
    if not isinstance(value, _CONTAINERS):
        return False
    return not any(isinstance(one, Recipe) or is_rdd(one) for one in value)


def _reading(dataset: Any, why_whole: str) -> Recipe:
    node = dataset._lineage_node
    return Recipe(node.number, node.name, source=_without_recipe(dataset), why_whole=why_whole)


def _is_light(lineage: Sequence[Recipe]) -> bool:
    """Not if it is long, or the rows of a source may be in the driver's memory or stored by executors."""
    sources = [step for step in lineage if step.source is not None]
    has_data = any(step.name == _OF_DRIVER or step.why_whole for step in sources)
    return len(lineage) <= MOST_STEPS and not has_data


def _without_recipe(dataset: Any) -> Any:
    """The same RDD as another object: a recipe that held the object itself would keep itself alive."""
    same = object.__new__(type(dataset))
    vars(same).update(vars(dataset))
    vars(same).pop("_lineage_recipe", None)
    return same


def _recipes_in(values: Sequence[Any]) -> Iterator[Recipe]:
    for value in values:
        if isinstance(value, Recipe):
            yield value
        elif isinstance(value, list) and value and isinstance(value[0], Recipe):
            yield from _recipes_in(value)
