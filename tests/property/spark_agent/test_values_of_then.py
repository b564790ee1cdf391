"""Functions as executors got them: what they give is what they gave then, or nothing is said."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from spark_agent.driver.function_state import states_of
from spark_agent.driver.pickled_chains import PickledChain, PickledFunction
from spark_agent.driver.recipes import Recipe
from spark_agent.driver.replay.functions_then import FunctionsThen
from spark_agent.worker.operators.narrow import Filter, Map
from spark_agent.worker.pipeline import Capture

VALUES = st.recursive(
    st.integers(0, 3) | st.text("ab", max_size=2) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=2),
    max_leaves=5,
)
STEPS = st.lists(st.one_of(st.just("pickle"), VALUES), min_size=1, max_size=7)


def gives(function: Any) -> Any:
    return copy.deepcopy(function(0))


@settings(max_examples=150, deadline=None)
@given(VALUES, STEPS, st.sampled_from(["cell", "class", "inner"]))
def test_what_it_gives_is_what_it_gave_then_or_nothing_is_said(first: Any, steps: Any, kind: str) -> None:
    box = [first]

    class Own:
        value = first

    def inner() -> Any:
        return box[0]

    functions = {
        "cell": lambda _: box[0],
        "class": lambda _: Own.value,
        "inner": lambda _: inner(),
    }
    function = functions[kind]
    recipe = Recipe(
        1, "map", (Recipe(0, "textFile", source=object()), function), states=states_of([function])
    )
    recipe.states = states_of(recipe.used())
    then = []
    for step in steps:
        if step == "pickle":
            chain = (Filter(bool), Map(function))
            data = cloudpickle.dumps((Capture(chain, None), None))
            recipe.note_pickled(PickledFunction(PickledChain(data), 1, chain[1]))
            then.append(gives(function))
        else:
            box[0] = Own.value = step
    now = gives(function)
    functions_of_then = FunctionsThen(recipe)
    changes = list(functions_of_then.changed())
    copies = functions_of_then.of(recipe)
    assert gives(function) == now  # nothing of the program has changed
    if copies:
        assert all(gives(copies[id(function)]) == of_then for of_then in then)
    elif not changes:
        assert all(repr(of_then) == repr(now) for of_then in then)
    else:
        assert not then or any(repr(of_then) != repr(then[0]) for of_then in then)
