"""The operators that replace PySpark's own while lineage is on: same records, plus positions.

Each is a picklable callable `(split, records) -> records` that fuses the user's function with the capture
of how its outputs relate to its inputs. `node` is set by the driver when the operator joins a chain. Without
a run (a suppressed job) each does the plain thing. Nothing is read ahead through a user function.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from inspect import getgeneratorlocals
from itertools import chain, compress, count, islice, repeat
from typing import Any, NoReturn

from spark_agent import contract
from spark_agent.worker import derived_values, task_run
from spark_agent.worker.operator import Operator
from spark_agent.worker.position_streams import CHUNK, FOREVER, Counter, Stream, last_read, restarting

#: So many records of a split are let go of before what was made of them goes on: where records are large
#: (whole files, say), there are few, and a chain may not hold one at each of its operators. For all it costs.
FEW = 1_000


def report(error: StopIteration) -> NoReturn:
    """Raise what PySpark raises for a StopIteration out of a user function; its type differs by version."""
    from pyspark.util import fail_on_stopiteration

    def raises() -> None:
        raise error

    fail_on_stopiteration(raises)()
    raise AssertionError("unreachable")


class Map(Operator):
    """map(f): output k is input k. A record that `f` raised on, if a caller caught it, leaves a gap."""

    relation = contract.IDENTITY
    looks_back = False
    role = "map"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        function, run = self.function, task_run.current
        if run is None:
            from pyspark.util import fail_on_stopiteration

            return map(fail_on_stopiteration(function), records)
        source, pulled = run.pulling(records)
        gaps: list[int] = []
        if self.node in run.derived.documents:
            function = derived_values.noting(run.derived.documents[self.node], function)

        def failed(error: BaseException) -> None:
            gaps.append(pulled() - 1)
            if isinstance(error, StopIteration):
                report(error)

        def mapped(ended: list[bool]) -> Iterator[Any]:
            few = FEW
            for record in islice(source, FEW):
                few -= 1
                try:
                    output = [function(record)]
                except BaseException as error:
                    failed(error)
                    raise
                del record
                yield output.pop()
            if few:
                ended.append(True)
                return
            for record in source:
                try:
                    yield function(record)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    failed(error)
                    raise
            ended.append(True)

        def close() -> None:
            if gaps:
                run.override(self.node, contract.SPANS).extend(_around(gaps, pulled()))

        run.at_close(close)
        run.pulled = lambda: pulled() - len(gaps)
        return restarting(mapped)


def _around(gaps: list[int], inputs: int) -> list[tuple[int, int, int]]:
    """Spans (count, in, step) of the inputs that are not in `gaps`."""
    spans, start = [], 0
    for gap in [*gaps, inputs]:
        if gap > start:
            spans.append((gap - start, start, 1))
        start = gap + 1
    return spans or [(0, 0, 1)]


class Filter(Operator):
    """filter(f): the positions that passed.

    To ask the counter for a position costs more than to count in Python, which costs more than the counter:
    so positions are asked for while few records pass, and counted while most do.
    """

    looks_back = False

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        function, run = self.function, task_run.current
        if run is None:
            from pyspark.util import fail_on_stopiteration

            return filter(fail_on_stopiteration(function), records)
        stream = run.stream(self.node, contract.POSITIONS)
        is_first = self.node == run.plan.nodes[0]
        counter = run.inputs if is_first else Counter()
        source = iter(records) if is_first else counter.through(records)
        passed, left, last = stream.buffers[0], counter.left, FOREVER - 1
        are_few, most_pass = True, False

        def filtered(ended: list[bool]) -> Iterator[Any]:
            nonlocal are_few, most_pass
            before = position = last - left()
            is_end = False
            try:
                if are_few:
                    for record in islice(source, FEW):
                        position += 1
                        kept = [record] if function(record) else None
                        del record
                        if kept is not None:
                            passed.append(position)
                            yield kept.pop()
                    is_end = position - before < FEW
                    are_few = False
                elif most_pass:
                    for record in islice(source, CHUNK):
                        position += 1
                        if function(record):
                            passed.append(position)
                            yield record
                    is_end = position - before < CHUNK
                else:
                    for record in source:
                        if function(record):
                            passed.append(last - left())
                            yield record
                            if len(passed) >= CHUNK:
                                break
                    else:
                        is_end = True
            except StopIteration as error:
                report(error)
            most_pass = 2 * len(passed) > last - left() - before
            stream.flush()
            if is_end:
                ended.append(True)

        run.pulled = stream.outputs
        return restarting(filtered)


class FlatMap(Operator):
    """flatMap(f): how many outputs each input made; counted as they are pulled unless `f` gave a list."""

    looks_back = False

    def __init__(self, function: Callable[[Any], Iterable[Any]]) -> None:
        self.function = function

    def __call__(self, split: int, records: Any) -> Iterator[Any]:
        function, run = self.function, task_run.current
        if run is None:
            from pyspark.util import fail_on_stopiteration

            return chain.from_iterable(map(fail_on_stopiteration(function), records))
        stream = run.stream(self.node, contract.COUNTS)
        counts = stream.buffers[0]
        flush = stream.flush
        source = iter(records)
        ticks = repeat(True, FOREVER)
        left = ticks.__length_hint__

        def produced() -> Generator[Any, None, None]:
            outputs: Any
            rest: Any = None  # of the list that is being pulled
            try:
                while True:
                    before = len(counts)
                    for record in islice(source, CHUNK):
                        try:
                            outputs = function(record)
                        except BaseException:
                            counts.append(0)
                            raise
                        del record  # it may be large, and so may be what was made of it
                        if type(outputs) is list:
                            rest = iter(outputs)
                            yield rest
                            counts.append(len(outputs))
                            outputs = rest = None
                            continue
                        start = left()
                        try:
                            yield compress(outputs, ticks)
                        finally:
                            counts.append(start - left())
                        outputs = None
                    is_end = len(counts) - before < CHUNK
                    flush()
                    if is_end:  # an iterator of the user's may not like to be asked again
                        break
            except GeneratorExit:
                if rest is not None:  # a take() stopped in the list
                    counts.append(len(outputs) - rest.__length_hint__())
                raise
            except StopIteration as error:
                report(error)

        generator = produced()

        def pulled() -> int:
            # Seldom asked for: so the generator keeps what it is at in its own variables, which cost less.
            at, now = getgeneratorlocals(generator), 0
            if at.get("rest") is not None:
                now = len(at["outputs"]) - at["rest"].__length_hint__()
            elif "start" in at:
                now = at["start"] - left()
            return stream.outputs() + now

        run.pulled = pulled

        # A chain that was not pulled to its end holds it suspended; closing it counts the rest.
        run.at_close(generator.close)
        # Like stock PySpark's, it ends with the first error of the function, also for a caller who goes on.
        return chain.from_iterable(generator)


class LastRead(Operator):
    """A stock function that gives only what it has just read (a sampler): the positions that it read."""

    def __init__(self, stock: Callable[[int, Any], Iterable[Any]]) -> None:
        self.stock = stock

    def __call__(self, split: int, records: Any) -> Iterable[Any]:
        run = task_run.current
        if run is None:
            return self.stock(split, records)
        counter = Counter()
        counted = counter.through(records)
        return last_read(self.stock(split, counted), counter, run.stream(self.node, contract.POSITIONS))


class Known(Operator):
    """A stock function that gives one output for each input, in order: output k is input k."""

    relation = contract.IDENTITY

    def __init__(self, stock: Callable[[int, Any], Iterable[Any]]) -> None:
        self.stock = stock

    def __call__(self, split: int, records: Any) -> Iterable[Any]:
        return self.stock(split, records)


class Whole(Known):
    """A stock function whose every output is made of its whole partition (glom)."""

    relation = contract.PARTITION


class Tag(Operator):
    """Gives (record, run, position): a driver that keeps some of the records knows which."""

    relation = contract.IDENTITY

    def __call__(self, split: int, records: Any) -> Iterator[tuple[Any, int, int]]:
        return zip(records, repeat(task_run.current.number if task_run.current else 0), count(), strict=False)


class Order(Operator):
    """Stands behind a merge: output k is input k, unless the merge spilled and gave another order."""

    relation = contract.IDENTITY

    def __call__(self, split: int, records: Any) -> Any:
        return records


class Sort(Operator):
    """A stock sort of one partition by `record[0]`: output k is input in[k].

    The stock function sorts (key, record, position) in the record's place; it looks at the key only.
    """

    def __init__(self, stock: Callable[[Iterable[Any]], Iterable[Any]]) -> None:
        self.stock = stock

    def __call__(self, split: int, records: Any) -> Iterable[Any]:
        run = task_run.current
        if run is None:
            return self.stock(records)
        placed = self.stock((record[0], record, position) for position, record in enumerate(records))
        return self._records(placed, run.stream(self.node, contract.POSITIONS))

    @staticmethod
    def _records(placed: Iterable[Any], stream: Stream) -> Iterator[Any]:
        positions = stream.buffers[0]
        for _key, record, position in placed:
            positions.append(position)
            if len(positions) >= CHUNK:
                stream.flush()
            yield record
