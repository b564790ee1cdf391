"""Finds the Java that runs the servers: JAVA_HOME's, else the one on the PATH. 17 or newer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from lineage_service.devstack.errors import JavaError

#: Kafka 4 brokers and Neo4j 5 both ask for it; so does PySpark 4.
MINIMUM_VERSION = 17
_ADVICE = f"install Java {MINIMUM_VERSION} or 21 and put it on the PATH or into JAVA_HOME"


def find_java() -> Path:
    """The `java` program to start servers with.

    Raises JavaError when there is none, when it does not run, or when it is older than 17.
    """
    java = _locate()
    version = _major_version(java)
    if version < MINIMUM_VERSION:
        raise JavaError(f"{java} is Java {version}, but Kafka and Neo4j need {MINIMUM_VERSION}: {_ADVICE}")
    return java


def _locate() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if not os.access(java, os.X_OK):
            raise JavaError(
                f"JAVA_HOME is {home}, but there is no program bin/java in it: correct it or unset it"
            )
        return java
    path = shutil.which("java")
    if path is None:
        raise JavaError(f"there is no Java on this machine's PATH, and Kafka and Neo4j need it: {_ADVICE}")
    return Path(path)


def _major_version(java: Path) -> int:
    """17 for `openjdk version "17.0.15"`, 8 for `java version "1.8.0_392"`."""
    try:
        # `-version` goes to standard error, in one form since Java 1.0.
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        # macOS has a /usr/bin/java that only says that there is no Java.
        raise JavaError(f"{java} -version does not work ({error}): {_ADVICE}") from error
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    if match is None:
        raise JavaError(f"{java} -version says {answer.strip()[:80]!r}, which names no version: {_ADVICE}")
    return int(match[1])
