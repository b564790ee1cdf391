"""What is asked of a job's forests, kept as numbers in the flow store from one question to the next.

The forests follow from the pairs that they are of: of the same pairs they are always the same. So what is
kept of a job is looked up by a digest of these, and never trusted beyond it. Where it is not there, the
forests are grown anew, and kept.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lineage_service.errors import LineageError
from lineage_service.store.errors import translated_errors
from lineage_service.store.late_table import LateTable
from lineage_service.store.location import StoreLocation
from lineage_service.triggering.changes.changed_elements import Numbers
from lineage_service.triggering.learning import forest, phases
from lineage_service.triggering.learning.grown_trees import NODES, GrownTrees, grown
from lineage_service.triggering.learning.phases import Policy, Progress
from lineage_service.triggering.learning.training_pairs import TrainingPairs
from lineage_service.triggering.weighing.kept_elements import append_rows, read_part

__all__ = ["Expected", "KeptLessons"]

logger = logging.getLogger(__name__)

_TABLE = "wave_forests"
_SCHEMA = pa.schema([("key", pa.string()), ("digest", pa.string()), ("lesson", pa.binary())])
#: Another one for each change of what is kept, or of how forests are grown.
_VERSION = "1"
_GROWN_BY = (forest.TREES, forest.LEAF, forest.FEATURES_OF_A_SPLIT, forest.PAIRS_OF_A_TREE)


class Expected(NamedTuple):
    """`probability` that the error is above the bound, the `size` of the error as `forest.size_of` it, and
    the first feature `unlike` those of training; empty: none is.
    """

    probability: float
    size: float
    unlike: str


@dataclass(frozen=True, slots=True)
class _Lesson:
    probabilities: GrownTrees
    sizes: GrownTrees
    least: Numbers
    most: Numbers

    def of(self, row: Numbers, names: tuple[str, ...]) -> Expected:
        outside = np.flatnonzero((row < self.least) | (row > self.most))
        return Expected(
            float(self.probabilities.mean(row[None, :])[0]),
            float(self.sizes.mean(row[None, :])[0]),
            names[outside[0]] if len(outside) else "",
        )

    def to_bytes(self) -> bytes:
        trees = {"p": self.probabilities, "s": self.sizes}
        arrays: dict[str, Any] = {"least": self.least, "most": self.most}
        for at, one in trees.items():
            arrays |= {f"{at}_{name}": numbers for name, numbers in one.to_arrays().items()}
        kept = io.BytesIO()
        np.savez_compressed(kept, **arrays)
        return kept.getvalue()


def _of_bytes(kept: bytes) -> _Lesson:
    with np.load(io.BytesIO(kept), allow_pickle=False) as arrays:
        probabilities, sizes = (
            GrownTrees(**{name: arrays[f"{at}_{name}"] for name in ("roots", *NODES)}) for at in ("p", "s")
        )
        return _Lesson(probabilities, sizes, arrays["least"], arrays["most"])


class KeptLessons:
    """Of one flow store."""

    def __init__(self, location: StoreLocation) -> None:
        """Raises StoreUnavailableError."""
        self._location = location
        self._table = LateTable(location, _TABLE, _SCHEMA, "key")

    def expected(
        self, job: str, progress: Progress, pairs: TrainingPairs, policy: Policy, row: Numbers
    ) -> Expected:
        """What the lesson of `phases.lesson` says of a row of features. `job` is the key of one.

        Raises StoreUnavailableError.
        """
        digest = _digest(progress, pairs, policy)
        kept = self._kept(job, digest)
        if kept is None:
            kept = _learned(progress, pairs, policy)
            self._keep(job, digest, kept)
        return kept.of(row, pairs.names)

    def forget(self, job: str) -> None:
        """Remove what is kept of a job, its files as well."""
        self._table.delete(job)
        with translated_errors(self._location.table(_TABLE)):
            self._location.remove_parts(_TABLE, f"key={job}")

    def _kept(self, job: str, digest: str) -> _Lesson | None:
        rows = read_part(self._location, _TABLE, self._table, job, _SCHEMA)
        for text, kept in zip(rows.column("digest").to_pylist(), rows.column("lesson"), strict=True):
            if text == digest:
                return _of_bytes(kept.as_py())
        return None

    def _keep(self, job: str, digest: str, lesson: _Lesson) -> None:
        """Instead of an older one. Without it the next question takes longer, and no more."""
        row = {"key": [job], "digest": [digest], "lesson": [lesson.to_bytes()]}
        try:
            self._table.delete(job)
            append_rows(self._table, job, pa.RecordBatch.from_pydict(row, schema=_SCHEMA))
        except LineageError as error:
            logger.info("the forests of a job are not kept: %s", error)


def _learned(progress: Progress, pairs: TrainingPairs, policy: Policy) -> _Lesson:
    lesson = phases.lesson(progress, pairs, policy)
    assert isinstance(lesson.forest, forest.RandomForest)
    probabilities, sizes = grown(lesson.forest._trees), grown(lesson.errors._trees)
    return _Lesson(probabilities, sizes, lesson.least, lesson.most)


def _digest(progress: Progress, pairs: TrainingPairs, policy: Policy) -> str:
    """Of all that a lesson follows from: pairs of waves behind the last fit are not among it."""
    of_training = pairs.where(pairs.waves <= progress.fitted)
    about = [progress.since, progress.fitted, policy.bound, policy.horizon, policy.seed, *_GROWN_BY]
    ranges = [phases.MARGIN, phases.MARGIN_OF_SIZE, forest.LARGEST_SIZE]
    text = json.dumps([_VERSION, _grown_by(), about, ranges, of_training.names])
    digest = hashlib.sha256(text.encode())
    for numbers in (of_training.references, of_training.waves, of_training.features, of_training.errors):
        digest.update(np.ascontiguousarray(numbers).tobytes())
    return digest.hexdigest()


@cache
def _grown_by() -> str:
    return metadata.version("scikit-learn")
