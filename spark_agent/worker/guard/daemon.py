"""PySpark's daemon of Python workers, with the guard of the replay: `spark.python.daemon.module` names it.

An executor that cannot import this starts no worker, so none runs unguarded.
"""

from __future__ import annotations

from spark_agent.worker.guard import begin


def main() -> None:
    begin.begin().processes.is_worker = True
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
