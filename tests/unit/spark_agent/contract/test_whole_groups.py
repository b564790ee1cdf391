"""For which operations rows outside of a lineage may matter."""

from __future__ import annotations

import pytest

from spark_agent.contract.whole_groups import Operation, why_others_count

Chain = list[tuple[str, list[int]]]
"""Names with the numbers of parents; the first ones are sources, a name with `?` has an upper bound.

What is before a colon is the description.
"""


def operations(chain: Chain) -> list[Operation]:
    return [
        Operation(
            node_id=f"app#{number}",
            kind="operator" if parents else "source",
            name=name.rpartition(":")[2].rstrip("?"),
            description=name.rpartition(":")[0],
            call_site=f"/home/ann/job.py:{number}",
            exact=not name.endswith("?"),
            parents=[f"app#{parent}" for parent in parents],
        )
        for number, (name, parents) in enumerate(chain)
    ]


SAID = "may look at rows that are not in its lineage"
TWICE = "groups what was grouped before, of which only a part is in its lineage"


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        ([("textFile", []), ("map", [0]), ("groupByKey", [1]), ("filter", [2])], ""),
        ([("a", []), ("b", []), ("union", [0, 1]), ("reduceByKey", [2])], ""),
        ([("a", []), ("b", []), ("join", [0, 1]), ("map", [2])], ""),
        ([("a?", []), ("map", [0])], ""),
        ([("a", []), ("b", []), ("Inner, (k = k):Join", [0, 1])], ""),
        ([("a", []), ("b", []), ("LeftOuter, (k = k):Join", [0, 1])], f"Join (job.py:2) {SAID}"),
        ([("a", []), ("b", []), ("leftOuterJoin", [0, 1])], f"leftOuterJoin (job.py:2) {SAID}"),
        ([("a", []), ("zipWithIndex", [0])], f"zipWithIndex (job.py:1) {SAID}"),
        ([("a", []), ("map?", [0])], f"map (job.py:1) {SAID}"),
        ([("a", []), ("groupByKey?", [0])], f"groupByKey (job.py:1) {SAID}"),
        ([("a", []), ("b", []), ("map", [0, 1])], f"map (job.py:2) {SAID}"),
        ([("a", []), ("distinct", [0]), ("groupByKey", [1])], f"groupByKey (job.py:2) {TWICE}"),
        ([("a", []), ("distinct", [0]), ("b", []), ("join", [1, 2])], f"join (job.py:3) {TWICE}"),
    ],
)
def test_why_other_rows_may_matter(chain: Chain, why: str) -> None:
    assert why_others_count(operations(chain)) == why


def test_a_way_without_groups() -> None:
    assert why_others_count(operations([("a", []), ("filter", [0])]), most_groupings=0) == ""
    assert TWICE in why_others_count(operations([("a", []), ("join", [0])]), most_groupings=0)
