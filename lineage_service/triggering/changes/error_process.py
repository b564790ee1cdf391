"""The process in which a user's error function runs: `python error_process.py`, and nothing of this package.

It is told by standard input what to import, says by standard output whether that went well, and then answers
each pair of tables with a number or with what went wrong. Whatever the function prints goes to standard
error, and what it reads is empty. It ends with its input.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import resource
import struct
import sys
import traceback
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Any, BinaryIO

LENGTHS = struct.Struct("!QQ")
_MOST_CHARACTERS = 300


def main() -> None:
    """1. Keep the pipes from the user's code. 2. Import it. 3. Answer until the input ends."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    request = json.loads(questions.readline())
    sys.path[:] = request["path"]
    # Nobody may be there any more to end a function that does not end.
    most = (math.ceil(request["seconds"]) + 10) * (os.cpu_count() or 1)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    try:
        function = imported(request["module"], request["function"])
    except BaseException as error:  # noqa: BLE001 - whatever a user's code does, it is said
        _answer(answers, error=f"{request['module']} cannot be imported: {_described(error)}")
        return
    if isinstance(function, str):
        _answer(answers, error=function)
        return
    _answer(answers, value=0.0)
    while lengths := questions.read(LENGTHS.size):
        tables = [_table(questions.read(length)) for length in LENGTHS.unpack(lengths)]
        try:
            result = function(*tables)
        except BaseException as error:  # noqa: BLE001 - SystemExit as well
            _answer(answers, error=f"it raised {_described(error)}")
            continue
        _answer(answers, **_checked(result))


def imported(module: str, name: str) -> Callable[..., Any] | str:
    """The function, or why there is none. `module` that ends in `.py` is a file."""
    if module.endswith(".py"):
        path = Path(module)
        if not path.is_file():
            return f"there is no file {module}"
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        code = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = code
        sys.path.insert(0, str(path.resolve().parent))
        spec.loader.exec_module(code)
    else:
        try:
            code = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
                return f"there is no module {error.name!r} here"
            raise
    if not hasattr(code, name):
        return f"{module} has no function {name!r}"
    function = getattr(code, name)
    if not callable(function):
        return f"{name} of {module} is {type(function).__name__}, and no function"
    return function  # type: ignore[no-any-return] # any callable


def _table(content: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(content).read_all()


def _checked(result: Any) -> dict[str, Any]:
    if hasattr(result, "as_py"):
        result = result.as_py()
    if isinstance(result, bool) or not isinstance(result, Real):
        return {"error": f"it gave {type(result).__name__}, and no number"}
    number = float(result)
    if math.isnan(number):
        return {"error": "it gave NaN, which is no error"}
    if not 0 <= number < math.inf:
        return {"error": f"it gave {number:g}: an error is 0 or more, and finite"}
    return {"value": number}


def _described(error: BaseException) -> str:
    """Type, text and the place in the user's code, in one line."""
    try:
        text = " ".join(str(error).split())[:_MOST_CHARACTERS]
    except Exception:  # noqa: BLE001 - of an exception that cannot be printed the type is enough
        text = ""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{at}"


def _answer(answers: BinaryIO, **said: Any) -> None:
    answers.write(json.dumps(said).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
