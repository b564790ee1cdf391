"""What the outputs of a replay have otherwise than those of the original: gone, new, changed, the same.

Rows are paired by their texts as multisets, and what is left by the keys or forms that nothing else has.
"""

from __future__ import annotations

from lineage_service.lineage import ChangedOutput, OutputDifferences
from lineage_service.replays.verification import Sides
from spark_agent.contract.row_alignment import corresponding_texts

__all__ = ["have_differences", "have_new_rows", "output_differences"]

MOST_LISTED = 1_000
#: Rows of each kind that are looked at for pairs.
_MOST_PAIRED = 20_000


def output_differences(path: str, to: str | None, sides: Sides) -> OutputDifferences:
    """Of one sink."""
    if sides.was is None or sides.now is None:
        return _nothing(path, to, sides.note or "it was not written by both runs")
    differing = sides.was.differences(sides.now, _MOST_PAIRED)
    gone, new = sides.was.at(differing.gone), sides.now.at(differing.new)
    note = sides.note
    pairs: list[tuple[int, int, str | None]] = []
    if max(differing.gone_total, differing.new_total) > _MOST_PAIRED:
        note = "; ".join(filter(None, (note, f"more than {_MOST_PAIRED:,} rows differ, so none was paired")))
    else:
        pairs = corresponding_texts(gone, new)
    changed = [ChangedOutput(was=gone[before], is_=new[after], key=key) for before, after, key in pairs]
    left, right = {before for before, _, _ in pairs}, {after for _, after, _ in pairs}
    return OutputDifferences(
        path=path,
        to=to,
        gone=tuple(text for at, text in enumerate(gone) if at not in left)[:MOST_LISTED],
        new=tuple(text for at, text in enumerate(new) if at not in right)[:MOST_LISTED],
        changed=tuple(changed[:MOST_LISTED]),
        gone_total=differing.gone_total - len(pairs),
        new_total=differing.new_total - len(pairs),
        changed_total=len(pairs),
        same=differing.same,
        note=note,
    )


def have_differences(differences: OutputDifferences) -> bool:
    """Not known counts as one."""
    totals = (differences.gone_total, differences.new_total, differences.changed_total)
    return any(total is None or total > 0 for total in totals)


def have_new_rows(differences: OutputDifferences) -> bool:
    """Rows that the original does not have. Not known counts as one."""
    totals = (differences.new_total, differences.changed_total)
    return any(total is None or total > 0 for total in totals)


def _nothing(path: str, to: str | None, note: str) -> OutputDifferences:
    return OutputDifferences(
        path=path,
        to=to,
        gone=(),
        new=(),
        changed=(),
        gone_total=None,
        new_total=None,
        changed_total=None,
        same=None,
        note=note,
    )
