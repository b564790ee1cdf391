"""Judges the events of Python that start processes, and notes connections.

A process is started by Spark (its JVM), by Python's multiprocessing (children that begin with this guard
again), by modules of Python that only look at the machine, or by the user. Who starts is told by the code
object that runs, not by its name. A fork needs no judge: the child has the same guard.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any

from spark_agent.contract.replay_spec import SPEC_VARIABLE
from spark_agent.worker.guard.paths import text_of
from spark_agent.worker.guard.places import caller, is_of_python, is_of_spark
from spark_agent.worker.guard.refusals import Refusals
from spark_agent.worker.guard.surroundings import name_folders

__all__ = ["LAUNCHER", "ProcessEvents", "is_unsited"]

Judge = Callable[..., None]
#: The module that starts the command of a replay.
LAUNCHER = "spark_agent.worker.guard.launch"
#: Options of Python with which it starts without the hook.
_UNSITED = frozenset("SIE")
_ADVICE = "run the replay with --allow-processes if this process changes nothing"
#: Modules of Python -> what they start, to look at the machine.
_LOOKING = {"platform.py": (["uname", "-p"],), "util.py": (["/sbin/ldconfig", "-p"],)}
#: Where PySpark 4 and 3.5 have SparkContext.
_CONTEXTS = ("pyspark.core.context", "pyspark.context")
_NOT_WATCHED = (
    "processes were allowed (--allow-processes); those that are no Python were watched by the kernel"
)


class ProcessEvents:
    """Judges by who starts a process, or lets all start."""

    def __init__(
        self, spec_path: str, sandbox: str, refusals: Refusals, *, are_allowed: bool, is_confined: bool
    ) -> None:
        self._sandbox = sandbox
        self._entry = f"{SPEC_VARIABLE}={spec_path}"
        self._refusals = refusals
        self._are_allowed = are_allowed
        self._watched = _NOT_WATCHED if is_confined else f"{_NOT_WATCHED.rpartition(' by ')[0]} by nothing"
        self._python = os.path.realpath(sys.executable)
        #: Is it one of PySpark's workers, which start no contexts?
        self.is_worker = False
        self._is_launching = sys.orig_argv[1:3] == ["-m", LAUNCHER]  # no code of the user's runs here

    def judges(self) -> Mapping[str, Judge]:
        return {
            "os.system": lambda command: self._foreign(text_of(command)),
            "os.exec": lambda path, arguments, environment: self.start([path], arguments, environment),
            "os.posix_spawn": lambda path, arguments, environment: self.start([path], arguments, environment),
            "os.spawn": lambda mode, path, arguments, environment: self.start([path], arguments, environment),
            "subprocess.Popen": lambda executable, arguments, folder, environment: self.start(
                [executable], arguments, environment
            ),
            "cpython.PyInterpreterState_New": lambda: self._refusals.refuse("start another interpreter"),
            "os.putenv": self._put,
            "os.unsetenv": lambda name: self._put(name, None),
            "socket.connect": self._connect,
            "syslog.syslog": lambda *_: self._refusals.connected("syslog"),
            "socket.sendto": self._connect,
            "socket.sendmsg": self._connect,
        }

    def start(self, executables: Iterable[Any], arguments: Any, environment: Any) -> None:
        """Start a process: `executables` are the names that are tried, `environment` None for this one's."""
        words = _words(arguments)
        frame = caller("subprocess")
        if frame is not None and self._is_of_runtime(frame, words, [*executables], environment):
            return
        self._foreign(shlex.join(words))

    def _foreign(self, command: str) -> None:
        if self._is_launching:
            return
        if not self._are_allowed:
            self._refusals.refuse("start the process", command, _ADVICE)
        self._refusals.remark(self._watched)

    def _is_of_runtime(
        self, frame: FrameType, words: list[str], executables: list[Any], environment: Any
    ) -> bool:
        """Is it a process that this Python or Spark needs, and that is guarded or changes nothing?"""
        file, code = frame.f_code.co_filename, frame.f_code
        if is_of_spark(file):
            gateway = sys.modules.get("pyspark.java_gateway")
            is_launch = code is getattr(getattr(gateway, "launch_gateway", None), "__code__", None)
            return is_launch and self._is_passed_on(environment) and self._surround(environment)
        if not is_of_python(file):
            return False
        if any(words == command for command in _LOOKING.get(os.path.basename(file), ())):
            return True
        spawning = getattr(sys.modules.get("multiprocessing.util"), "spawnv_passfds", None)
        return (
            code is getattr(spawning, "__code__", None)
            and "spark_agent.hook" in sys.modules  # which the child begins with, too
            and self._is_passed_on(environment)
            and all(os.path.realpath(text_of(name)) == self._python for name in executables)
            and not any(is_unsited(word) for word in words[1:])
        )

    def _surround(self, environment: Any) -> bool:
        """Let Spark keep its files in the sandbox, though the program has named other folders."""
        if isinstance(environment, dict):  # as PySpark gives it, before it is made a list
            name_folders(self._sandbox, environment)
        return True

    def _is_passed_on(self, environment: Any) -> bool:
        """Does the child know of the replay? Nothing can take the variable out of this process's own."""
        if environment is None:
            return True
        if isinstance(environment, Mapping):
            entries = [f"{text_of(name)}={text_of(value)}" for name, value in environment.items()]
        else:
            entries = [text_of(entry) for entry in environment]
        return self._entry in entries

    def _put(self, name: object, value: object) -> None:
        if text_of(name) == SPEC_VARIABLE and (
            value is None or f"{SPEC_VARIABLE}={text_of(value)}" != self._entry
        ):
            self._refusals.refuse("change the environment variable", SPEC_VARIABLE, "leave it as it is")

    def _connect(self, own: object, address: object) -> None:
        frame = caller("socket")
        if frame is not None and is_of_spark(frame.f_code.co_filename):
            self._refuse_unwatched()
            return
        if isinstance(address, tuple) and len(address) >= 2:
            self._refusals.connected(f"{address[0]}:{address[1]}")
        elif isinstance(address, (str, bytes)):
            self._refusals.connected(text_of(address))

    def _refuse_unwatched(self) -> None:
        """A PySpark whose contexts the agent does not see start would go on without the other fences."""
        contexts = [getattr(sys.modules.get(name), "SparkContext", None) for name in _CONTEXTS]
        is_loaded = "pyspark" in sys.modules
        if (
            is_loaded
            and not self.is_worker
            and not any(hasattr(context, "_lineage_hooked") for context in contexts)
        ):
            self._refusals.refuse("start Spark", advice="the agent does not know this PySpark")


def is_unsited(word: str) -> bool:
    """Is it a group of Python's options, such as -BS, that leaves the hook out?"""
    return (
        len(word) > 1 and word[0] == "-" and word[1] != "-" and bool(_UNSITED & set(word.partition("c")[0]))
    )


def _words(arguments: Any) -> list[str]:
    if isinstance(arguments, (str, bytes)):
        return [text_of(arguments)]
    return [os.fsdecode(word) for word in arguments or ()]
