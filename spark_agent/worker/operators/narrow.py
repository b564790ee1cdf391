"""The operators for map, filter and flatMap: same records, plus positions.

Each fuses the user's function with the capture of how its outputs relate to its inputs. Nothing is read ahead
through a user function, and nothing is called for a record that PySpark would not call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from inspect import getgeneratorlocals
from itertools import chain, compress, islice, repeat
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from spark_agent import contract
from spark_agent.worker import derived_values
from spark_agent.worker.culprits import CulpritNote
from spark_agent.worker.operator import Operator
from spark_agent.worker.position_streams import CHUNK, FOREVER, Counter, Stream, restarting
from spark_agent.worker.reading.static_lookup import Unknown, variables_of

if TYPE_CHECKING:
    from spark_agent.worker.task_run import TaskRun

#: So many records of a partition are let go of before what was made of them goes on: where records are large
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

    notes_culprits = True
    relation = contract.IDENTITY
    looks_back = False
    role = "map"
    node_name = "map"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, partition: int, records: Any) -> Iterator[Any]:
        if self.skips_failing:
            from spark_agent.worker.dropped_records import Skips, mapped

            skips = Skips(None, self.node)
            return mapped(self.function, records, lambda error, record: skips.drop(error, None, record))
        from pyspark.util import fail_on_stopiteration

        return map(fail_on_stopiteration(self.function), records)

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        function = self.function
        source, pulled = run.pulling(records)
        gaps: list[int] = []
        if self.node in run.derived.documents:
            function = derived_values.noting(run.derived.documents[self.node], function)

        def failed(error: BaseException, note: CulpritNote) -> None:
            gaps.append(pulled() - 1)
            note.fill(gaps[-1])
            if isinstance(error, StopIteration):
                report(error)

        def close() -> None:
            if gaps:
                run.override(self.node, contract.SPANS).extend(_around(gaps, pulled()))

        run.at_close(close)
        run.pulled = lambda: pulled() - len(gaps)
        if self.skips_failing:
            from spark_agent.worker.dropped_records import Skips, mapped

            skips = Skips(run, self.node)

            def dropped(error: Exception, record: Any) -> None:
                skips.drop(error, pulled() - 1, record)
                gaps.append(pulled() - 1)

            return mapped(function, source, dropped)

        def new_note() -> CulpritNote:
            return CulpritNote(self.node, lambda _variables: pulled() - 1)

        return restarting(lambda ended: _mapped(function, source, new_note(), failed, ended))


def _mapped(
    function: Callable[[Any], Any],
    source: Iterator[Any],
    note: CulpritNote,
    failed: Callable[[BaseException, CulpritNote], None],
    ended: list[bool],
) -> Iterator[Any]:
    few = FEW
    for record in islice(source, FEW):
        few -= 1
        try:
            output = [function(record)]
        except BaseException as error:
            failed(error, note)
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
            failed(error, note)
            raise
    ended.append(True)


def _around(gaps: list[int], inputs: int) -> list[tuple[int, int, int]]:
    """Spans (count, in, step) of the inputs that are not in `gaps`."""
    spans, start = [], 0
    for gap in [*gaps, inputs]:
        if gap > start:
            spans.append((gap - start, start, 1))
        start = gap + 1
    return spans or [(0, 0, 1)]


class Filter(Operator):
    """filter(f): the positions that passed."""

    notes_culprits = True
    looks_back = False
    node_name = "filter"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, partition: int, records: Any) -> Iterator[Any]:
        if self.skips_failing:
            return filter(self._guarded(None, int), records)
        from pyspark.util import fail_on_stopiteration

        return filter(fail_on_stopiteration(self.function), records)

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        stream = run.stream(self.node, contract.POSITIONS)
        is_first = self.node == run.plan.nodes[0]
        counter = run.inputs if is_first else Counter()
        source = iter(records) if is_first else counter.through(records)
        run.pulled = stream.outputs
        function = self.function
        if self.skips_failing:
            function = self._guarded(run, lambda: FOREVER - 1 - counter.left())
        return restarting(_Filtering(self.node, function, source, counter, stream).piece)

    def _guarded(self, run: TaskRun | None, position: Callable[[], int]) -> Callable[[Any], Any]:
        from spark_agent.worker.dropped_records import Skips, as_bool

        return Skips(run, self.node).guarded(as_bool(self.function), bool, position)


class _Filtering:
    """A filter at work, in pieces of the input.

    To ask the counter for a position costs more than to count in Python, which costs more than the counter:
    so positions are asked for while few records pass, and counted while most do.
    """

    def __init__(
        self,
        node: int,
        function: Callable[[Any], Any],
        source: Iterator[Any],
        counter: Counter,
        stream: Stream,
    ) -> None:
        self._node, self._function = node, function
        self._source, self._stream = source, stream
        self._left = counter.left
        self._is_first, self._most_pass = True, False

    def piece(self, ended: list[bool]) -> Iterator[Any]:
        """What passes of the next inputs; appends to `ended` behind the last one."""
        if self._is_first:
            return self._first(ended)
        return self._counting(ended) if self._most_pass else self._asking(ended)

    def _first(self, ended: list[bool]) -> Iterator[Any]:
        function, passed = self._function, self._stream.buffers[0]
        before = position = FOREVER - 1 - self._left()
        note = self._note()
        with note:
            try:
                for record in islice(self._source, FEW):
                    position += 1
                    output = [record] if function(record) else None
                    del record
                    if output is not None:
                        passed.append(position)
                        yield output.pop()
            except StopIteration as error:
                report(error)
        self._is_first = False
        self._end(before, position - before < FEW, ended)

    def _counting(self, ended: list[bool]) -> Iterator[Any]:
        function, passed = self._function, self._stream.buffers[0]
        before = position = FOREVER - 1 - self._left()
        note = self._note()
        with note:
            try:
                for record in islice(self._source, CHUNK):
                    position += 1
                    if function(record):
                        passed.append(position)
                        yield record
            except StopIteration as error:
                report(error)
        self._end(before, position - before < CHUNK, ended)

    def _asking(self, ended: list[bool]) -> Iterator[Any]:
        function, passed, left, last = self._function, self._stream.buffers[0], self._left, FOREVER - 1
        before = last - left()
        is_end = True
        note = self._note()
        with note:
            try:
                for record in self._source:
                    if function(record):
                        passed.append(last - left())
                        yield record
                        if len(passed) >= CHUNK:
                            is_end = False
                            break
            except StopIteration as error:
                report(error)
        self._end(before, is_end, ended)

    def _note(self) -> CulpritNote:
        return CulpritNote(self._node, lambda _variables: FOREVER - 1 - self._left())

    def _end(self, before: int, is_end: bool, ended: list[bool]) -> None:
        """A piece is over, which began behind position `before`."""
        inputs = FOREVER - 1 - self._left() - before
        self._most_pass = 2 * len(self._stream.buffers[0]) > inputs
        self._stream.flush()
        if is_end:
            ended.append(True)


class FlatMap(Operator):
    """flatMap(f): how many outputs each input made; counted as they are pulled unless `f` gave a list."""

    notes_culprits = True
    looks_back = False
    node_name = "flatmap"

    def __init__(self, function: Callable[[Any], Iterable[Any]]) -> None:
        self.function = function

    def __call__(self, partition: int, records: Any) -> Iterator[Any]:
        if self.skips_failing:
            return chain.from_iterable(map(self._guarded(None, int), records))
        from pyspark.util import fail_on_stopiteration

        return chain.from_iterable(map(fail_on_stopiteration(self.function), records))

    def capture(self, run: TaskRun, records: Any) -> Iterator[Any]:
        stream = run.stream(self.node, contract.COUNTS)
        ticks = repeat(True, FOREVER)
        left = ticks.__length_hint__
        function = self.function
        if self.skips_failing:
            function = self._guarded(run, stream.inputs)
        generator = _flat_mapped(self.node, function, iter(records), stream, ticks)

        def pulled() -> int:
            # Seldom asked for: so the generator keeps what it is at in its own variables, which cost less.
            at, now = _variables(generator), 0
            if at.get("rest") is not None:
                now = len(at["outputs"]) - at["rest"].__length_hint__()
            elif "start" in at:
                now = at["start"] - left()
            return stream.outputs() + now

        def lazy() -> tuple[int, Any] | None:
            at = _variables(generator)
            is_lazy = at.get("outputs") is not None and at.get("rest") is None
            return (stream.inputs(), at["outputs"]) if is_lazy else None

        run.pulled = pulled
        run.stages[-1].lazy, run.stages[-1].at = lazy, stream.inputs

        # A chain that was not pulled to its end holds it suspended; closing it counts the rest.
        run.at_close(generator.close)
        # Like PySpark's own, it ends with the first error of the function, also for a caller who goes on.
        return chain.from_iterable(generator)

    def _guarded(self, run: TaskRun | None, position: Callable[[], int]) -> Callable[[Any], Iterable[Any]]:
        from spark_agent.worker.dropped_records import Skips, all_at_once

        return Skips(run, self.node).guarded(all_at_once(self.function), list, position)


def _variables(generator: Generator[Any, None, None]) -> dict[str, Any]:
    frame: FrameType | None = getattr(generator, "gi_frame", None)
    try:
        return {} if frame is None else variables_of(frame)
    except Unknown:  # a debugger looks at it, too
        return getgeneratorlocals(generator)


def _flat_mapped(
    node: int,
    function: Callable[[Any], Iterable[Any]],
    source: Iterator[Any],
    stream: Stream,
    ticks: repeat[bool],
) -> Generator[Any, None, None]:
    """What `function` makes of each record. `ticks` count what is pulled of it."""
    counts, flush, left = stream.buffers[0], stream.flush, ticks.__length_hint__
    note = CulpritNote(node, lambda _variables: stream.inputs() - 1)
    outputs: Any
    rest: Any = None  # of the list that is being pulled
    with note:
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
