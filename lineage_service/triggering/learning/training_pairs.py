"""What a job's waves teach: of each pair of waves, the features of the changes between them, and the error.

A pair says: had the job run at `reference` and not since, then its output at `wave` would be wrong by
`error`. So n executions give up to n (n - 1) / 2 examples, those of long ages included, which a single
chain of decisions shows only after it has gone wrong. Pairs are kept as a table of Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lineage_service.triggering.changes.changed_elements import Flags, Numbers

Waves = npt.NDArray[np.int64]

_FEATURE = "feature:"


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """k pairs by ascending `wave`: `references`, `waves`, `errors` (k), `features` (k, names).

    Waves are numbered in the order of asking. A feature that was not known is NaN.
    """

    names: tuple[str, ...]
    references: Waves
    waves: Waves
    features: Numbers
    errors: Numbers

    def __len__(self) -> int:
        return len(self.waves)

    @property
    def ages(self) -> Waves:
        return self.waves - self.references

    def labels(self, bound: float) -> Flags:
        """Is the error above the bound? Any bound can be asked of the same pairs."""
        return self.errors > bound

    def where(self, chosen: Flags) -> TrainingPairs:
        return TrainingPairs(
            self.names,
            self.references[chosen],
            self.waves[chosen],
            self.features[chosen],
            self.errors[chosen],
        )

    def among(self, waves: npt.ArrayLike) -> TrainingPairs:
        """The pairs of which both waves are in `waves`."""
        return self.where(np.isin(self.references, waves) & np.isin(self.waves, waves))

    def with_features(self, names: Sequence[str]) -> TrainingPairs:
        """With these features alone, in this order. Raises ValueError for one that they do not have."""
        chosen = [self.names.index(name) for name in names]
        return replace(self, names=tuple(names), features=self.features[:, chosen])

    def to_table(self) -> pa.Table:
        columns = {"reference": self.references, "wave": self.waves, "error": self.errors}
        columns |= {f"{_FEATURE}{name}": self.features[:, at] for at, name in enumerate(self.names)}
        return pa.table(columns)


def pairs_of_table(table: pa.Table, names: Sequence[str] | None = None) -> TrainingPairs:
    """Pairs from `to_table`. `names`: the features of now; one that the table does not have is not known."""
    kept = [name.removeprefix(_FEATURE) for name in table.column_names if name.startswith(_FEATURE)]
    names = tuple(kept if names is None else names)
    features = np.full((table.num_rows, len(names)), np.nan)
    for at, name in enumerate(names):
        if name in kept:
            features[:, at] = table.column(_FEATURE + name).to_numpy()
    references, waves = (table.column(name).to_numpy().astype(np.int64) for name in ("reference", "wave"))
    errors = table.column("error").to_numpy().astype(np.float64)
    order = np.lexsort((references, waves))
    return TrainingPairs(names, references[order], waves[order], features[order], errors[order])
