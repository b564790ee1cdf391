"""What one application wrote and read, as far as a catalogue of datasets needs it. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lineage_service.lineage import ActionState, Column
from lineage_service.outcomes import Outcome
from spark_agent.contract.dataset_names import DatasetName

__all__ = ["ApplicationUses", "Files", "Unnamed", "Use"]

Files = Mapping[DatasetName, tuple[str, ...]]
"""The names of the files that a source read, by their folder. Of the partitions of a table it is that, and no
names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A source or a sink.

    `place` is what it names: a file, a folder, a pattern, a table, a topic. `behind` are, of a sink, the
    sources that its rows came from, each with whether that is certain.
    """

    node: int
    operation: str
    call_site: str
    is_write: bool
    place: DatasetName
    format: str
    at: int
    files: Files = field(default_factory=dict)
    state: ActionState | None = None
    rows: int | None = None
    exact: bool = True
    reason: str = ""
    #: False: its query was not followed, so other files than `files` may have been read.
    is_followed: bool = True
    schema: tuple[Column, ...] = ()
    partitions: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    behind: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Unnamed:
    """What a query that was not followed wrote or read, where only a text for people says what it is."""

    node: int
    text: str
    is_write: bool
    at: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationUses:
    """One application."""

    application_id: str
    name: str
    began: int
    outcome: Outcome
    uses: tuple[Use, ...] = ()
    unnamed: tuple[Unnamed, ...] = ()
