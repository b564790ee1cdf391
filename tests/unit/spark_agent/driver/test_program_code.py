"""Which files are a program's code: asked in programs of their own, as the agent does."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

from spark_agent.contract.program_code import hash_of_files

ASK = "from spark_agent.driver.program_code import program_code\nimport json, sys\n"
ANSWER = "print(json.dumps(program_code(sys.argv[1] if len(sys.argv) > 1 else '')))\n"
ROOT = Path(__file__).parents[4]


def run(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_code_is_the_main_file_and_what_it_imports_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("x = 1\n")
    (tmp_path / "lazy.py").write_text("raise SystemExit('this code was run')\n")
    with zipfile.ZipFile(tmp_path / "deps.zip", "w") as archive:
        archive.writestr("dep.py", "y = 2\n")
    added = tmp_path / "added.py"
    added.write_text("z = 3\n")
    main = tmp_path / "main.py"
    main.write_text(
        f"{ASK}import csv, own\nsys.path.append({str(tmp_path / 'deps.zip')!r})\nimport dep\n{ANSWER}"
    )
    answer = run(str(main), f"file://{added}")
    files = [str(main), *sorted(str(tmp_path / name) for name in ("added.py", "deps.zip", "own.py"))]
    assert answer == {"code": hash_of_files(files), "code_files": files}


def test_a_module_that_minds_being_looked_at_is_not_asked(tmp_path: Path) -> None:
    main = tmp_path / "main.py"
    odd = (
        "class Odd:\n    __file__ = property(lambda self: 1 / 0)\n    __class__ = __file__\n"
        "class Lazy(type(sys)):\n    def __getattribute__(self, name): raise SystemExit(name)\n"
        "sys.modules['odd'], sys.modules['lazy'] = Odd(), Lazy('lazy')\n"
    )
    main.write_text(f"{ASK}{odd}{ANSWER}")
    assert run(str(main))["code_files"] == [str(main)]


def test_the_code_of_what_is_no_file_or_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    assert run("-c", f"{ASK}{ANSWER}") == {}
    main = tmp_path / "main.py"
    main.write_text(f"{ASK}{ANSWER}")
    assert run(str(main), "hdfs://host/deps.zip") == {}
    assert run(str(main), str(tmp_path / "gone.zip")) == {}
