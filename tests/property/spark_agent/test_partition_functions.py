"""An output of a function of a partition does not change with a row that is not named as its source."""

from __future__ import annotations

import contextlib
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.generators.bodies import BATCH_SOURCES, LETTERS, LISTING_SOURCES, SOURCES, compiled
from tests.support.generators.capture import captured

ROWS = st.lists(st.sampled_from(LETTERS), min_size=3, max_size=7)


def outputs_without(source: str, rows: list[str], position: int) -> list[object] | None:
    """The outputs that do not name the row at `position`; None if the whole partition is named."""
    with contextlib.redirect_stdout(io.StringIO()):
        outputs, sources = captured(compiled(source), rows)
    if sources is None:
        return None
    assert len(outputs) == len(sources)
    return [repr(output) for output, named in zip(outputs, sources, strict=True) if position not in named]


def assert_unnamed_rows_do_not_matter(source: str, rows: list[str]) -> None:
    try:
        is_bound = outputs_without(source, rows, 0) is None
    except Exception:  # noqa: BLE001 - the function reads what was not set, or the like
        return
    if is_bound:
        return
    for position in range(len(rows)):
        before = outputs_without(source, rows, position)
        for letter in LETTERS:
            others = [*rows[:position], letter, *rows[position + 1 :]]
            try:
                after = outputs_without(source, others, position)
            except Exception:  # noqa: BLE001 - another row makes it fail
                continue
            assert after is None or after == before, f"row {position} as {letter!r}:\n{source}"


@settings(max_examples=60)
@given(SOURCES, ROWS)
def test_what_is_not_named_does_not_matter(source: str, rows: list[str]) -> None:
    assert_unnamed_rows_do_not_matter(source, rows)


@settings(max_examples=40)
@given(LISTING_SOURCES, ROWS)
def test_what_is_not_named_does_not_matter_to_a_list(source: str, rows: list[str]) -> None:
    assert_unnamed_rows_do_not_matter(source, rows)


@settings(max_examples=40)
@given(BATCH_SOURCES, ROWS)
def test_what_is_not_named_does_not_matter_to_a_batch(source: str, rows: list[str]) -> None:
    assert_unnamed_rows_do_not_matter(source, rows)
