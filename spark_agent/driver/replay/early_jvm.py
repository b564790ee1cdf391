"""Starts the JVM of a program that runs many times before its first run asks for it.

The program would start it with its environment, in its folder, and with its settings. So the one that is
there is taken only if all of these are as they were, or settings that mean nothing to the start of a JVM.
Else it is ended, and the program starts its own. Does nothing for spark-submit, whose JVM is there before.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["EarlyJvm", "begin"]

Launch = Callable[..., Any]

#: The modules that start it, in PySpark 4 and PySpark 3.5.
_MODULES = ("pyspark.core.context", "pyspark.context")
#: Settings that a SparkContext reads when it starts, and nobody before.
_OF_CONTEXTS = (
    *("spark.app.name", "spark.master", "spark.default.parallelism", "spark.serializer", "spark.cores.max"),
    *("spark.sql.", "spark.ui.", "spark.shuffle.", "spark.lineage.", "spark.rdd.", "spark.hadoop."),
    *("spark.executor.memory", "spark.executor.cores", "spark.executor.instances", "spark.eventLog."),
)
#: A script with one of these looks for another Spark than Python does.
_OTHER_SPARK = ("findspark", "SPARK_HOME", "spark/python")


def begin(script: str) -> None:
    """For the program in this file. Never raises: without it the program starts its own."""
    with contextlib.suppress(Exception):
        if "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_HOME" in os.environ:
            return
        with open(script, encoding="utf-8") as file:
            text = file.read()
        if not any(word in text for word in _OTHER_SPARK):
            EarlyJvm(_context_module()).begin()


def _context_module() -> Any:
    try:
        return importlib.import_module(_MODULES[0])
    except ModuleNotFoundError:
        return importlib.import_module(_MODULES[1])


class EarlyJvm:
    """Of this process. `module` is that of PySpark which starts a JVM."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._launch: Launch = module.launch_gateway
        self._environment, self._folder = dict(os.environ), os.getcwd()
        self._gateway: Any = None
        self._thread = threading.Thread(target=self._start, name="lineage-jvm", daemon=True)

    def begin(self) -> None:
        """Start it, and have it given to who asks for the first one."""
        self._module.launch_gateway = self._given
        self._thread.start()

    def _start(self) -> None:
        with contextlib.suppress(Exception):  # who asks for one starts it again, and hears why it cannot be
            self._gateway = self._launch()

    def _given(self, conf: Any = None, popen_kwargs: Any = None) -> Any:
        """In the place of PySpark's `launch_gateway`."""
        self._module.launch_gateway = self._launch
        settings = dict(conf.getAll()) if conf is not None else {}
        self._thread.join()
        if self._gateway is not None and popen_kwargs is None and self._is_as_it_was(settings):
            self._set(settings)
            return self._gateway
        self._end()
        return self._launch(conf, popen_kwargs)

    def _is_as_it_was(self, settings: dict[str, str]) -> bool:
        return (
            dict(os.environ) == self._environment
            and os.getcwd() == self._folder
            and all(name.startswith(_OF_CONTEXTS) for name in settings)
        )

    def _set(self, settings: dict[str, str]) -> None:
        """As options of spark-submit would: contexts of the program find them as defaults."""
        words = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
        later = {word.partition("=")[0] for word in words}
        for name, value in settings.items():
            if name not in later:
                self._gateway.jvm.java.lang.System.setProperty(name, value)

    def _end(self) -> None:
        if self._gateway is not None:
            with contextlib.suppress(Exception):
                self._gateway.shutdown()
            with contextlib.suppress(Exception):
                self._gateway.proc.kill()
                self._gateway.proc.wait()
