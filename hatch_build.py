"""Builds the package whole: with the agent's jar and the web page, which are not in the repository.

It is the build backend (hatchling's, with more requirements) and hatchling's build hook. A wheel or an sdist
gets what is missing or stale built first; from an sdist, which brings both, nothing is left to build. What
cannot be built ends it with one line, and a missing tool does so before anything is downloaded. An editable
install builds nothing. scripts/parts.py decides all this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hatchling import build as hatchling
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # a front end puts only this module's own name there
from scripts import parts  # noqa: E402


def __getattr__(name: str) -> Any:
    """Every other hook of a build backend is hatchling's."""
    return getattr(hatchling, name)


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What hatchling needs, and what the parts need that are to be built."""
    return [*hatchling.get_requires_for_build_wheel(config_settings), *_requires()]


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The same as of a wheel: an sdist brings the parts built."""
    return [*hatchling.get_requires_for_build_sdist(config_settings), *_requires()]


class BuildHook(BuildHookInterface[Any]):
    """Hatchling's: called before the files of a wheel or an sdist are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        with _one_line():
            parts.build()
            build_data["artifacts"] += [part.place for part in parts.chosen()]


def _requires() -> list[str]:
    """As pyproject.toml pins them."""
    with _one_line():
        names = {name for part in parts.stale() for name in part.requires}
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    lines = [line for extra in core.optional_dependencies.values() for line in extra]
    return [line for line in lines if Requirement(line).name in names]


@contextmanager
def _one_line() -> Iterator[None]:
    """A front end shows what stands on standard error: a line for people there, and no stack trace."""
    try:
        yield
    except parts.PartsNotBuilt as error:
        sys.exit(f"lineage-master cannot be built whole: {error}")
