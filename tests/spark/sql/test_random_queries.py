"""Queries made by chance: traces that say that they are exact equal the oracle, others hold all that it has.

LINEAGE_TEST_SEED=N LINEAGE_TEST_QUERIES=M makes M others.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from pyspark.sql import DataFrame

from lineage_service.errors import NotFoundError
from tests.support.lanes import sampled
from tests.support.spark import random_queries
from tests.support.spark.dataframe_oracle import Case, Ran, Tables, check_forward, rows_of_sources
from tests.support.spark.relational import Data, Sources
from tests.support.spark.shop import Shop

# The first test of the module runs the queries of all of them.
pytestmark = pytest.mark.timeout(3600)

FIRST = int(os.environ.get("LINEAGE_TEST_SEED", "1"))
COUNT = int(os.environ.get("LINEAGE_TEST_QUERIES", "40"))

CONFS = [
    {},
    {"spark.sql.adaptive.enabled": "false"},
    {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    {"spark.sql.codegen.wholeStage": "false"},
]


def case_of(seed: int) -> Case:
    def query(tables: Tables) -> DataFrame:
        random_queries.begin(tables)
        frame = tables.spark.sql(random_queries.make(seed, tables.shop).text)
        return frame.cache() if seed % 6 == 0 else frame.repartition(2) if seed % 6 == 1 else frame

    def oracle(shop: Shop) -> Data:
        return random_queries.make(seed, shop).data

    return Case(query, oracle, exact=None, conf=CONFS[seed % len(CONFS)])


CASES = {f"query {seed}": case_of(seed) for seed in range(FIRST, FIRST + COUNT)}
PLAIN = CASES


@pytest.mark.parametrize("name", sampled(CASES, 20))
def test_traces_are_exact_or_hold_all(name: str, plain: Ran, traced: Ran) -> None:
    query = random_queries.make(int(name.split()[1]), traced.shop)
    if name in plain.failures:
        assert type(traced.failures.get(name)) is type(plain.failures[name]), query.text
        return
    try:
        assert traced.rows(name) == plain.rows(name)
        if not is_right(name, plain) or not is_covered(name, traced):
            return
        output = traced.output(name)
        traces = {
            (part, at): (repr(row), traced.backward(output / part, at))
            for (part, at), row in traced.written(name)
        }
        traced_rows: dict[str, list[tuple[Sources, bool]]] = defaultdict(list)
        for row, trace in traces.values():
            traced_rows[row].append((rows_of_sources(trace), trace.exact))
        expected: dict[str, list[Sources]] = defaultdict(list)
        for values, sources in query.data:
            expected[repr(values)].append(sources)
        for row, of_row in traced_rows.items():
            assert can_be(of_row, expected[row]), f"{row}: {of_row} of {expected[row]}"
        sinks = {trace.start_node for _, trace in traces.values()}
        backward = {place: rows_of_sources(trace) for place, (_, trace) in traces.items()}
        assert traced.application is not None
        check_forward(traced.application, sinks, output, backward)
    except Exception as error:
        error.add_note(query.text)
        raise


def is_right(name: str, plain: Ran) -> bool:
    """Does stock Spark give what the oracle says? Few queries show a fault of its own."""
    return plain.rows(name) == Counter(repr(row) for row, _ in plain.expected(name))


def is_covered(name: str, traced: Ran) -> bool:
    """If not, the application says so."""
    try:
        for (part, at), _ in traced.written(name)[:1]:
            traced.backward(traced.output(name) / part, at)
    except NotFoundError as error:
        if "is not covered" not in str(error):
            raise
        return False
    return True


def can_be(traces: Sequence[tuple[Sources, bool]], expected: Sequence[Sources]) -> bool:
    """May these be the traces of rows that look alike, each of one: the same if exact, else at least it?"""
    taken: dict[int, int] = {}

    def is_placed(one: int, seen: set[int]) -> bool:
        sources, is_exact = traces[one]
        for at, least in enumerate(expected):
            if at not in seen and (sources == least if is_exact else sources >= least):
                seen.add(at)
                if at not in taken or is_placed(taken[at], seen):
                    taken[at] = one
                    return True
        return False

    return len(traces) == len(expected) and all(is_placed(one, set()) for one in range(len(traces)))


@pytest.mark.thorough
def test_most_queries_are_looked_at_and_exact(plain: Ran, traced: Ran) -> None:
    """Else the others would prove little."""
    assert len(plain.failures) <= 0.1 * len(plain.cases), {
        name: str(plain.failures[name]) for name in plain.failures
    }
    exact = 0
    for name in plain.cases:
        if name not in plain.failures and is_right(name, plain) and is_covered(name, traced):
            output = traced.output(name)
            exact += all(
                traced.backward(output / part, at).exact for (part, at), _ in traced.written(name)[:1]
            )
    assert exact > 0.6 * len(plain.cases)
