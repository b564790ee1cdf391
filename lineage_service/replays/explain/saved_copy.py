"""Checks that files of some rows give output rows again: the command runs on these files and nothing else.

Nothing is chosen or captured in this run. The paths of the inputs mean the saved files, and the outputs go
into the sandbox, as in every replay. So what comes out is what stock Spark makes of these files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lineage_service.lineage import Verdict
from lineage_service.replays.explain.asked_outputs import AskedOutputs
from lineage_service.replays.original import Original
from lineage_service.replays.sift.job_runs import JobRuns, last_line
from lineage_service.replays.specification import Plan
from lineage_service.tracing.files.file_parts import normal_path, paths_of

__all__ = ["Checked", "SavedCopy"]


@dataclass(frozen=True, slots=True)
class Checked:
    """`why_not`: why the run shows nothing, or what came out instead; empty where the rows came out."""

    verdict: Verdict
    why_not: str


@dataclass(frozen=True, slots=True)
class SavedCopy:
    """The saved files: path of the input -> its copy. `left_out`: inputs of which there is none, and why."""

    original: Original
    copies: Mapping[str, str]
    left_out: Mapping[str, str]

    def places(self) -> dict[str, str]:
        """What the job reads -> what stands for it: the files, and the folders and patterns that it named."""
        places = {normal_path(path): copy for path, copy in self.copies.items()}
        for source in self.original.sources.values():
            if source.location is None:
                continue
            location = normal_path(source.location).rstrip("/")
            files = {normal_path(path) for info in source.partitions.values() for path in paths_of(info)}
            folders = {_folder(location, path, places[path]) for path in files & places.keys()}
            if len(folders) == 1 and (folder := folders.pop()) is not None:
                places[location] = folder
        return places

    def not_copied(self) -> Iterator[str]:
        """Inputs of which the run would read the original."""
        names = {normal_path(path) for path in self.copies}
        for source in self.original.sources.values():
            files = {normal_path(path) for info in source.partitions.values() for path in paths_of(info)}
            if files and not files & names:
                yield f"{source.name} ({source.location or min(files)})"

    def check(self, runs: JobRuns, asked: AskedOutputs, template: Plan) -> Checked:
        """Raises ReplayError, OutOfTimeError."""
        missing = next(self.not_copied(), None)
        if missing is not None:
            why = next(iter(self.left_out.values()), "none of its rows could be written")
            return Checked("no", f"{missing} could not be saved: {why}")
        stand_ins = tuple(sorted(self.places().items()))
        run = runs.run(replace(template, mode="all", sources=(), stand_ins=stand_ins), asked.sinks)
        if run.exit_code:
            last = last_line(run.printed)[:300]
            return Checked(
                "no", f"on the saved files the command ended with exit code {run.exit_code}: {last}"
            )
        verdict = asked.verdict(run.rows)
        if verdict == "no":
            why = "a run on the saved files alone does not give it: what it is may depend on partitions"
            return Checked(verdict, why)
        return Checked(verdict, "")


def _folder(location: str, path: str, copy: str) -> str | None:
    """What stands for a folder or a file, if `copy` does for a file of it; None of a pattern."""
    if path == location:
        return copy
    below = path[len(location) :]
    is_below = path.startswith(f"{location}/") and copy.endswith(below)
    return copy[: -len(below)] if is_below else None
