"""Runs the program of a sift again and again in one process, each time as another replay:

    python -m spark_agent.driver.replay.rerun JOB.py ARGUMENTS   (or -m MODULE, or -c CODE)

The guard of the sandbox has begun when this runs, and holds for all runs. The folder `runs` of the sandbox
has a folder for each, with its `spec.json`; when the run is over, `ended.json` says how. So the JVM is
started once. Each run has its own `__main__`, SparkContext, arguments, environment and modules of the user's.
Ends when no run waits and the file `over` is in `runs`, or when who started it is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

_PAUSE_S = 0.004
#: How often it is looked whether who started this is still there.
_LOOK_S = 1.0


def main(arguments: Sequence[str]) -> None:
    """Serves runs. `arguments` are the program's, it first."""
    from spark_agent.contract.replay_spec import RUNS, RUNS_OVER
    from spark_agent.driver.replay import replay
    from spark_agent.worker.guard import begin

    running = replay.current()
    if running is None:
        replay.refuse("this runs within a replay only")
    begin.begin()  # where the start-up hook has not
    program = _Program(list(arguments))
    program.prepare()
    folder, parent = os.path.join(running.sandbox, RUNS), os.getppid()
    over = os.path.join(folder, RUNS_OVER)
    done: set[str] = set()
    look_at = time.monotonic() + _LOOK_S
    while os.getppid() == parent:
        if time.monotonic() >= look_at:
            if _is_left(running.sandbox):
                return
            look_at = time.monotonic() + _LOOK_S
        name = _next_run(folder, done)
        if name is not None:
            done.add(name)
            _run(program, os.path.join(folder, name))
        elif os.path.exists(over):
            return
        else:
            time.sleep(_PAUSE_S)


def _is_left(sandbox: str) -> bool:
    """Has the process that works in the sandbox, and locks a file there, ended? The parent may be another."""
    from spark_agent.contract.replay_spec import SANDBOX_LOCK

    if not os.path.isdir(sandbox):
        return True
    try:
        with open(os.path.join(sandbox, SANDBOX_LOCK), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except OSError:  # locked, or there is none
        return False


def _next_run(folder: str, done: set[str]) -> str | None:
    """The name of a run that waits."""
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder), key=lambda name: (len(name), name)):
            if name not in done and os.path.exists(os.path.join(folder, name, "spec.json")):
                return name
    return None


def _run(program: _Program, folder: str) -> None:
    """One run, and what became of it."""
    from spark_agent.contract.replay_spec import RUN_ENDED
    from spark_agent.driver.replay import replay
    from spark_agent.driver.replay.few_partitions import who_looks
    from spark_agent.driver.replay.program_state import ProgramState

    spec = replay.read_spec(os.path.join(folder, "spec.json"))
    replay.become(spec)
    state = ProgramState()
    looks = ""
    try:
        code = program.run()
        looks = who_looks(program.text) if spec.get("compact") is True else ""
    finally:
        printed = state.restore()
    path = os.path.join(folder, RUN_ENDED)
    with open(f"{path}.draft", "w", encoding="utf-8", errors="backslashreplace") as file:
        json.dump({"exit_code": code, "printed": printed, "looks": looks}, file)
    os.replace(f"{path}.draft", path)


class _Program:
    """What Python was to run: a script, `-m` and a module, or `-c` and code."""

    def __init__(self, arguments: list[str]) -> None:
        self._kind = arguments[0] if arguments[0] in ("-m", "-c") else ""
        self._rest = arguments[1:] if self._kind else arguments
        self._runs: dict[str, Callable[[], Any]] = {
            "": self._run_script,
            "-m": lambda: runpy.run_module(self._rest[0], run_name="__main__", alter_sys=True),
            "-c": self._run_code,
        }

    def prepare(self) -> None:
        """Start what its first run will need."""
        if not self._kind:
            from spark_agent.driver.replay import early_jvm

            early_jvm.begin(self._rest[0])

    def text(self) -> str:
        """What Python runs as `__main__`. Raises OSError."""
        if self._kind == "-c":
            return self._rest[0]
        path = self._rest[0]
        if self._kind == "-m":
            module = importlib.util.find_spec(path)
            if module is not None and module.submodule_search_locations is not None:
                module = importlib.util.find_spec(f"{path}.__main__")
            path = "" if module is None or module.origin is None else module.origin
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self) -> int:
        """The exit code that Python would end with."""
        sys.argv = ["-c", *self._rest[1:]] if self._kind == "-c" else list(self._rest)
        try:
            self._runs[self._kind]()
        except SystemExit as exit_:
            return _exit_code(exit_)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - the program has failed, and this goes on
            traceback.print_exc()
            return 1
        return 0

    def _run_script(self) -> None:
        path = os.path.abspath(self._rest[0])
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = os.path.dirname(os.path.realpath(path))
        runpy.run_path(path, run_name="__main__")

    def _run_code(self) -> None:
        import types

        module, before = types.ModuleType("__main__"), sys.modules["__main__"]
        sys.modules["__main__"] = module
        try:
            exec(compile(self._rest[0], "<string>", "exec"), vars(module))
        finally:
            sys.modules["__main__"] = before


def _exit_code(exit_: SystemExit) -> int:
    code = exit_.code
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    print(code, file=sys.stderr)  # noqa: T201 - what Python would do
    return 1


if __name__ == "__main__":
    main(sys.argv[1:])
