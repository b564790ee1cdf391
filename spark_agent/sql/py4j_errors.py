"""What py4j raises, in short. Its errors are not imported: nothing here needs py4j before Spark has begun."""

from __future__ import annotations

from spark_agent.delivery.database_names import without_secrets


def in_short(error: Exception) -> str:
    """The class and the first line, without passwords of databases: behind it stands the stack of the JVM."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {without_secrets(lines[0]) if lines else ''}"[:300]
