"""Where the processes of a replay keep their own files: all below the sandbox.

Sets variables of the environment, which every process that is started inherits. A script's own temporary
files, Spark's blocks and shuffles, caches of plots and the agent's spool are then the replay's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping

__all__ = ["folders_of", "move_into", "name_folders"]

_TEMPORARY = "tmp"
#: Variable -> the folder below the sandbox.
_FOLDERS = {
    "TMPDIR": _TEMPORARY,
    "SPARK_LOCAL_DIRS": f"{_TEMPORARY}/spark",
    "SPARK_WORKER_DIR": f"{_TEMPORARY}/work",
    "SPARK_LOG_DIR": f"{_TEMPORARY}/logs",
    "MPLCONFIGDIR": f"{_TEMPORARY}/matplotlib",
    "NUMBA_CACHE_DIR": f"{_TEMPORARY}/numba",
    "LINEAGE_SPOOL_DIR": "spool",
}
#: Others, each with what hides it.
_HIDING = ("TEMP", "TMP", "LOCAL_DIRS")
_OPTIONS = "SPARK_SUBMIT_OPTS"


def folders_of(sandbox: str) -> dict[str, str]:
    """The folders by their variables."""
    return {name: os.path.join(sandbox, folder) for name, folder in _FOLDERS.items()}


def move_into(sandbox: str, environment: MutableMapping[str, str]) -> None:
    """Make the folders, and let this process and those that it starts use them."""
    for folder in folders_of(sandbox).values():
        os.makedirs(folder, mode=0o700, exist_ok=True)
    name_folders(sandbox, environment)
    sys.dont_write_bytecode = True


def name_folders(sandbox: str, environment: MutableMapping[str, str]) -> None:
    """Name the folders in the environment of a process, whatever is named there."""
    environment.update(folders_of(sandbox))
    for name in _HIDING:
        environment.pop(name, None)
    temporary = f"-Djava.io.tmpdir={os.path.join(sandbox, _TEMPORARY)}"
    options = environment.get(_OPTIONS, "")
    if temporary not in options.split():
        environment[_OPTIONS] = f"{options} {temporary}".strip()
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
