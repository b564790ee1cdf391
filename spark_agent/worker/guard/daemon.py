"""PySpark's daemon of Python workers, with the guard of the replay: `spark.python.daemon.module` names it.

An executor that cannot import this starts no worker, so none runs unguarded.
"""

from __future__ import annotations

import sys

from spark_agent.worker.guard import begin, unpacked_spark


def main() -> None:
    begin.begin().processes.is_worker = True
    unpacked_spark.import_pyspark(sys.path)
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    main()
