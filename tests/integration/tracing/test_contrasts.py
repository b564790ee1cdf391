"""What bad outputs have in common, from what is stored and from the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.errors import InvalidQueryError
from lineage_service.lineage import Contrast
from lineage_service.queries import ContrastQuery, StartQuery
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.flat_maps import APP, FLAT_MAP, RUN, SINK, SOURCE, add_flat_map
from tests.support.lineage_messages import event

SHOPS = ("North", "South", "West")
ROWS = 30


def amounts(partitions: int = 4) -> list[list[str]]:
    """Shop, amount, comment. In each partition one row has no shop and a comment."""
    return [
        [
            f"{'' if at == 7 else SHOPS[at % 3]},{10 * at + part},{'returned' if at in (7, 8) else ''}"
            for at in range(ROWS)
        ]
        for part in range(partitions)
    ]


@pytest.fixture
def queries(tmp_path: Path) -> LineageQueries:
    return add_flat_map(tmp_path, amounts(), [[1] * ROWS] * 4)


def outputs(offsets: list[int], partitions: int = 4) -> tuple[StartQuery, ...]:
    return tuple(
        StartQuery(record=f"{SINK}#write#{part}#{at}") for part in range(partitions) for at in offsets
    )


def said(contrast: Contrast) -> dict[str, tuple[int, int, int, int]]:
    return {
        shared.property: (shared.bad, shared.of_bad, shared.good, shared.of_good)
        for shared in contrast.properties
    }


def test_a_value_that_all_bad_outputs_share_comes_first(queries: LineageQueries) -> None:
    contrast = queries.contrast(APP, ContrastQuery(bad=outputs([7]), good=outputs([0, 1, 2, 8, 20])))
    first = contrast.properties[0]
    assert (first.property, first.bad, first.of_bad, first.good, first.of_good) == (
        "column 1 is empty",
        4,
        4,
        0,
        20,
    )
    assert (first.score, first.unusual) == (1.0, True)
    assert contrast.complete


def test_two_properties_together_say_more_than_each(queries: LineageQueries) -> None:
    bad = outputs([8])
    good = outputs([2, 5, 11, 14, 7, 1])
    contrast = queries.contrast(APP, ContrastQuery(bad=bad, good=good, limit=100))
    together = said(contrast)["column 3 = returned and column 1 = West"]
    assert together == (4, 4, 0, 24)


def test_a_range_of_numbers_is_a_property(queries: LineageQueries) -> None:
    bad = outputs([26, 27, 28, 29])
    contrast = queries.contrast(APP, ContrastQuery(bad=bad, good=outputs([0, 5, 10, 15, 20, 25]), limit=5))
    assert said(contrast)["column 2 >= 260"] == (16, 16, 0, 24)
    assert contrast.properties[0].unusual


def test_a_partition_is_a_property(queries: LineageQueries) -> None:
    bad = tuple(StartQuery(record=f"{SINK}#write#2#{at}") for at in range(0, 30, 3))
    good = tuple(
        StartQuery(record=f"{SINK}#write#{part}#{at}") for part in (0, 1, 3) for at in range(0, 30, 3)
    )
    contrast = queries.contrast(APP, ContrastQuery(bad=bad, good=good, limit=100))
    assert said(contrast)["partition 2 of textFile lines.py:10"] == (10, 10, 0, 30)


def test_without_good_outputs_others_of_the_same_are_taken(queries: LineageQueries) -> None:
    contrast = queries.contrast(APP, ContrastQuery(bad=outputs([7])))
    assert contrast.how == ("No good outputs were named: 50 others were taken for good.",)
    assert said(contrast)["column 1 is empty"] == (4, 4, 0, 50)


def test_a_condition_names_many_outputs(tmp_path: Path) -> None:
    queries = add_flat_map(tmp_path, amounts(), [[1] * ROWS] * 4)
    query = ContrastQuery(bad=(StartQuery(where="value like '%returned'", node=f"{SOURCE}"),), limit=100)
    contrast = queries.contrast(APP, query)
    assert said(contrast)["column 3 = returned"] == (8, 8, 0, 50)


def test_records_that_made_tasks_fail_are_bad(tmp_path: Path) -> None:
    failed = [
        event(
            contract.RUN_FAILED,
            **{"time": 5, "run": 900 + part, "split": part, "action": SINK, "input": SOURCE, "stage": 1},
            **{"nodes": [FLAT_MAP, SINK], "inputs": 8, "outputs": 7, "failed_node": FLAT_MAP},
            **{"position": 7, "certain": True, "error": "ValueError", "message": "no shop"},
        )
        for part in range(3)
    ]
    queries = add_flat_map(tmp_path, amounts(), [[1] * ROWS] * 4, extra=failed)
    assert RUN < 900
    contrast = queries.contrast(APP, ContrastQuery(failures=True, limit=100))
    assert said(contrast)["column 1 is empty"][:2] == (3, 3)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (ContrastQuery(), "name a bad output"),
        (ContrastQuery(failures=True), "no failure of this application has a record"),
        (ContrastQuery(bad=(StartQuery(failure=1),)), "a failure is no output"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    queries: LineageQueries, query: ContrastQuery, words: str
) -> None:
    with pytest.raises(InvalidQueryError, match=words):
        queries.contrast(APP, query)


def test_outputs_that_are_all_bad_have_nothing_to_be_compared_with(tmp_path: Path) -> None:
    queries = add_flat_map(tmp_path, [["a", "b"]], [[1, 1]])
    with pytest.raises(InvalidQueryError, match="name good ones"):
        queries.contrast(APP, ContrastQuery(bad=outputs([0, 1], partitions=1)))
