"""Windows whose frames are followed, traced row by row both ways and compared with plain Python."""

from __future__ import annotations

import pytest

from tests.support.lanes import sampled
from tests.support.spark.cases.windows import CASES
from tests.support.spark.dataframe_oracle import Ran, graph_of, without_lineage

# The first test of the module runs the queries of all of them.
pytestmark = pytest.mark.timeout(1800)


PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.parametrize("name", sampled(CASES, 5))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)


def test_a_rank_says_that_it_only_compares(traced: Ran) -> None:
    assert traced.application is not None
    windows = [node for node in graph_of(traced.application).nodes if node.name == "Window"]
    ranks = [node for node in windows if "rank(" in node.description or "row_number()" in node.description]
    assert ranks
    assert all("ranked among the rows of its partition" in node.description for node in ranks)
    assert all(node.exact for node in ranks)
