from __future__ import annotations

import pytest

from spark_agent.sql.rewrite.descriptions import described


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        ("Filter (isnotnull(v#12L) AND (v#12L > 3))", "Filter", "v IS NOT NULL AND (v > 3)"),
        ("Filter atleastnnonnulls(1, cast(v#1 as double))", "Filter", "cast(v as double) IS NOT NULL"),
        ("Filter atleastnnonnulls(2, a#1, b#2)", "Filter", "a IS NOT NULL AND b IS NOT NULL"),
        ("Filter atleastnnonnulls(1, a#1, b#2)", "Filter", "at least 1 of (a, b) IS NOT NULL"),
        ("Filter isnull(named_struct(a, b#1))", "Filter", "named_struct(a, b) IS NULL"),
        (
            "Aggregate [knownfloatingpointnormalized(normalizenanandzero(x#3))], [x#3, sum(v#2) AS total#9]",
            "Aggregate",
            "[x], [x, sum(v) AS total]",
        ),
        ("Join Inner, (k#1 = k#7L)", "Join", "Inner, (k = k)"),
        ("Filter ((a#1 > 1) OR (b#2 < 2))", "Filter", "(a > 1) OR (b < 2)"),
        ("Filter (a#1 > 1) OR (b#2 < 2)", "Filter", "(a > 1) OR (b < 2)"),
        ("Filter isnotnull(a#1, ... 3 more fields", "Filter", "isnotnull(a, ... 3 more fields"),
        ("Filter (isnotnull(", "Filter", "(isnotnull("),
        ("Union false, false", "Union", "false, false"),
        ("Range (0, 10, step=1, splits=Some(3))", "Range", "0, 10, step=1, splits=Some(3)"),
        ("Filter NOT myisnull(a#1)", "Filter", "NOT myisnull(a)"),
    ],
)
def test_an_operator_is_described_as_people_write(text: str, name: str, description: str) -> None:
    assert described(text, name) == description
