"""Begins the guard of a replay in this process, before the user's first line. It ends with the process.

`begin` is called by the start-up hook of every Python that has LINEAGE_REPLAY in its environment: the driver,
the daemon of Python workers, and children of multiprocessing. Promises that the process does not go on
unguarded: where the guard cannot begin, it says why in one sentence and exits with code 3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from spark_agent.contract.replay_notes import REPLAY_REFUSED
from spark_agent.contract.replay_spec import SPEC_VARIABLE, decode_spec
from spark_agent.worker.guard import kernel, surroundings
from spark_agent.worker.guard.databases import Databases
from spark_agent.worker.guard.file_events import FileEvents
from spark_agent.worker.guard.native_events import NativeEvents
from spark_agent.worker.guard.paths import resolved
from spark_agent.worker.guard.pretence import Pretence, pure_outputs
from spark_agent.worker.guard.process_events import ProcessEvents
from spark_agent.worker.guard.refusals import Refusals, ReplayRefused
from spark_agent.worker.guard.territory import Territory, is_below

__all__ = ["CANNOT_BEGIN", "Guard", "active", "begin", "exit_unguarded"]

#: The exit code where no guard can begin.
CANNOT_BEGIN = 3
_MEMORY = "/dev/shm"
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx"))


class Guard:
    """Of this process: what it knows of the replay, and what it notes."""

    def __init__(self, spec_path: str) -> None:
        self.spec_path = spec_path
        with open(spec_path, "rb") as file:
            self.spec: dict[str, Any] = decode_spec(file.read())
        self.sandbox: str = resolved(self.spec["sandbox"])
        if not os.path.isdir(self.sandbox):
            raise ReplayRefused("use the sandbox", self.sandbox, advice="there is no such folder")
        surroundings.move_into(self.sandbox, os.environ)
        self.is_confined = kernel.confine([self.sandbox, "/dev/pts", *self._memory()], _DEVICES)
        self.refusals = Refusals(self.sandbox)
        if not self.is_confined:
            self.refusals.remark(
                "this kernel cannot confine processes (Landlock of Linux 5.19 or later): "
                "what libraries in C and allowed processes write was not watched"
            )
        self.outputs = pure_outputs(self.spec.get("outputs", ()), self.spec["protected"])
        self.files = FileEvents(Territory(self.sandbox), self.refusals)
        self.processes = ProcessEvents(
            spec_path,
            self.sandbox,
            self.refusals,
            are_allowed=bool(self.spec.get("allow_processes")),
            is_confined=self.is_confined,
        )

    def _memory(self) -> list[str]:
        """The folder of shared memory, which locks of multiprocessing need, unless data is there."""
        places = [path.removeprefix("file:") for path in self.spec["protected"]] + [os.getcwd()]
        return [] if any(is_below(resolved(place), _MEMORY) for place in places) else [_MEMORY]

    def begin(self) -> None:
        native = NativeEvents(self.files, self.refusals)
        Pretence(self.outputs, self.refusals).begin()
        native.watch_unseen(self.processes)
        databases = Databases(self.files, self.refusals)
        judges = (self.files.judges(), self.processes.judges(), native.judges(), databases.judges())
        _add_hook({event: judge for table in judges for event, judge in table.items()})
        _say_in_one_sentence()


_active: Guard | None = None


def active() -> Guard | None:
    """The guard of this process, None outside of a replay."""
    return _active


def begin() -> Guard:
    """Begin the guard, unless it has begun; ends the process where that cannot be."""
    global _active
    if _active is None:
        spec_path = os.environ.get(SPEC_VARIABLE, "")
        try:
            guard = Guard(spec_path)
            guard.begin()
        except ReplayRefused as error:
            exit_unguarded(f"{error.what} {error.path}: {error.advice}")
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing runs unguarded
            exit_unguarded(f"the spec {spec_path!r} cannot be used: {error}")
        _active = guard
    return _active


def exit_unguarded(reason: str) -> NoReturn:
    """End this process at once, before any code of the user's."""
    text = " ".join(reason.split())
    os.write(2, f"lineage: {REPLAY_REFUSED}the guard cannot begin: {text}; nothing was run\n".encode())
    os._exit(CANNOT_BEGIN)


def _add_hook(judges: dict[str, Callable[..., None]]) -> None:
    """Let Python ask the judges. A judge that fails refuses, too."""
    find = judges.get

    def guard(event: str, arguments: tuple[Any, ...]) -> None:
        judge = find(event)
        if judge is None:
            return
        try:
            judge(*arguments)
        except PermissionError:
            raise
        except Exception as error:  # noqa: BLE001 - what cannot be judged is not done
            raise PermissionError(f"{REPLAY_REFUSED}{event} cannot be judged: {error!r}") from None

    sys.addaudithook(guard)
    asked: list[object] = []
    judge, judges["os.listdir"] = judges["os.listdir"], asked.append
    os.listdir("/")
    judges["os.listdir"] = judge
    if not asked:
        raise RuntimeError("this Python has no audit hooks")


def _say_in_one_sentence() -> None:
    """A refusal that ends the program is one sentence on standard error, without a stack trace."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sentence = sentence_in(error)
        if sentence:
            print(f"lineage: {sentence}", file=sys.stderr)  # noqa: T201 - what Python would do
        else:
            before(kind, error, trace)

    sys.excepthook = hook


def sentence_in(error: BaseException) -> str:
    """The refusal that an error tells of, be it one of Java's or of a task's; empty if none."""
    if isinstance(error, ReplayRefused):
        return error.sentence
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot tell itself
        return ""
    begin = text.find(REPLAY_REFUSED)
    return text[begin:].splitlines()[0].strip() if begin >= 0 else ""
