from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from spark_agent.driver.replay import program_state
from spark_agent.driver.replay.program_state import ProgramState
from spark_agent.driver.replay.rerun import _Program


def test_a_program_finds_its_process_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rerun_helper.py").write_text("calls = 0\n")
    before = list(sys.argv), list(sys.path), Path.cwd(), dict(os.environ), sys.excepthook, sys.stdout
    for _ in range(2):
        state = ProgramState()
        import rerun_helper

        rerun_helper.calls += 1
        assert rerun_helper.calls == 1
        print("out")
        print("err", file=sys.stderr)
        sys.stdout.writelines(["more\n"])
        assert sys.stdout.isatty() in (True, False)
        sys.argv = ["other"]
        sys.path.append("/other")
        os.chdir(tmp_path)
        os.environ["RERUN_OTHER"] = "1"
        os.environ["PATH"] = "/other"
        sys.excepthook = lambda *_: None
        assert state.restore() == "out\nerr\nmore\n"
        assert before == (
            *(list(sys.argv), list(sys.path), Path.cwd(), dict(os.environ), sys.excepthook, sys.stdout),
        )
        assert "rerun_helper" not in sys.modules


def test_a_program_may_close_its_streams() -> None:
    for _ in range(2):
        state = ProgramState()
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")
        print("wrapped")
        sys.stdout.close()
        sys.stderr.close()
        left = sys.stderr
        state.restore()
        print("on", file=sys.stdout)
        print("on", file=sys.stderr)
        print("on", file=left)
        assert (sys.stdout.closed, sys.stderr.closed) == (False, False)


def test_of_a_program_that_prints_much_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_state, "MOST_PRINTED", 10)
    state = ProgramState()
    for number in range(100):
        print(number)
    assert state.restore() == "\n97\n98\n99\n"


@pytest.mark.parametrize(
    ("text", "code", "printed"),
    [
        ("print('well')", 0, "well\n"),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit(-1)", 255, ""),
        ("import sys; sys.exit('no such file')", 1, "no such file\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import sys; print(__name__, sys.argv[1:])", 0, "__main__ ['a', 'b']\n"),
    ],
)
@pytest.mark.parametrize("kind", ["", "-c"])
def test_a_program_ends_as_python_would(
    tmp_path: Path, kind: str, text: str, code: int, printed: str
) -> None:
    script = tmp_path / "job.py"
    script.write_text(text)
    main = sys.modules["__main__"]
    program = _Program(["-c", text, "a", "b"] if kind else [str(script), "a", "b"])
    state = ProgramState()
    assert program.run() == code
    assert state.restore().endswith(printed)
    assert sys.modules["__main__"] is main
