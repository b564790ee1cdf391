"""Whether a replay made the output rows that were asked for.

By the texts of rows, as multisets, sink by sink: no lineage of the replay is needed. Promises that nothing is
`reproduced` but what has the same text; where other rows of the original have that text too, it says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lineage_service.lineage import AskedRecord, ReplayedOutput, Verdict
from lineage_service.replays.text_table import TextTable
from spark_agent import contract
from spark_agent.contract.row_alignment import are_close, corresponding_texts

__all__ = ["Sides", "Verified", "verified", "worst"]

#: Rows of the replay that are looked at for what stands in the place of a row that is not there.
_MOST_CANDIDATES = 100_000
_ORDER: tuple[Verdict, ...] = ("reproduced", "close", "changed", "no", "refused")

_NOT_WRITTEN = "the replay wrote nothing in its place"
_NO_TEXT = "its text in the original is not known, so it cannot be compared"


@dataclass(frozen=True, slots=True)
class Sides:
    """What one sink wrote in both runs. None: it cannot be read, and `note` says why."""

    was: TextTable | None
    now: TextTable | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """`extra`: rows that the replay has in the same sinks and nobody asked for; None: not counted."""

    outputs: tuple[ReplayedOutput, ...]
    extra: int | None


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """That of the replay; `no` where nothing was asked for."""
    return max(verdicts, key=_ORDER.index, default="no")


def verified(application_id: str, asked: Sequence[AskedRecord], sides: Mapping[int, Sides]) -> Verified:
    """Of rows of the sinks in `sides`, in the order in which they were asked for."""
    by_sink: dict[int, list[int]] = defaultdict(list)
    for number, record in enumerate(asked):
        by_sink[record.node].append(number)
    outputs: dict[int, ReplayedOutput] = {}
    extra: int | None = 0
    for node, numbers in by_sink.items():
        side = sides.get(node, Sides(None, None, _NOT_WRITTEN))
        of_sink, more = _of_sink(application_id, [asked[number] for number in numbers], side)
        outputs.update(zip(numbers, of_sink, strict=True))
        extra = None if extra is None or more is None else extra + more
    return Verified(tuple(outputs[number] for number in range(len(asked))), extra)


def _of_sink(
    application_id: str, asked: Sequence[AskedRecord], side: Sides
) -> tuple[list[ReplayedOutput], int | None]:
    if side.now is None:
        why = side.note or _NOT_WRITTEN
        return [_output(application_id, record, "no", None, None, why) for record in asked], None
    texts = [record.text for record in asked if record.text is not None]
    times = Counter(texts)
    alike = _alike(side.was, times)
    counts = side.now.counts(list(times))
    outputs: list[ReplayedOutput] = []
    missing: list[int] = []
    for record in asked:
        text = record.text
        others = None if text is None else alike.get(text)
        if text is None:
            outputs.append(_output(application_id, record, "no", None, None, _NO_TEXT))
        elif counts[text] > 0:
            counts[text] -= 1
            outputs.append(_output(application_id, record, "reproduced", text, others, _by_luck(others)))
        else:
            missing.append(len(outputs))
            outputs.append(_output(application_id, record, "no", None, others, ""))
    candidates = side.now.others(list(times), _MOST_CANDIDATES) if missing else []
    for number, now, verdict, why in _in_their_place(
        [(number, asked[number].text or "") for number in missing], candidates
    ):
        outputs[number] = replace(outputs[number], verdict=verdict, is_=now, why=why)
    placed = sum(output.verdict != "no" for output in outputs)
    return outputs, side.now.rows - placed


def _in_their_place(
    missing: Sequence[tuple[int, str]], candidates: Sequence[str]
) -> list[tuple[int, str, Verdict, str]]:
    """(number, text of the replay, verdict, why) of rows that are not there as they were."""
    placed: list[tuple[int, str, Verdict, str]] = []
    left = list(candidates)
    rest: list[tuple[int, str]] = []
    for number, was in missing:
        near = next((text for text in left if are_close(was, text)), None)
        if near is None:
            rest.append((number, was))
            continue
        left.remove(near)
        placed.append((number, near, "close", "numbers differ by less than 1e-9 of their size"))
    for before, after, key in corresponding_texts([was for _, was in rest], left):
        why = f"the same key: {key}" if key is not None else "no other row has its form"
        placed.append((rest[before][0], left[after], "changed", why))
    return placed


def _alike(was: TextTable | None, times: Counter[str]) -> Mapping[str, int]:
    """How many other rows of the original have each text."""
    if was is None:
        return {}
    counts = was.counts(list(times))
    return {text: max(counts[text] - count, 0) for text, count in times.items()}


def _by_luck(others: int | None) -> str:
    if not others:
        return ""
    rows = "row of the original looks" if others == 1 else "rows of the original look"
    return f"{others:,} other {rows} the same, so it may be one of these"


def _output(
    application_id: str,
    record: AskedRecord,
    verdict: Verdict,
    now: str | None,
    alike: int | None,
    why: str,
) -> ReplayedOutput:
    return ReplayedOutput(
        path=record.path,
        row=record.row,
        line=None if record.row is None else record.row + 1,
        record=f"{contract.node_id(application_id, record.node)}#{record.record_id}",
        verdict=verdict,
        was=record.text,
        is_=now,
        alike=alike,
        why=why,
    )
