"""Which folder is the spool of a process: beside Spark's own local folders, and not below what Spark deletes.

Spark, YARN and Kubernetes remove an application's folders when it ends. So the spool is in the first folder
above them that outlives the application. `Spool.java` decides the same.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile

_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: Folders that go with an application, an executor or a container: Spark's, those of its workers, YARN's.
_OF_APPLICATION = re.compile(
    rf"(spark|pyspark|executor|blockmgr)-{_UUID}|app-[0-9]+-[0-9]+|appcache|(application|container)_[e0-9].*"
)


def spool_folder(configured: str, local_folders: str) -> str:
    """`configured`, else one beside the first of `local_folders`, which are separated by commas."""
    if configured:
        return os.path.abspath(os.path.expanduser(configured.removeprefix("file://")))
    folders = sorted(filter(None, map(str.strip, local_folders.split(","))))
    base = lasting_folder(folders[0]) if folders else tempfile.gettempdir()
    return os.path.join(base, f"lineage-spool-{os.getuid() if hasattr(os, 'getuid') else 'user'}")


def lasting_folder(path: str) -> str:
    """The nearest folder above `path` that is not of one application. `path` itself, if it is such a one."""
    parts = os.path.abspath(path).split(os.sep)
    first = next((index for index, part in enumerate(parts) if _OF_APPLICATION.fullmatch(part)), len(parts))
    return os.sep.join(parts[:first]) or os.sep


def make_folder(folder: str, *, is_own: bool) -> str:
    """Make the folder if it is not there. Returns why it cannot be used; empty where it can.

    `is_own`: it is ours by name, in a place where others may write. Then nobody else may have made it.
    """
    try:
        os.makedirs(folder, mode=0o700 if is_own else 0o777, exist_ok=True)
        status = os.lstat(folder)
    except OSError as error:
        return f"the spool folder {folder} cannot be made ({error.strerror or error})"
    if is_own and (not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid()):
        return f"the spool folder {folder} belongs to somebody else: name one with spark.lineage.spool.dir"
    return ""
