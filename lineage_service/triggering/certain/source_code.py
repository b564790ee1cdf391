"""The code of a job as it is now: its hash, and where it reads the clock, random numbers or a service.

Reads the text of Python files, and runs none of it. What a call does whose name is not among those that are
known here is not known: "nothing was found" is no proof.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spark_agent.contract.program_code import hash_of_files

__all__ = ["Unsteady", "code_now", "unsteady_call"]

#: Calls whose results differ from run to run, by their whole names: those of modules end with a dot.
_UNSTEADY = (
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.strftime", "time.ctime"),
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    *("pandas.Timestamp.now", "pandas.Timestamp.today", "pandas.Timestamp.utcnow"),
    *("random.", "secrets.", "uuid.uuid1", "uuid.uuid4", "os.urandom", "os.getpid", "numpy.random."),
    *("requests.", "urllib.request.", "http.client.", "socket.", "httpx.", "boto3.", "smtplib.", "ftplib."),
)
_OF_SPARK = frozenset(
    (
        *("current_timestamp", "current_date", "now", "localtimestamp", "unix_timestamp", "rand", "randn"),
        *("uuid", "randstr", "uniform", "shuffle"),
    )
)
_IN_SQL = re.compile(
    r"(?i)\b(current_timestamp|current_date|localtimestamp|(?:now|rand|randn|uuid|unix_timestamp)\s*\(\s*\))"
)
_FUNCTIONS = "pyspark.sql.functions"


class Unsteady(NamedTuple):
    """A call whose result may differ from run to run."""

    file: str
    line: int
    call: str

    def __str__(self) -> str:
        return f"{self.call} ({self.file.rpartition('/')[2]}:{self.line})"


def code_now(files: Sequence[str]) -> str | None:
    """The hash of the same files as they are now; None where one of them cannot be read here."""
    try:
        return hash_of_files(files)
    except OSError:
        return None


def unsteady_call(files: Sequence[str]) -> Unsteady | None:
    """The first one in these files, archives of Python files included. Raises OSError, SyntaxError."""
    for path, text in _texts(files):
        for call in _calls(path, text):
            return call
    return None


def _texts(files: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for path in files:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".py"):
                        yield f"{path}/{name}", archive.read(name)
        else:
            with open(path, "rb") as file:  # noqa: PTH123
                yield path, file.read()


def _calls(path: str, text: bytes) -> Iterator[Unsteady]:
    try:
        tree = ast.parse(text)
    except (ValueError, RecursionError) as error:
        raise SyntaxError(str(error)) from None
    names = _imported(tree)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (call := _unsteady(_dotted(node.func, names), node)):
            yield Unsteady(path, node.lineno, call)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            match = _IN_SQL.search(node.value)
            if match is not None:
                yield Unsteady(path, node.lineno, match[1])


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each name stands for that an import has made."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(function: ast.expr, names: dict[str, str]) -> str:
    """The whole name of a function; empty where it is none of an import."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or function.id not in names:
        return ""
    return ".".join((names[function.id], *parts))


def _unsteady(name: str, call: ast.Call) -> str:
    if not name:
        return ""
    if name.startswith(f"{_FUNCTIONS}."):
        function = name[len(_FUNCTIONS) + 1 :]
        is_of_time = function == "unix_timestamp" and (call.args or call.keywords)
        return function if function in _OF_SPARK and not is_of_time else ""
    is_unsteady = any(
        name == pattern or (pattern.endswith(".") and name.startswith(pattern)) for pattern in _UNSTEADY
    )
    return name if is_unsteady else ""
