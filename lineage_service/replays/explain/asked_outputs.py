"""Output rows that must come out of a run again. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from lineage_service.lineage import AskedRecord, Verdict
from spark_agent.contract.row_alignment import are_close

__all__ = ["AskedOutputs"]


class AskedOutputs:
    """By sink, each as often as it was asked for."""

    def __init__(self, asked: Sequence[AskedRecord]) -> None:
        self._texts: dict[int, Counter[str]] = defaultdict(Counter)
        for record in asked:
            assert record.text is not None
            self._texts[record.node][record.text] += 1

    @property
    def sinks(self) -> tuple[int, ...]:
        return tuple(self._texts)

    def texts(self, sink: int) -> list[str]:
        return sorted(self._texts[sink].elements())

    def verdict(self, rows: Mapping[int, Sequence[str]]) -> Verdict:
        """Of what a run wrote, by sink: `reproduced`, `close` where numbers differ by 1e-9, or `no`."""
        verdict: Verdict = "reproduced"
        for sink, texts in self._texts.items():
            left = Counter(rows.get(sink, ()))
            missing = texts - left
            if not missing:
                continue
            others = list((left - texts).elements())
            for text in missing.elements():
                near = next((other for other in others if are_close(text, other)), None)
                if near is None:
                    return "no"
                others.remove(near)
                verdict = "close"
        return verdict
