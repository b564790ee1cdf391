"""What caches and checkpoints hold: what was computed for them, also where tasks fail or compute it again."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread, TaskContext

from lineage_service.errors import NotFoundError
from tests.support.spark.application import Application, fill_and_fail, part_rows, rows_at, without_kept

Run = Callable[..., tuple[Any, Application]]


def test_what_was_kept_is_what_was_computed_last(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(60)))
    outputs = ("cached behind a collect", "cached again", "checkpointed", "coalesced with itself")

    def job(context: Any) -> None:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))

        def some() -> Any:  # others each time
            return context.textFile(str(source), 3).filter(lambda _: random.SystemRandom().random() < 0.5)

        def save(dataset: Any, name: str) -> None:
            dataset.map(str).saveAsTextFile(str(tmp_path / name))

        cached, checkpointed, twice = some(), some(), some()
        cached.collect()
        for name in outputs[:2]:
            cached.cache().count()
            save(cached, name)
            cached.unpersist(blocking=True)
        checkpointed.checkpoint()
        checkpointed.count()  # after which the checkpoint computes it once more
        save(checkpointed, outputs[2])
        save(twice.union(twice).coalesce(1), outputs[3])

    _, application = run(job)
    for name in outputs:
        rows = part_rows(tmp_path / name)
        assert rows
        for part, row, text in rows:
            assert application.sources_of(part, row) == {("in.txt", int(text))}, name


@pytest.mark.thorough
def test_what_a_task_cached_that_failed_is_known(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(40)))

    def job(context: Any) -> None:
        cached = context.textFile(str(source), 4).filter(lambda line: int(line) % 3).cache()
        fill_and_fail(context, cached, range(4))
        cached.map(str).saveAsTextFile(str(tmp_path / "out"))

    _, application = run(job)
    rows = part_rows(tmp_path / "out")
    assert len(rows) == 26
    for part, row, text in rows:
        assert application.sources_of(part, row) == {("in.txt", int(text))}
        trace = application.trace(direction="forward", path=str(source), row=int(text))
        assert (part.name, row) in rows_at(trace, "sink")
    (failed, *_) = [sink for sink in application.sinks() if sink.name == "runJob"]
    with pytest.raises(NotFoundError):  # what it had read before it failed is no result of it
        application.trace(direction="backward", node=failed.node_id, partition=0, offset=0)

    # Where the task could not tell: nothing is said to be exact that is not, and nothing that is not is said.
    untold = without_kept(application)
    known = 0
    for part, row, text in rows:
        trace = untold.trace(direction="backward", path=str(part), row=row)
        known += trace.exact
        assert not trace.exact or rows_at(trace, "source") == {("in.txt", int(text))}
        for _, bound in rows_at(trace, "source"):
            forward = untold.trace(direction="forward", path=str(source), row=bound)
            assert forward.exact == trace.exact
            assert (part.name, row) in rows_at(forward, "sink")
    assert known < len(rows)


@pytest.mark.thorough
def test_what_an_attempt_cached_that_was_made_again_is_known(run: Run, tmp_path: Path) -> None:
    """A task fails once; the next attempt reads what the first one left, and other rows would have come."""
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(60)))

    def job(context: Any) -> None:
        def fails_once(line: str) -> str:
            if TaskContext.get().attemptNumber() == 0:
                raise ValueError(line)
            return line

        some = context.textFile(str(source), 3).filter(lambda _: random.SystemRandom().random() < 0.5)
        union = some.union(context.parallelize(["60"], 1))
        for name, kept in (("cached", some), ("union", union), ("coalesced", union.coalesce(2))):
            kept.cache()
            kept.map(fails_once).saveAsTextFile(str(tmp_path / name))
            kept.unpersist(blocking=True)

    _, application = run(job, master="local[2,2]")
    for name in ("cached", "union", "coalesced"):
        for part, row, text in part_rows(tmp_path / name):
            if text != "60":
                assert application.sources_of(part, row) == {("in.txt", int(text))}, name


def test_what_was_kept_of_a_grouping_is_found_by_its_key(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(20)))

    def job(context: Any) -> None:
        pairs = context.textFile(str(source), 3).map(lambda line: (f"ends in {line[-1]}", int(line)))
        sums = pairs.reduceByKey(lambda a, b: a + b, 2).cache()
        sums.count()
        sums.map(str).saveAsTextFile(str(tmp_path / "out"))

    _, application = run(job)
    graph = application.questions.graph(application.application_id)
    (sums,) = [node.node_id for node in graph.nodes if node.name == "reduceByKey"]
    backward = application.trace(direction="backward", node=sums, key="ends in 3")
    assert rows_at(backward, "source") == {("in.txt", 3), ("in.txt", 13)}
    assert [[record.key for record in node.records] for node in backward.nodes[:1]] == [["ends in 3"]]
    forward = application.trace(direction="forward", node=sums, key="ends in 3")
    (row,) = [(part.name, row) for part, row, text in part_rows(tmp_path / "out") if "ends in 3" in text]
    assert row in rows_at(forward, "sink")


@pytest.mark.thorough
def test_a_union_that_only_a_failed_action_has_read_keeps_nothing_from_being_exact(
    run: Run, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(20)))

    def job(context: Any) -> None:
        def fails(line: str) -> str:
            if line == "19":
                raise ValueError(line)
            return line

        some = context.textFile(str(source), 3).filter(lambda line: int(line) % 2).cache()
        with contextlib.suppress(Exception):
            some.union(some.map(fails)).map(str).count()
        some.map(str).saveAsTextFile(str(tmp_path / "out"))

    _, application = run(job)
    for part, row, text in part_rows(tmp_path / "out"):
        assert application.sources_of(part, row) == {("in.txt", int(text))}
        trace = application.trace(direction="forward", path=str(source), row=int(text))
        assert trace.exact
        assert (part.name, row) in rows_at(trace, "sink")


@pytest.mark.thorough
def test_a_kept_union_holds_what_was_computed_for_it(run: Run, tmp_path: Path) -> None:
    """Not what another job computed of its parts before it was read."""
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(60)))
    outputs = ("union", "coalesce", "coalesce of twice the same", "union of unions", "checkpoint")

    def job(context: Any) -> None:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))

        def some() -> Any:  # others each time
            return context.textFile(str(source), 3).filter(lambda _: random.SystemRandom().random() < 0.5)

        for name in outputs:
            part = some()
            kept = part.coalesce(2) if name == "coalesce" else part.union(some())
            if name == "union of unions":
                kept = kept.union(part)
            if name == "coalesce of twice the same":
                kept = part.union(part).coalesce(1)
            if name == "checkpoint":
                kept.checkpoint()
            else:
                kept.cache()
            kept.count()
            part.collect()
            part.union(some()).count()
            kept.map(str).saveAsTextFile(str(tmp_path / name))
            part.count()

    _, application = run(job)
    for name in outputs:
        rows = part_rows(tmp_path / name)
        assert rows
        for part, row, text in rows:
            assert application.sources_of(part, row) == {("in.txt", int(text))}, name


@pytest.mark.thorough
def test_what_filled_a_kept_union_is_not_known_where_its_task_failed(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(40)))

    def fails(line: str) -> int:
        return 1 // (int(line) - 38)

    def job(context: Any) -> None:
        part = context.textFile(str(source), 2).filter(
            lambda line: line == "38" or random.SystemRandom().random() < 0.5
        )
        kept = part.union(context.parallelize(["39"], 1)).cache()
        with contextlib.suppress(Exception):
            kept.map(fails).collect()
        part.collect()
        kept.map(str).saveAsTextFile(str(tmp_path / "out"))

    _, application = run(job)
    for part, row, text in part_rows(tmp_path / "out"):
        trace = application.trace(direction="backward", path=str(part), row=row)
        assert not trace.exact or text == "39" or rows_at(trace, "source") == {("in.txt", int(text))}


@pytest.mark.thorough
def test_what_the_same_rdd_gave_several_times_is_told_apart(run: Run, tmp_path: Path) -> None:
    """A checkpoint computes each partition of a union by itself, and others keep the same RDD, too."""
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(60)))
    outputs = ("union of the same", "coalesced", "coalesced beside", "copied")

    def job(context: Any) -> None:
        context.setCheckpointDir(str(tmp_path / "checkpoints"))

        def some() -> Any:  # others each time
            return context.textFile(str(source), 2).filter(lambda _: random.SystemRandom().random() < 0.5)

        def fails_once(line: str) -> str:
            if TaskContext.get().attemptNumber() == 0:
                raise ValueError(line)
            return line

        part, other = some(), some()
        kept = [part.union(part).union(part), other.coalesce(1), other.coalesce(1)]
        for each in kept:
            each.checkpoint()
            each.count()
        # A union of batches of two sizes copies one part into the other's form, in one more worker.
        copied = some().repartition(2).union(some()).cache()
        for name, each in zip(outputs, [*kept, copied.map(fails_once)], strict=True):
            each.map(str).saveAsTextFile(str(tmp_path / name))

    _, application = run(job, master="local[2,2]")
    for name in outputs:
        rows = part_rows(tmp_path / name)
        assert rows
        for part, row, text in rows:
            assert application.sources_of(part, row) == {("in.txt", int(text))}, name


@pytest.mark.thorough
def test_what_several_threads_read_at_once_is_right_or_a_bound(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(60)))

    def job(context: Any) -> None:
        some = context.textFile(str(source), 2).filter(lambda _: random.SystemRandom().random() < 0.5)
        some.cache().count()
        some.unpersist()  # what was cached may be there for a while yet
        some.cache()

        def save(number: int) -> None:
            some.map(str).saveAsTextFile(str(tmp_path / f"out-{number}"))

        threads = [InheritableThread(target=save, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    _, application = run(job)
    for number in range(3):
        for part, row, text in part_rows(tmp_path / f"out-{number}"):
            trace = application.trace(direction="backward", path=str(part), row=row)
            assert not trace.exact or rows_at(trace, "source") == {("in.txt", int(text))}


@pytest.mark.thorough
def test_a_record_that_may_be_in_an_unknown_run_is_not_said_to_go_nowhere(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i}\n" for i in range(40)))

    def job(context: Any) -> None:
        some = (
            context.textFile(str(source), 2).filter(lambda _: random.SystemRandom().random() < 0.5).map(str)
        )
        some.map(str).saveAsTextFile(str(tmp_path / "first"))
        fill_and_fail(context, some.cache(), range(2))
        some.map(str).saveAsTextFile(str(tmp_path / "second"))

    _, application = run(job)
    untold = without_kept(application)
    outputs = [
        (path, at, text) for name in ("first", "second") for path, at, text in part_rows(tmp_path / name)
    ]
    for row in range(40):
        made = {(path.parent.name, path.name, at) for path, at, text in outputs if text == str(row)}
        for each in (application, untold):
            trace = each.trace(direction="forward", path=str(source), row=row)
            found = {
                (*Path(record.source.path).parts[-2:], record.source.row)
                for node in trace.nodes
                if node.kind == "sink"
                for record in node.records
                if record.source is not None
            }
            assert found == made if trace.exact else each is untold or found >= made
        assert not trace.exact


@pytest.mark.thorough
def test_what_found_no_room_in_a_cache_and_was_read_in_part_is_known(run: Run, tmp_path: Path) -> None:
    """Spark hangs up on the worker that computes it: no end of it is accepted, nor does it come to one."""
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{i} {'x' * 1_500}\n" for i in range(20_000)))

    def job(context: Any) -> tuple[int, list[str]]:
        some = context.textFile(str(source), 1).filter(lambda _: random.SystemRandom().random() < 0.5).cache()
        some.count()
        return sum(each.numCachedPartitions() for each in context._jsc.sc().getRDDStorageInfo()), some.take(5)

    room = {"spark_testing_memory": "1500000", "spark_testing_reservedMemory": "1"}
    (cached, taken), application = run(job, **room)
    assert not cached
    [sink] = [sink for sink in application.sinks() if sink.name == "take"]
    for offset, text in enumerate(taken):
        trace = application.trace(direction="backward", node=sink.node_id, partition=0, offset=offset)
        assert trace.exact
        assert rows_at(trace, "source") == {("in.txt", int(text.split()[0]))}
