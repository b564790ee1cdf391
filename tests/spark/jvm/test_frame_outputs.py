"""Frames turned round: of each row, the outputs in whose frames it is. Against a loop over both."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from spark_agent.sql import jvm_gateway

_CLASS = "lineagemaster.capture.FrameOutputs"


class Sink:
    """What was given: (row, output)."""

    def __init__(self) -> None:
        self.given: list[tuple[int, int]] = []

    def put(self, row: int, output: int, count: int) -> None:
        assert count > 0
        self.given += [(row, output + more) for more in range(count)]

    class Java:
        implements = (f"{_CLASS}$Sink",)


@pytest.fixture(scope="module")
def context() -> Iterator[SparkContext]:
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    ensure_callback_server_started(session.sparkContext._gateway)
    yield session.sparkContext
    session.stop()


@pytest.fixture(scope="module")
def frame_outputs(jar: Path, context: SparkContext) -> Any:
    jvm_gateway.load(context)
    jvm: Any = context._jvm
    jvm.java.lang.Class.forName(_CLASS, True, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    return jvm.lineagemaster.capture.FrameOutputs


def frames(chance: random.Random, size: int) -> list[tuple[int, int]]:
    """(first row, last row) of each output: neither falls, and a frame may be empty."""
    if chance.random() < 0.5:
        start, end = sorted(chance.randint(-12, 12) for _ in range(2))
        return [
            (min(max(output + start, 1), size + 1), max(min(output + end, size), 0))
            for output in range(1, size + 1)
        ]
    first, last, found = 1, 0, []
    for _ in range(size):
        last = min(size, last + chance.randint(0, 3))
        first = min(last + 1, first + chance.randint(0, 3))
        found.append((first, last))
    return found


@pytest.mark.parametrize("most", [3, 1 << 20])
def test_each_row_has_the_outputs_in_whose_frames_it_is(most: int, frame_outputs: Any) -> None:
    chance = random.Random(most)
    for _ in range(150):
        size = chance.randint(1, 25)
        wanted = frames(chance, size)
        is_unbounded = chance.random() < 0.3
        if is_unbounded:
            wanted = [(1, last) for _, last in wanted]
        last_output = chance.choice([size, size, chance.randint(1, size)])
        sink = Sink()
        outputs = frame_outputs(is_unbounded, size, most, sink)
        for output, (first, last) in enumerate(wanted[:last_output], 1):
            outputs.add(output, first, last)
        outputs.end(last_output)
        given = [(row, output) for row, output in sink.given if output <= last_output]
        assert len(set(given)) == len(given)
        assert set(given) == {
            (row, output)
            for output, (first, last) in enumerate(wanted[:last_output], 1)
            for row in range(first, last + 1)
        }


def test_a_frame_that_goes_back_is_refused(frame_outputs: Any) -> None:
    outputs = frame_outputs(False, 9, 9, Sink())
    outputs.add(1, 3, 4)
    with pytest.raises(Exception, match="behind one from 3"):
        outputs.add(2, 2, 4)
