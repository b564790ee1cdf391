"""What DataFrames are read from, kept in, and run Python over, traced and compared with plain Python."""

from __future__ import annotations

import pytest

from tests.support.lanes import sampled
from tests.support.spark.cases.sources import (
    CASES,
)
from tests.support.spark.dataframe_oracle import Ran, without_lineage

# The first test of the module runs the queries of all of them.
pytestmark = [pytest.mark.timeout(1800), pytest.mark.thorough]


PLAIN = without_lineage(CASES)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLAIN)
def test_spark_writes_what_the_oracle_says(name: str, plain: Ran) -> None:
    plain.check_rows(name)


@pytest.mark.parametrize("name", sampled(CASES, 4))
def test_traces_equal_the_oracle(name: str, plain: Ran, traced: Ran) -> None:
    traced.check(name, plain)
