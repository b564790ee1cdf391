"""OpenLineage's listener for Spark: its jar, and its events without what differs each time.

The jar is pinned, and comes into the cache as those of the local stack do. Most that differs is an id that
stands in several places: it becomes the number of the place where it came first, so that what is equal stays
so. Lists are sorted: the listener takes many out of hash tables, by ids that a JVM chooses at random.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lineage_service.devstack.download import fetch
from lineage_service.devstack.jars import Jar
from lineage_service.devstack.progress import Quiet

LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"
JAR = Jar(
    group="io.openlineage",
    artifact="openlineage-spark_2.13",
    version="1.53.0",
    classifier="",
    sha256="5d84b0ae7e72909b5aae7ed87df878bf06b28d9ac3005765c3529d0a66dbae6f",
    size=43_037_532,
)
#: Of an event and its facets: times, durations, and numbers that Spark counts up.
_DIFFERENT = frozenset(("eventTime", "jobId", "startTime", "endTime", "duration"))
_CREATE_TABLE = ".execute_create_data_source_table_command."
_IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|#\d+L?|local-\d+|plan_id=\d+|@[0-9a-f]+\b"
)


def listener_jar(folder: Path) -> Path:
    """Its place below `folder`. Raises DownloadError."""
    return fetch([JAR], folder, os.environ.get("LINEAGE_MAVEN_REPOSITORY", ""), Quiet())[0]


def conf_of(jar: Path, events: Path) -> dict[str, str]:
    """Lets the listener write its events into a file, one a line."""
    return {
        "spark.jars": str(jar),
        "spark.extraListeners": LISTENER,
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(events),
    }


def normalised(lines: Sequence[str], folder: Path) -> list[Any]:
    """The events of these lines, in which `folder` is called FOLDER.

    Those of CREATE TABLE are left out: it may be over before the listener looks at it, and says nothing.
    """
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"ID-{len(numbers)}")

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            if "jvmId" in value:  # of a column
                value = {"column": f"#{value['id']}"}
            return {name: cleaned(part) for name, part in value.items() if name not in _DIFFERENT}
        if isinstance(value, list):
            return sorted(map(cleaned, value), key=json.dumps)
        return _IDS.sub(number, value.replace(str(folder), "FOLDER")) if isinstance(value, str) else value

    events = map(json.loads, lines)
    return [cleaned(event) for event in events if _CREATE_TABLE not in event["job"]["name"]]
