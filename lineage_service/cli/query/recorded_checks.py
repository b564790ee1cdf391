"""What was verified of an explanation, for people: by the command itself, or as somebody has recorded it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from lineage_service.lineage import Explanation, ExplanationCheck, Verification

__all__ = ["proof_lines"]

#: Checks of other rows that are shown, and rows of each.
_MOST_CHECKS, _MOST_ROWS = 2, 10


def proof_lines(explanation: Explanation) -> Iterator[str]:
    """What running has shown."""
    of_these = next((check for check in explanation.checks if check.these_rows), None)
    if explanation.verified is not None:
        on = "" if of_these is None else f" on {_date(of_these)}"
        yield f"verified{on}: the job gives it again on these rows alone; {_work(explanation.verified)}"
        yield from () if of_these is None else (f"  {note}" for note in of_these.notes)
    others = [check for check in explanation.checks if not check.these_rows]
    for check in others[:_MOST_CHECKS]:
        yield from _of_others(check)


def _of_others(check: ExplanationCheck) -> Iterator[str]:
    """They say nothing of the rows of the answer."""
    minimal = "; none of them can be left out" if check.minimal else ""
    lacking = f", without {_rows(check.left_out_total)} of these" if check.left_out_total else ""
    yield (
        f"verified on {_date(check)} of other rows: {_rows(check.total)}, {check.added_total:,} of them not "
        f"among these{lacking}; {_runs(check.runs)}{minimal}"
    )
    for row in check.added[:_MOST_ROWS]:
        place = row.record_id if row.path is None else f"{row.path}:{row.line}"
        yield f"  + {place}" + ("" if row.text is None else f"  {row.text}")
    more = check.added_total - len(check.added[:_MOST_ROWS])
    if more > 0:
        yield f"  + and {more:,} more"


def _work(verified: Verification) -> str:
    added = "nothing" if not verified.added else _rows(verified.added)
    minimal = "; none of them can be left out" if verified.minimal else ""
    return f"{_runs(verified.runs)}, {added} added{minimal}"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _date(check: ExplanationCheck) -> str:
    return datetime.fromtimestamp(check.checked_at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
