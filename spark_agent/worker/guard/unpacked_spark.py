"""Imports PySpark from the folder that its archive was made of, where a worker's path has the archive.

Spark puts `pyspark.zip` before all other packages of its Python workers. Python compiles what it imports from
an archive, each time anew: a second for each daemon. The folder of the same installation has the same modules
compiled. No other module is found elsewhere than before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

__all__ = ["folder_of", "import_pyspark"]

_ARCHIVE = os.path.join("python", "lib", "pyspark.zip")


def import_pyspark(path: Sequence[str]) -> None:
    """Where `path`, that of modules, has the archive first. Else it is left to Python."""
    if "pyspark" in sys.modules:
        return
    archive = next((entry for entry in path if _has_pyspark(entry)), "")
    folder = folder_of(archive)
    spec = PathFinder.find_spec("pyspark", [folder]) if folder else None
    if spec is None or spec.loader is None:
        return
    module = sys.modules["pyspark"] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["pyspark"]
        raise


def folder_of(archive: str) -> str:
    """The folder in which the package is from which Spark's archive was made; empty if none is known."""
    home = archive.removesuffix(os.sep + _ARCHIVE)
    if home == archive:
        return ""
    installed, unpacked = os.path.dirname(home), os.path.join(home, "python")  # by pip; from Spark's own file
    folder = installed if os.path.basename(home) == "pyspark" else unpacked
    return folder if os.path.isfile(os.path.join(folder, "pyspark", "__init__.py")) else ""


def _has_pyspark(entry: str) -> bool:
    return entry.endswith(_ARCHIVE) or os.path.isfile(os.path.join(entry, "pyspark", "__init__.py"))
