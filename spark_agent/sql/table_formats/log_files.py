"""The files of a table's log, on this machine or wherever Hadoop reads from."""

from __future__ import annotations

from typing import Any

from spark_agent.contract.dataset_names import remote_parts


class LogFiles:
    """Reads them as texts. `context` is a SparkContext."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def read(self, path: str) -> str | None:
        """None where there is no such file. Raises OSError, or what py4j raises, where it cannot be read."""
        if remote_parts(path) is None:
            try:
                with open(path, encoding="utf-8") as file:
                    return file.read()
            except FileNotFoundError:
                return None
        jvm = self._context._jvm
        java_path = jvm.org.apache.hadoop.fs.Path(path)
        files = java_path.getFileSystem(self._context._jsc.hadoopConfiguration())
        if not files.exists(java_path):
            return None
        stream = files.open(java_path)
        try:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
