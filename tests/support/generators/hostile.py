"""Functions whose outputs are made of further rows than the last one read, and must not be taken for less.

Each is followed by a word on how it carries something from row to row.
"""

from __future__ import annotations

import bisect
import csv
import functools
import hashlib
import heapq
import io
import itertools
import operator
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.generators import setup
from tests.support.generators.outside_state import CARRIED
from tests.support.generators.setup import (
    SEEN,
    TOTALS,
    Client,
    Memory,
    Smoother,
    Ticket,
    Wrapper,
    add_to,
    count_call,
    mark,
    totals,
    with_default,
    with_the_last,
    without_the_last,
    without_the_last_again,
)

Rows = Iterator[str]
HOSTILE: dict[str, Callable[[Rows], Any]] = dict(CARRIED)


def hostile(function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
    HOSTILE[function.__name__] = function
    return function


@hostile
def running_total(rows: Rows) -> Any:
    total = 0
    for row in rows:
        total += len(row)
        yield total


@hostile
def counter_in_the_output(rows: Rows) -> Any:
    passed = 0
    for row in rows:
        if row:
            passed += 1
            yield passed, row


@hostile
def number_at_the_end(rows: Rows) -> Any:
    many = 0
    for _row in rows:
        many += 1
    yield many


@hostile
def row_before(rows: Rows) -> Any:
    before = None
    for row in rows:
        yield before, row
        before = row


@hostile
def value_set_on_some_rows(rows: Rows) -> Any:
    for row in rows:
        if ":" in row:
            key = row
        elif "key" not in locals():
            key = ""
        yield key, row


@hostile
def heading_carried_down(rows: Rows) -> Any:
    heading = ""
    for row in rows:
        if row.endswith("2"):
            heading = row
            continue
        yield heading, row


@hostile
def switched_on(rows: Rows) -> Any:
    is_on = False
    for row in rows:
        if row == "e":
            is_on = True
        if is_on:
            yield row


@hostile
def ended_by_a_row(rows: Rows) -> Any:
    for row in rows:
        if row == "e":
            break
        yield row


@hostile
def switched_by_an_error(rows: Rows) -> Any:
    is_number = False
    for row in rows:
        try:
            int(row.partition(":")[2])
            is_number = True
        except ValueError:
            pass
        if is_number:
            yield row


@hostile
def without_duplicates(rows: Rows) -> Any:
    seen = set()
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row


@hostile
def without_duplicates_by_a_method(rows: Rows) -> Any:
    seen: set[str] = set()
    add = seen.add
    for row in rows:
        if row in seen:
            continue
        add(row)
        yield row


@hostile
def without_duplicates_of_all_partitions(rows: Rows) -> Any:
    for row in rows:
        if row not in SEEN:
            SEEN.add(row)
            yield row


@hostile
def counted_by_key(rows: Rows) -> Any:
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row] += 1
        yield row, counts[row]


@hostile
def counted_by_a_counter(rows: Rows) -> Any:
    counter: Counter[str] = Counter()
    for row in rows:
        counter.update(row)
        yield counter.most_common(1)


@hostile
def summary_at_the_end(rows: Rows) -> Any:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row] = counts.get(row, 0) + 1
    for key, count in counts.items():
        yield key, count


@hostile
def total_outside(rows: Rows) -> Any:
    for row in rows:
        TOTALS["length"] += len(row)
        yield row, TOTALS["length"]


@hostile
def global_variable(rows: Rows) -> Any:
    global _latest
    for row in rows:
        before, _latest = _latest, row
        yield before


_latest = ""


@hostile
def variable_of_the_function_around(rows: Rows) -> Any:
    latest = ""

    def generator() -> Any:
        nonlocal latest
        for row in rows:
            yield latest + row
            latest = row

    return generator()


@hostile
def inner_function_that_keeps(rows: Rows) -> Any:
    total = 0

    def add(row: str) -> int:
        nonlocal total
        total += len(row)
        return total

    for row in rows:
        yield add(row)


@hostile
def inner_function_with_a_list(rows: Rows) -> Any:
    kept: list[str] = []

    def keep(row: str) -> str:
        kept.append(row)
        return kept[0]

    for row in rows:
        yield keep(row)


@hostile
def lambda_over_a_list(rows: Rows) -> Any:
    kept: list[str] = []
    first = lambda: kept[0] if kept else ""  # noqa: E731
    for row in rows:
        kept.append(row)
        yield first(), row


@hostile
def smoother(rows: Rows) -> Any:
    smoother = Smoother()
    for row in rows:
        yield smoother.feed(row)


@hostile
def smoother_that_is_called(rows: Rows) -> Any:
    smoother = Smoother()
    for row in rows:
        yield smoother(row)


@hostile
def map_of_a_smoother(rows: Rows) -> Any:
    return map(Smoother(), rows)


@hostile
def map_of_a_method(rows: Rows) -> Any:
    return map(Smoother().feed, rows)


@hostile
def filter_of_a_memory(rows: Rows) -> Any:
    return filter(Memory().is_new, rows)


@hostile
def memory(rows: Rows) -> Any:
    memory = Memory()
    for row in rows:
        yield memory.last(), row
        memory.note(row)


@hostile
def attribute_of_an_object(rows: Rows) -> Any:
    client = Client()
    for row in rows:
        client.last = row if row else client.last  # type: ignore[attr-defined]
        yield client.last  # type: ignore[attr-defined]


@hostile
def function_that_keeps(rows: Rows) -> Any:
    for row in rows:
        yield with_the_last(row)


@hostile
def functions_that_share(rows: Rows) -> Any:
    for row in rows:
        count_call(row)
        yield row, len(setup.CALLS)


@hostile
def function_that_fills(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        yield add_to(kept, row)


@hostile
def function_that_fills_and_gives_nothing(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        add_to(kept, row)
        yield kept[0]


@hostile
def function_with_a_default_list(rows: Rows) -> Any:
    for row in rows:
        yield with_default(row)


@hostile
def set_of_a_default(rows: Rows, seen: set[str] = set()) -> Any:  # noqa: B006 - that is the point
    for row in rows:
        if row not in seen:
            seen.add(row)
            yield row


@hostile
def global_by_its_name(rows: Rows) -> Any:
    for row in rows:
        globals()["_latest"] = row
        yield _latest


@hostile
def attribute_by_its_name(rows: Rows) -> Any:
    client = Client()
    for row in rows:
        setattr(client, "table", {**client.table, row[:1]: row})  # noqa: B010 - that is the point
        yield client.table


@hostile
def inner_function_with_its_argument(rows: Rows) -> Any:
    kept: list[str] = []

    def keep(texts: list[str], row: str) -> str:
        texts.append(row)
        return texts[0]

    for row in rows:
        yield keep(kept, row)


@hostile
def reduced_into_a_list(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        functools.reduce(lambda texts, word: texts.append(word) or texts, row.split(), kept)  # type: ignore[func-returns-value]
        yield len(kept), row


@hostile
def reduced_into_a_list_by_a_function(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        many = [add_to(texts, row) for texts in (kept,)]
        yield many


@hostile
def wrapped_list(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        writer = Wrapper(kept)
        writer.put_down(row)
        yield kept[0]


@hostile
def taken_out_of_a_table(rows: Rows) -> Any:
    left = {"b": 1, "a:1": 2, "e": 3}
    for row in rows:
        if row in left:
            del left[row]
            yield row


@hostile
def comprehension_over_the_partition(rows: Rows) -> Any:
    for row in [row.upper() for row in rows]:
        yield row


@hostile
def two_at_first(rows: Rows) -> Any:
    def two(rows: Rows) -> list[str]:
        return [next(rows), next(rows)]

    for row in two(rows):
        yield row


@hostile
def last_that_passed(rows: Rows) -> Any:
    row = ""
    for row in (row for row in rows if row > "c"):  # noqa: B007 - the last one is used
        pass
    yield row


@hostile
def pipeline_with_a_total(rows: Rows) -> Any:
    for row in totals(rows):
        yield row


@hostile
def numbered_objects(rows: Rows) -> Any:
    for row in rows:
        yield row, Ticket(row).number


@hostile
def marked_by_a_function(rows: Rows) -> Any:
    for row in rows:
        record = {"row": row}
        _done = mark(record)
        yield record


@hostile
def next_rows_with_those_before(rows: Rows) -> Any:
    before: list[str] = []
    while chunk := list(itertools.islice(rows, 3)):
        yield before + chunk
        before = chunk


@hostile
def next_rows_less_one_by_a_function(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        yield without_the_last(chunk)


@hostile
def batch_less_one_by_a_function(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            rest = without_the_last(batch)
            yield rest
            batch = []


@hostile
def batch_less_one_by_an_inner_function(rows: Rows) -> Any:
    def shortened(rows: list[str]) -> list[str]:
        rows.pop()
        return rows

    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield list(shortened(batch))
            batch = []


@hostile
def next_rows_less_one_by_two_functions(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        yield without_the_last_again(chunk)


@hostile
def next_rows_less_one(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        chunk.pop()
        yield chunk


@hostile
def next_rows_and_one_more(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        chunk.append(next(rows, ""))
        yield chunk


@hostile
def next_rows_until_one(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        if "e" in chunk:
            break
        yield chunk


@hostile
def next_rows_and_an_end(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        yield chunk
    yield "end"


@hostile
def next_rows_sliced(rows: Rows) -> Any:
    while chunk := list(itertools.islice(rows, 3)):
        rest = chunk
        chunk = chunk[1:]
        yield rest, chunk


@hostile
def listed_without_duplicates(rows: Rows) -> Any:
    outputs: list[str] = []
    for row in rows:
        if row not in outputs:
            outputs.append(row)
    return outputs


@hostile
def listed_with_a_total(rows: Rows) -> Any:
    outputs, total = [], 0
    for row in rows:
        total += len(row)
        outputs.append(total)
    return iter(outputs)


@hostile
def listed_with_what_follows(rows: Rows) -> Any:
    outputs: list[list[str]] = []
    for row in rows:
        if outputs:
            outputs[-1].append(row)
        outputs.append([row])
    return outputs


@hostile
def listed_and_sorted(rows: Rows) -> Any:
    outputs = []
    for row in rows:
        outputs.append(row)
    outputs.sort()
    return outputs


@hostile
def listed_the_other_way_round(rows: Rows) -> Any:
    outputs: list[str] = []
    for row in rows:
        outputs.insert(0, row)
    return outputs


@hostile
def listed_with_an_end(rows: Rows) -> Any:
    outputs: list[Any] = []
    for row in rows:
        outputs.append(row)
    outputs.append(len(outputs))
    return outputs


@hostile
def smoothed_behind_a_line(rows: Rows) -> Any:
    smoother = Smoother()
    next(rows, None)
    return (smoother.feed(row) for row in rows)


@hostile
def partial_with_a_list(rows: Rows) -> Any:
    add = functools.partial(add_to, [])
    for row in rows:
        yield add(row)


@hostile
def method_of_the_type(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        list.append(kept, row)
        yield kept[0]


@hostile
def operator_on_a_list(rows: Rows) -> Any:
    kept: list[str] = []
    for row in rows:
        kept += [row]
        yield operator.itemgetter(0)(kept)


@hostile
def best_so_far(rows: Rows) -> Any:
    heap: list[str] = []
    for row in rows:
        heapq.heappush(heap, row)
        yield heap[0]


@hostile
def best_of_two(rows: Rows) -> Any:
    heap = [""]
    for row in rows:
        yield heapq.heappushpop(heap, row)


@hostile
def rank_so_far(rows: Rows) -> Any:
    ranked: list[str] = []
    for row in rows:
        bisect.insort(ranked, row)
        yield ranked.index(row)


@hostile
def last_three(rows: Rows) -> Any:
    window: deque[str] = deque(maxlen=3)
    for row in rows:
        window.append(row)
        yield list(window)


@hostile
def sliding_window(rows: Rows) -> Any:
    window = []
    for row in rows:
        window.append(row)
        if len(window) == 3:
            yield "".join(window)
            window.pop(0)


@hostile
def all_so_far(rows: Rows) -> Any:
    kept = []
    for row in rows:
        kept.append(row)
        yield list(kept)


@hostile
def batch_before(rows: Rows) -> Any:
    batch: list[str] = []
    before: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield list(before)
            before, batch = batch, []


@hostile
def batch_with_a_total(rows: Rows) -> Any:
    batch: list[str] = []
    total = 0
    for row in rows:
        total += len(row)
        batch.append(row)
        if len(batch) == 3:
            yield total, batch
            batch = []


@hostile
def batch_without_duplicates(rows: Rows) -> Any:
    batch: list[str] = []
    seen = set()
    for row in rows:
        if row not in seen:
            seen.add(row)
            batch.append(row)
        if len(batch) == 3:
            yield from batch
            batch = []
    yield from batch


@hostile
def batch_that_keeps_one(rows: Rows) -> Any:
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield "".join(batch)
            batch = batch[-1:]


@hostile
def batch_emptied_by_a_function(rows: Rows) -> Any:
    batch: list[str] = []

    def drop() -> None:
        del batch[:2]

    for row in rows:
        batch.append(row)
        if len(batch) == 3:
            yield "".join(batch)
            drop()


@hostile
def batch_of_a_key(rows: Rows) -> Any:
    key, batch = "", []
    for row in rows:
        if row[:1] != key and batch:
            yield key, batch
            batch = []
        key = row[:1]
        batch.append(row)
    if batch:
        yield key, batch


@hostile
def pairs_by_next(rows: Rows) -> Any:
    for row in rows:
        yield row, next(rows, None)


@hostile
def header_in_each_output(rows: Rows) -> Any:
    header = next(rows)
    for row in rows:
        yield header, row


@hostile
def pairs_by_zip(rows: Rows) -> Any:
    return zip(rows, rows)


@hostile
def pairs_by_pairwise(rows: Rows) -> Any:
    return itertools.pairwise(rows)


@hostile
def grouped(rows: Rows) -> Any:
    for key, group in itertools.groupby(rows, key=lambda row: row[:1]):
        yield key, list(group)


@hostile
def accumulated(rows: Rows) -> Any:
    return itertools.accumulate(rows)


@hostile
def both_of_tee(rows: Rows) -> Any:
    one, other = itertools.tee(rows)
    next(other, None)
    for row, following in zip(one, other, strict=False):
        yield row, following


@hostile
def all_then_each(rows: Rows) -> Any:
    every = list(rows)
    for row in every:
        yield row, len(every)


@hostile
def in_order(rows: Rows) -> Any:
    yield from sorted(rows)


@hostile
def largest(rows: Rows) -> Any:
    yield max(rows, default="")


@hostile
def lengths_of_lists(rows: Rows) -> Any:
    return iter([len(row) for row in rows])


@hostile
def running_digest(rows: Rows) -> Any:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(row.encode())
        yield digest.hexdigest()


@hostile
def running_compression(rows: Rows) -> Any:
    compressor = zlib.compressobj()
    for row in rows:
        yield compressor.compress(row.encode()) + compressor.flush(zlib.Z_SYNC_FLUSH)


@hostile
def one_text_for_all(rows: Rows) -> Any:
    text = io.StringIO()
    writer = csv.writer(text)
    for row in rows:
        writer.writerow(row.split(":"))
        yield text.getvalue()


@hostile
def generator_that_is_sent_to(rows: Rows) -> Any:
    def averages() -> Any:
        total = many = 0
        while True:
            row = yield total / (many or 1)
            total, many = total + len(row), many + 1

    average = averages()
    next(average)
    for row in rows:
        yield average.send(row)


@hostile
def numbered_those_that_passed(rows: Rows) -> Any:
    for number, row in enumerate(row for row in rows if row):
        yield number, row


@hostile
def changed_by_what_was(rows: Rows) -> Any:
    total = 0
    for row in rows:
        record = {"row": row}
        total += len(row)
        record["total"] = total
        yield record


@hostile
def two_loops(rows: Rows) -> Any:
    first = ""
    for row in rows:
        first = row
        break
    for row in rows:
        yield first, row


@hostile
def outer_loop(rows: Rows) -> Any:
    before = ""
    while True:
        for row in rows:
            yield before + row
            break
        else:
            return
        before = row


@hostile
def expression_over_what_changes(rows: Rows) -> Any:
    total = 0
    pairs = ((row, total) for row in rows)
    for row, before in pairs:
        total += len(row)
        yield row, before


@hostile
def read_by_an_inner_function(rows: Rows) -> Any:
    def following() -> str:
        return next(rows, "")

    for row in rows:
        yield row + following()


HOSTILE["map_that_reads_on"] = lambda rows: map(lambda row: (row, next(rows, "")), rows)
HOSTILE["partial_that_reads_on"] = lambda rows: map(functools.partial(zip, rows), rows)
HOSTILE["cached_smoother"] = lambda rows: map(functools.lru_cache(Smoother().feed), rows)
