"""Where this user's lineage lives on this machine: one folder, whatever the current folder is.

LINEAGE_HOME wins; else it is the platform's folder for a user's data. The agent and the service both ask
here, so that a job finds the broker of `lineage up`, and a query the store of `lineage consume`. Makes
nothing and looks at nothing on the disk.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

__all__ = ["FORMER_HOME", "NAME", "lineage_home"]

#: Of the folder within the platform's own.
NAME = "lineage-master"
#: The default of earlier versions, below the current folder of each command.
FORMER_HOME = os.path.join(".cache", "lineage")


def lineage_home(environment: Mapping[str, str], platform: str | None = None) -> str:
    """The home folder. It begins with `~` where the user has no folder, which no absolute path does.

    `platform` is one of `sys.platform`, by default this machine's.
    """
    platform = platform or sys.platform
    named = environment.get("LINEAGE_HOME", "").strip()
    if named:
        return _expanded(named, environment)
    if platform == "darwin":
        return _expanded(os.path.join("~", "Library", "Application Support", NAME), environment)
    if platform == "win32":
        data = environment.get("LOCALAPPDATA", "").strip()
        return os.path.join(data or _expanded(os.path.join("~", "AppData", "Local"), environment), NAME)
    data = environment.get("XDG_DATA_HOME", "")
    # The XDG Base Directory Specification: a relative path there is invalid and ignored.
    if not os.path.isabs(data):
        data = _expanded(os.path.join("~", ".local", "share"), environment)
    return os.path.join(data, NAME)


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    """With `~` as the user's folder: shells put it there, settings files and services do not."""
    home = environment.get("HOME", "")
    if os.path.isabs(home) and (path == "~" or path.startswith("~/")):
        return home.rstrip("/") + path[1:]
    return os.path.expanduser(path)
