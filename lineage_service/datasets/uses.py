"""What one application wrote and read, as far as a catalogue of datasets needs it. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lineage_service.lineage import Column
from lineage_service.outcomes import NodeOutcome, Outcome
from spark_agent.contract.dataset_names import DatasetName

__all__ = ["ApplicationDetails", "ApplicationUses", "Files", "Unnamed", "Use", "UseDetails"]

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
    outcome: NodeOutcome | None = None
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


@dataclass(frozen=True, slots=True)
class UseDetails:
    """What task runs say of a source or a sink: `rows` is None where they are not counted."""

    rows: int | None = None
    exact: bool = True
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ApplicationDetails:
    """What only all events of an application say: lists and graphs do without."""

    complete: bool
    uses: Mapping[int, UseDetails]  # by node
