"""How programs end, each as a process of its own: Python's exit is a part of what is tried."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

#: As a session does it: what is known when it stops, and what the interpreter's exit says.
PROGRAM = """
import atexit, sys
from spark_agent.driver import outcome

def say(when, error):
    text = "well" if error is None else f"{type(error).__name__} {error}"
    sys.stderr.write(f"{when}: {text}\\n")

class Spark:
    def stop(self):
        say("stop", outcome.under_way())
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.stop()

outcome.watch()
atexit.register(lambda: say("exit", outcome.at_exit()))
spark = Spark()
"""
PROGRAMS = {
    "ends well": ("spark.stop()", 0, "well", "well"),
    "never stops": ("", 0, None, "well"),
    "an error": ("1 / 0", 1, None, "ZeroDivisionError division by zero"),
    "an error, and finally": (
        "try:\n    1 / 0\nfinally:\n    spark.stop()",
        1,
        "ZeroDivisionError division by zero",
        "ZeroDivisionError division by zero",
    ),
    "an error in a with block": (
        "with spark:\n    1 / 0",
        1,
        "ZeroDivisionError division by zero",
        "ZeroDivisionError division by zero",
    ),
    "an error that is handled while it stops": (
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    spark.stop()",
        0,
        "ZeroDivisionError division by zero",
        "well",
    ),
    "an error that was handled": (
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass\nspark.stop()",
        0,
        "well",
        "well",
    ),
    "an error, handled, and an exit": (
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    spark.stop()\n    sys.exit(1)",
        1,
        "ZeroDivisionError division by zero",
        "SystemExit 1",
    ),
    "an error behind the stop": ("spark.stop()\nraise ValueError('late')", 1, "well", "ValueError late"),
    "an exit": ("sys.exit(3)", 3, None, "SystemExit 3"),
    "an exit behind the stop": ("spark.stop()\nsys.exit(3)", 3, "well", "SystemExit 3"),
    "an exit from within": ("def main():\n    sys.exit('no input')\nmain()", 1, None, "SystemExit no input"),
    "an exit, and finally": (
        "try:\n    sys.exit(3)\nfinally:\n    spark.stop()",
        3,
        "SystemExit 3",
        "SystemExit 3",
    ),
    "an exit in a with block": ("with spark:\n    sys.exit(3)", 3, "SystemExit 3", "SystemExit 3"),
    "an exit in a with block, raised": (
        "with spark:\n    raise SystemExit(3)",
        3,
        "SystemExit 3",
        "SystemExit 3",
    ),
    "exit()": ("exit(2)", 2, None, "SystemExit 2"),
    "quit()": ("spark.stop()\nquit(2)", 2, "well", "SystemExit 2"),
    "an exit without a code": ("sys.exit()", 0, None, "well"),
    "an exit with 0": ("spark.stop()\nsys.exit(0)", 0, "well", "well"),
    "an exit that was caught": (
        "def main():\n    sys.exit(3)\ntry:\n    main()\nexcept SystemExit:\n    pass\nspark.stop()",
        0,
        "well",
        "well",
    ),
    "an exit that another caught": (
        "def main():\n    try:\n        sys.exit(3)\n    except SystemExit:\n        pass\nmain()",
        0,
        None,
        "well",
    ),
    "an error in a thread": (
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()",
        0,
        None,
        "well",
    ),
    "an exit in a thread": (
        "import threading\nthread = threading.Thread(target=sys.exit, args=(3,))\n"
        "thread.start()\nthread.join()",
        0,
        None,
        "well",
    ),
    "an error of one that shows errors itself": (
        "sys.excepthook = lambda *error: None\n1 / 0",
        1,
        None,
        "ZeroDivisionError division by zero",
    ),
}


def run(folder: Path, body: str, *options: str) -> tuple[int, dict[str, str]]:
    program = folder / "job.py"
    program.write_text(PROGRAM + body + "\n")
    done = subprocess.run(
        [sys.executable, *options, str(program)], capture_output=True, text=True, timeout=240
    )
    pairs = (line.partition(": ") for line in done.stderr.splitlines())
    return done.returncode, {when: said for when, _, said in pairs if when in ("stop", "exit")}


@pytest.mark.parametrize(("body", "code", "at_stop", "at_exit"), PROGRAMS.values(), ids=PROGRAMS)
def test_an_end_is_what_the_program_makes_of_it(
    tmp_path: Path, body: str, code: int, at_stop: str | None, at_exit: str
) -> None:
    returned, said = run(tmp_path, body)
    assert returned == code
    assert said.get("stop") == at_stop
    assert said["exit"] == at_exit


def test_at_a_prompt_no_error_ends_anything(tmp_path: Path) -> None:
    (tmp_path / "start.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-i", str(tmp_path / "start.py")],
        input="1 / 0\nimport sys; sys.exit(3)\n",
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 3
    assert "exit: well" in done.stderr
