"""How RDDs were made, without Spark: of stand-ins for RDDs, whose nodes are real."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from spark_agent.driver.monkeypatch import rdd_module
from spark_agent.driver.nodes import Node
from spark_agent.driver.recipes import MOST_SAVED, MOST_STEPS, Recipes, recipe_of


def dataset(number: int, name: str = "map", **node: Any) -> Any:
    rdd = object.__new__(rdd_module().RDD)
    rdd._lineage_node = Node(number, name, **node)
    return rdd


class Job:
    """Makes RDDs, and counts them."""

    def __init__(self) -> None:
        self.recipes, self.made = Recipes(), 0

    def source(self, name: str = "textFile") -> Any:
        self.made += 1
        rdd = dataset(self.made, name, kind="source")
        self.recipes.add_source(rdd)
        return rdd

    def made_of(self, *inputs: Any, name: str = "map") -> Any:
        self.made += 1
        rdd = dataset(self.made, name)
        self.recipes.add(name, (*inputs, len), {}, rdd)
        return rdd


def test_a_recipe_leads_back_to_what_was_read() -> None:
    job = Job()
    left, right = job.source(), job.source()
    joined = job.made_of(job.made_of(left), right, name="join")
    recipe = recipe_of(job.made_of(joined, joined, name="union"))
    assert recipe is not None
    assert [made.name for made in recipe.lineage()] == ["textFile", "map", "textFile", "join", "union"]
    assert [made.number for made in recipe.parents] == [joined._lineage_node.number] * 2
    assert job.recipes.of(joined._lineage_node.number) is recipe.parents[0]


def test_it_lives_as_long_as_an_rdd_that_was_made_of_it() -> None:
    job = Job()
    source = job.source()
    middle = job.made_of(source)
    number = middle._lineage_node.number
    last = job.made_of(middle)
    del middle
    assert job.recipes.of(number) is not None
    assert len(job.recipes) == 3
    del last
    gc.collect()
    assert job.recipes.of(number) is None
    assert len(job.recipes) == 1


def test_an_rdd_is_let_go_of_at_once() -> None:
    job = Job()
    gc.disable()
    try:
        job.made_of(job.source())
        assert len(job.recipes) == 0
    finally:
        gc.enable()


def test_of_what_was_written_last_it_lives_longer() -> None:
    job = Job()
    source = job.source()
    for sink in range(1_000, 1_000 + 3 * MOST_SAVED):
        job.recipes.add_sink(sink, job.made_of(source), is_saved=sink % 2 == 0)
    gc.collect()
    kept = [sink for sink in range(1_000, 1_000 + 3 * MOST_SAVED) if job.recipes.of(sink) is not None]
    assert kept == [sink for sink in range(1_000 + MOST_SAVED, 1_000 + 3 * MOST_SAVED) if sink % 2 == 0]
    assert len(job.recipes) == MOST_SAVED + 1


def test_a_loop_that_checkpoints_keeps_nothing_of_its_turns() -> None:
    job = Job()
    data, state = job.source(), job.source()
    for _ in range(200):
        state = job.made_of(job.made_of(state, data, name="join"))
        job.recipes.cut(state)
    gc.collect()
    assert len(job.recipes) == 2
    recipe = recipe_of(state)
    assert recipe is not None
    assert "checkpointed" in recipe.why_whole
    assert recipe_of(recipe.source) is None


def test_a_long_chain_is_walked_and_freed() -> None:
    job = Job()
    state = job.source()
    for _ in range(50_000):
        state = job.made_of(state)
    recipe = recipe_of(state)
    assert recipe is not None
    assert len(recipe.lineage()) == 50_001
    del recipe, state
    gc.collect()
    assert len(job.recipes) == 0


def test_what_was_made_elsewhere_is_read_whole() -> None:
    job, stranger = Job(), dataset(77, "rdd")
    recipe = recipe_of(job.made_of(stranger))
    assert recipe is not None
    (parent,) = recipe.parents
    assert (parent.number, parent.name) == (77, "rdd")
    assert "not known" in parent.why_whole
    assert recipe_of(stranger) is parent


def test_each_of_several_results_knows_its_place() -> None:
    job = Job()
    parts = [dataset(number, "randomSplit") for number in (50, 51)]
    job.recipes.add("randomSplit", (job.source(), [0.5, 0.5]), {"seed": 1}, parts)
    recipes = [recipe_of(part) for part in parts]
    assert [recipe and recipe.place for recipe in recipes] == [0, 1]
    assert [recipe and dict(recipe.keywords) for recipe in recipes] == [{"seed": 1}] * 2


@pytest.mark.parametrize("lists", [list, tuple])
def test_rdds_in_a_list_are_inputs(lists: Any) -> None:
    job = Job()
    sources = [job.source(), job.source()]
    union = dataset(90, "union")
    job.recipes.add("union", (lists(sources),), {}, union, is_of_context=True)
    recipe = recipe_of(union)
    assert recipe is not None
    assert [parent.number for parent in recipe.parents] == [1, 2]


def test_what_a_replay_makes_has_no_recipe() -> None:
    job = Job()
    left_out = dataset(-3, "map", is_left_out=True)
    job.recipes.add("map", (job.source(), len), {}, left_out)
    assert recipe_of(left_out) is None


@pytest.mark.parametrize("steps", [1, MOST_STEPS])
@pytest.mark.parametrize("name", ["textFile", "parallelize", "rdd"])
def test_what_was_written_is_kept_if_it_holds_no_data_and_has_few_steps(name: str, steps: int) -> None:
    job = Job()
    rdd = dataset(70_000, name) if name == "rdd" else job.source(name)
    for _ in range(steps):
        rdd = job.made_of(rdd)
    job.recipes.add_sink(1_000, rdd, is_saved=True)
    del rdd
    gc.collect()
    assert (job.recipes.of(1_000) is not None) is (name == "textFile" and steps == 1)
