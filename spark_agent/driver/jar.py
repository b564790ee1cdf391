"""The agent's jar, and how it comes into a running driver: the user's conf is not touched."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["JAR", "add_to_loader", "loader_of"]

JAR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "jvm", "lineage.jar")
_LOADER = "org.apache.spark.util.MutableURLClassLoader"


def loader_of(jvm: Any) -> Any:
    """The class loader of Spark's that takes more jars; None where there is none."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    while loader is not None and loader.getClass().getName() != _LOADER:
        loader = loader.getParent()
    return loader


def add_to_loader(jvm: Any, loader: Any, path: str) -> None:
    """Let classes and resources be found in a jar or a folder, too."""
    loader.addURL(jvm.java.io.File(path).toURI().toURL())
