"""Laws of replays: a replay of some rows gives what these rows give, whichever way its sources are read.

The other side is the naive interpreter, or unmodified PySpark on an edited copy of the inputs.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.lanes import selected
from tests.support.spark import naive_interpreter as naive
from tests.support.spark import replayed_program
from tests.support.spark.naive_interpreter import Data
from tests.support.spark.pipelines import AWKWARD, pair, show, write
from tests.support.spark.replayed_program import ALL, BY_PLACES, PARTITIONS
from tests.support.spark.replays import (
    Replayed,
    Source,
    replaced_source,
    replay,
    run_program,
    site_of,
    text_source,
    texts_in,
)

pytestmark = pytest.mark.thorough

PROGRAM = Path(replayed_program.__file__)
#: Nobody takes the lineage of these runs: so it is let go of at once.
CONF = {"spark.lineage.kafka.bootstrap.servers": "127.0.0.1:1", "spark.lineage.delivery.timeout": "0"}
STOCK = {"spark.lineage.enabled": "false"}
BY_ROWS = {name: ALL[name] for name in ALL if name not in BY_PLACES}
Rows = dict[str, set[int]]


@dataclass(frozen=True)
class World:
    folder: Path
    names: tuple[str, ...]
    outputs: dict[str, Counter[str]]

    def lines(self, name: str) -> list[str]:
        return (self.folder / f"{name}.txt").read_text("utf-8").splitlines()

    def output(self, name: str) -> Path:
        return self.folder / f"out-{list(ALL).index(name)}"

    def source(self, node: int, name: str, rows: set[int], *, is_literal: bool) -> Source:
        path = self.folder / f"{name}.txt"
        site = site_of(PROGRAM, f'"{name}.txt"')
        return text_source(node, site, path, PARTITIONS[name], rows, is_literal=is_literal)

    def replay(self, sandbox: Path, mode: str, sources: list[Source]) -> Replayed:
        replayed = replay([str(PROGRAM), str(self.folder), *self.names], sandbox, mode, sources, CONF)
        assert replayed.process.returncode == 0, replayed.process.stderr
        assert replayed.report["differences"] == []
        return replayed

    def expected(self, name: str, rows: Rows) -> Counter[str]:
        """What a pipeline gives of these rows, by the naive interpreter."""
        data: list[Data] = []
        for side in ("left", "right"):
            lines = naive.text_file(self.folder / f"{side}.txt")
            meant = [(text, of) for text, of in lines if text and any(row in rows[side] for _, row in of)]
            data.append(naive.map_(meant, pair))
        return Counter(show(value) for value, _ in ALL[name][1](*data))


def write_inputs(folder: Path) -> None:
    write(folder / "left.txt", [f"{AWKWARD[i % 7]}|{i % 11}" for i in range(60)])
    write(folder / "right.txt", [f"{AWKWARD[i % 10]}|{i}" for i in range(3, 33)])


def stock(folder: Path, names: tuple[str, ...]) -> dict[str, Counter[str]]:
    ended = run_program([str(PROGRAM), str(folder), *names], STOCK)
    assert ended.returncode == 0, ended.stderr
    return {name: texts_in(folder / f"out-{list(ALL).index(name)}") for name in names}


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    folder, names = tmp_path_factory.mktemp("data"), tuple(selected(request, BY_ROWS))
    write_inputs(folder)
    return World(folder, names, stock(folder, names))


@pytest.fixture(scope="module", params=["literal", "filter", "mixed"])
def only(
    request: pytest.FixtureRequest, world: World, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Replayed, Rows]:
    chance = random.Random(request.param)
    rows = {
        side: {row for row in range(len(world.lines(side))) if chance.random() < 0.3} for side in PARTITIONS
    }
    rows["left"].add(0)
    ways = {"literal": (True, True), "filter": (False, False), "mixed": (False, True)}[request.param]
    sources = [
        world.source(node, side, rows[side], is_literal=is_literal)
        for node, (side, is_literal) in enumerate(zip(PARTITIONS, ways, strict=True))
    ]
    replayed = world.replay(tmp_path_factory.mktemp("home") / request.param, "only", sources)
    assert replayed.ways() == {at: "literal" if way else "filter" for at, way in enumerate(ways)}
    return replayed, rows


@pytest.mark.parametrize("name", BY_ROWS)
def test_only_some_rows(name: str, world: World, only: tuple[Replayed, Rows]) -> None:
    replayed, rows = only
    assert replayed.texts(world.output(name)) == world.expected(name, rows)


def test_all_rows_give_the_original_again(world: World, tmp_path: Path) -> None:
    replayed = world.replay(tmp_path / "r", "all", [])
    assert {name: replayed.texts(world.output(name)) for name in world.names} == world.outputs


def test_without_some_rows_is_the_edited_input(world: World, tmp_path: Path) -> None:
    rows = {"left": {2, 5, 7, 30}, "right": {0, 9}}
    sources = [world.source(node, side, rows[side], is_literal=False) for node, side in enumerate(PARTITIONS)]
    replayed = world.replay(tmp_path / "r", "without", sources)
    edited = tmp_path / "edited"
    edited.mkdir()
    for side in PARTITIONS:
        write(
            edited / f"{side}.txt",
            [text for row, text in enumerate(world.lines(side)) if row not in rows[side]],
        )
    assert {name: replayed.texts(world.output(name)) for name in world.names} == stock(edited, world.names)


def test_replaced_texts_are_the_edited_input(world: World, tmp_path: Path) -> None:
    texts = {0: "new|5", 11: "|0", 40: "ünïcödé|7"}
    path = world.folder / "left.txt"
    source = replaced_source(0, site_of(PROGRAM, '"left.txt"'), path, PARTITIONS["left"], texts)
    replayed = world.replay(tmp_path / "r", "replace", [source])
    edited = tmp_path / "edited"
    edited.mkdir()
    write(edited / "left.txt", [texts.get(row, text) for row, text in enumerate(world.lines("left"))])
    write(edited / "right.txt", world.lines("right"))
    assert {name: replayed.texts(world.output(name)) for name in world.names} == stock(edited, world.names)
