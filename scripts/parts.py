"""The parts of the package that are built and not in the repository: the agent's jar, the page.

Says which of them a wheel or an sdist gets, which are missing or stale, and builds these. All that can go
wrong is one PartsNotBuilt with one line for people. Needs the standard library; the build of the
jar needs what its `requires` says, too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts import jvm, page
from scripts.environment import ROOT, EnvironmentFailed

#: The environment variable that leaves out parts, by their names and with commas between.
WITHOUT = "LINEAGE_BUILD_WITHOUT"


class PartsNotBuilt(Exception):
    """A part is missing and cannot be built here; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    place: str  # in the repository, as hatchling's `artifacts` have it
    is_built: Callable[[], bool]
    check_tools: Callable[[], None]
    run: Callable[[str], None]
    requires: tuple[str, ...]  # distributions that its build imports or reads


def _parts() -> tuple[Part, ...]:
    # Looked up on each call: tests put a folder of theirs into these modules.
    return (
        Part(
            name="jar",
            place="/spark_agent/jvm/lineage.jar",
            is_built=jvm.is_built,
            check_tools=jvm.check_tools,
            run=jvm.run,
            requires=("pyspark", "jgo", "rich"),
        ),
        Part(
            name="page",
            place="/ui/lineage_page/dist",
            is_built=page.is_built,
            check_tools=page.check_tools,
            run=page.run,
            requires=(),
        ),
    )


def chosen() -> tuple[Part, ...]:
    """The parts that nobody asked to leave out."""
    without = {name.strip() for name in os.environ.get(WITHOUT, "").split(",")} - {""}
    names = [part.name for part in _parts()]
    unknown = sorted(without.difference(names))
    if unknown:
        raise PartsNotBuilt(
            f"{WITHOUT} names {', '.join(unknown)}, but what can be left out is {', '.join(names)}"
        )
    return tuple(part for part in _parts() if part.name not in without)


def stale() -> tuple[Part, ...]:
    """Those of `chosen` that are to be built; raises PartsNotBuilt where tools for that are missing."""
    parts = tuple(part for part in chosen() if not part.is_built())
    problems = []
    for part in parts:
        try:
            part.check_tools()
        except (jvm.JarNotBuilt, page.PageNotBuilt) as error:
            problems.append(str(error))
        folder = (ROOT / part.place.lstrip("/")).parent
        if not os.access(folder, os.W_OK):
            problems.append(f"{folder} is not to be written: build in a copy that you may write to")
    if problems:
        names = ",".join(part.name for part in parts)
        raise PartsNotBuilt(f"{'; '.join(problems)}. To leave a part out on purpose, set {WITHOUT}={names}")
    return parts


def build() -> None:
    """Builds what is stale."""
    try:
        for part in stale():
            part.run("build")
    except (jvm.JarNotBuilt, page.PageNotBuilt, EnvironmentFailed) as error:
        raise PartsNotBuilt(str(error)) from None
    except subprocess.CalledProcessError as error:
        raise PartsNotBuilt(
            f"{Path(error.cmd[0]).name} ended with {error.returncode}; its own words stand above"
        ) from None
    except OSError as error:
        raise PartsNotBuilt(
            f"cannot write {error.filename}: {error.strerror}; build in a copy that you may write to"
        ) from None
