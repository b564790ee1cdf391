"""Which outputs of two runs correspond. Pure.

With a dataset, its last two complete writes, or those of two applications. Else the one output that both
have: by the name of its dataset, then by the operation and its call site, then because each has only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lineage_service.comparison.correspondence import corresponding
from lineage_service.datasets.catalogue import Catalogue, Entry, Placed
from lineage_service.datasets.search import dataset_named
from lineage_service.errors import InvalidQueryError, NotFoundError

__all__ = ["Output", "OutputPair", "chosen_outputs"]

_MOST_LISTED = 10


class Output(NamedTuple):
    """What an application wrote."""

    entry: Entry
    write: Placed

    @property
    def application_id(self) -> str:
        return self.write.application.application_id

    @property
    def written_again(self) -> Placed | None:
        """The next write of its dataset, which may have replaced it."""
        later = [write for write in self.entry.writes if write.order > self.write.order]
        return later[0] if later else None


OutputPair = tuple[Output, Output]
IsComplete = Callable[[Placed], bool]


def chosen_outputs(
    catalogue: Catalogue,
    is_complete: IsComplete,
    *,
    before: str | None,
    after: str | None,
    dataset: str | None,
) -> OutputPair:
    """The earlier one and the later one; `is_complete` says whether a write ended well.

    Raises NotFoundError, InvalidQueryError.
    """
    entry = None if dataset is None else dataset_named(catalogue, dataset)
    if before is None or after is None:
        if entry is None:
            raise InvalidQueryError("say which two applications, or which dataset")
        return _last_two(entry, is_complete)
    if before == after:
        raise InvalidQueryError(f"{before} is one run: give two runs of a job")
    pairs = corresponding(
        _outputs(catalogue, before), _outputs(catalogue, after), (_by_dataset, _by_call, _by_operation)
    )
    if entry is not None:
        pairs = [pair for pair in pairs if any(output.entry is entry for output in pair)]
    if len(pairs) == 1:
        return pairs[0]
    if pairs:
        listed = ", ".join(pair[1].entry.path for pair in pairs[:_MOST_LISTED])
        more = f" and {len(pairs) - _MOST_LISTED} more" if len(pairs) > _MOST_LISTED else ""
        raise InvalidQueryError(
            f"{before} and {after} have {len(pairs)} outputs in common: give one as the dataset: "
            f"{listed}{more}"
        )
    what = "no output in common" if entry is None else f"no output in common that is {entry.path}"
    raise NotFoundError(
        f"{before} and {after} have {what}: {before} wrote {_names(_outputs(catalogue, before))}; {after} "
        f"wrote {_names(_outputs(catalogue, after))}"
    )


def _last_two(entry: Entry, is_complete: IsComplete) -> OutputPair:
    writes = [write for write in entry.writes if is_complete(write)]
    if len(writes) < 2:
        times = "once" if writes else "never"
        raise NotFoundError(
            f"{entry.path} was {times} written by a run that ended well, and a comparison needs two"
        )
    return Output(entry, writes[-2]), Output(entry, writes[-1])


def _outputs(catalogue: Catalogue, application_id: str) -> list[Output]:
    """Of each dataset the last write."""
    outputs = []
    for entry in catalogue.entries.values():
        writes = [write for write in entry.writes if write.application.application_id == application_id]
        if writes:
            outputs.append(Output(entry, writes[-1]))
    return sorted(outputs, key=lambda output: output.write.order)


def _by_dataset(output: Output) -> object:
    return output.entry.place


def _by_call(output: Output) -> object:
    return output.write.use.operation, output.write.use.call_site.rpartition("/")[2]


def _by_operation(output: Output) -> object:
    return output.write.use.operation, output.entry.place.name.rpartition("/")[2]


def _names(outputs: Iterable[Output]) -> str:
    return ", ".join(output.entry.path for output in outputs) or "nothing that is known by name"
