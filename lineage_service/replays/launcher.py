"""What a command starts: which Python runs the job, and the words that have the agent guard it there.

A replay must not run unguarded. The command is started by the guard, which confines it by the kernel where
that can be done, and refuses it otherwise if it is neither Python nor spark-submit. Of these two the Python
is known before they start, and `trials` tries it.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from lineage_service.replays.errors import CommandError

__all__ = ["Interpreter", "guarded_words", "interpreters_of", "rerun_words"]

#: The agent's module that confines itself and becomes the command.
_GUARD = "spark_agent.worker.guard.launch"
#: The agent's module that runs a job many times.
_RERUN = "spark_agent.driver.replay.rerun"

_PYTHON = re.compile(r"python([0-9]+(\.[0-9]+)?)?t?")
#: Options of Python that have a value behind them, and those behind which its own options end.
_WITH_VALUE, _LAST = frozenset("WX"), frozenset("cm")
_SUBMIT_FLAGS = frozenset(("--verbose", "-v", "--supervise", "--help", "-h", "--version", "--usage-error"))
_DRIVER_PYTHON, _WORKER_PYTHON = "spark.pyspark.driver.python", "spark.pyspark.python"


class Interpreter(NamedTuple):
    """A Python that a command will start, with its own options."""

    path: str
    options: tuple[str, ...] = ()


def interpreters_of(words: Sequence[str], environment: Mapping[str, str]) -> tuple[Interpreter, ...]:
    """That of the driver first, then that of the workers; none of other commands. Raises CommandError."""
    if not words:
        raise CommandError("say which command runs the job, behind two dashes: -- spark-submit job.py")
    program = _found(words[0], environment)
    name = Path(words[0]).name
    if _PYTHON.fullmatch(name):
        driver = Interpreter(program, _options_of_python(words))
        worker = environment.get("PYSPARK_PYTHON") or "python3"
    elif name == "spark-submit":
        conf = _submitted(words[1:], program, environment)
        worker = conf.get(_WORKER_PYTHON) or environment.get("PYSPARK_PYTHON") or "python3"
        named = conf.get(_DRIVER_PYTHON) or conf.get(_WORKER_PYTHON)
        driver = Interpreter(_found(named or environment.get("PYSPARK_DRIVER_PYTHON") or worker, environment))
    else:
        return ()
    return tuple(dict.fromkeys((driver, Interpreter(_found(worker, environment)))))


def _found(program: str, environment: Mapping[str, str]) -> str:
    path = shutil.which(program, path=environment.get("PATH"))
    if path is None:
        kind = "cannot be started" if Path(program).exists() else "is not there"
        raise CommandError(
            f"the command {program} {kind}: give one that starts the job, such as spark-submit"
        )
    return path


def _options_of_python(words: Sequence[str]) -> tuple[str, ...]:
    """The options before the script, `-c` or `-m`. Raises CommandError where there is none of these."""
    at = 1
    while at < len(words):
        word = words[at]
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        last = next((letter for letter in word[1:] if letter in _LAST | _WITH_VALUE), "")
        if last in _LAST and last:
            return tuple(words[1:at]) + ((f"-{before}",) if (before := word[1 : word.index(last)]) else ())
        at += 2 if last and word.endswith(last) else 1
    if at >= len(words) or words[at] == "-":
        raise CommandError(f"{' '.join(words)} runs no script: give the one that is the job")
    return tuple(words[1:at])


def _submitted(words: Sequence[str], program: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The configuration that a submit has. Raises CommandError where its driver is no Python here."""
    conf: dict[str, str] = {}
    options = dict[str, str]()
    script = None
    for _, name, value in _options_of_submit(words):
        if name == "":
            script = value
        elif name in ("--conf", "-c"):
            key, _, text = value.partition("=")
            conf[key] = text
        else:
            options[name] = value
    if script is None or not script.endswith(".py"):
        raise CommandError("only Python scripts can be replayed: give spark-submit one that ends in .py")
    mode = options.get("--deploy-mode") or conf.get("spark.submit.deployMode")
    defaults = _defaults(options.get("--properties-file"), program, environment)
    if (mode or defaults.get("spark.submit.deployMode")) == "cluster":
        raise CommandError("a driver in the cluster cannot be guarded from here: replay it in client mode")
    return {**defaults, **conf}


def _options_of_submit(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """(place, option, value) until the script, which has no name."""
    at = 0
    while at < len(words):
        word = words[at]
        if not word.startswith("-"):
            yield at, "", word
            return
        name, sign, value = word.partition("=")
        if sign and name.startswith("--"):
            yield at, name, value
            at += 1
        elif word in _SUBMIT_FLAGS:
            at += 1
        else:
            yield at, word, words[at + 1] if at + 1 < len(words) else ""
            at += 2


def _defaults(named: str | None, program: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What spark-defaults.conf says, or the file that was named in its place."""
    home = environment.get("SPARK_HOME") or str(Path(program).resolve().parent.parent)
    folder = environment.get("SPARK_CONF_DIR") or f"{home}/conf"
    try:
        lines = Path(named or f"{folder}/spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in lines.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith("#")}


def guarded_words(words: Sequence[str]) -> list[str]:
    """The command, begun by the guard."""
    return [sys.executable, "-m", _GUARD, *words]


def rerun_words(words: Sequence[str]) -> list[str] | None:
    """The command whose Python runs the job again and again; None of a command of which that is not known.

    The words must have passed `interpreters_of`.
    """
    name = Path(words[0]).name
    if _PYTHON.fullmatch(name):
        options = _options_of_python(words)
        at = 1 + len(options)
        is_plain = not words[at].startswith("-") or words[at] in ("-m", "-c")
        are_apart = tuple(words[1:at]) == options  # not as in -um
        return [*words[:at], "-m", _RERUN, *words[at:]] if is_plain and are_apart else None
    module = find_spec(_RERUN)
    if name != "spark-submit" or module is None or module.origin is None:
        return None
    at = next(at for at, name, _ in _options_of_submit(words[1:]) if not name) + 1
    return [*words[:at], module.origin, *words[at:]]
