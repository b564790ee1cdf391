from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_agent.worker.guard import kernel
from tests.support.replay.playground import Playground


def run(
    playground: Playground, *command: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, cwd=playground.work, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("text", ["", "{}", "[", '{"version": 2}'])
def test_a_spec_that_is_not_understood_ends_python_before_the_first_line(tmp_path: Path, text: str) -> None:
    playground = Playground(tmp_path)
    spec = playground.spec()
    spec.write_text(text)
    before = playground.digest()
    ended = run(playground, sys.executable, "-c", "print('ran')", environment=playground.environment(spec))
    assert (ended.returncode, ended.stdout) == (3, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("lineage: replay refused: the guard cannot begin: ")
    assert line.endswith("; nothing was run")
    assert playground.digest() == before


@pytest.mark.parametrize("variable", ["", "/nowhere/spec.json", "."])
def test_a_spec_that_is_not_there_ends_python(tmp_path: Path, variable: str) -> None:
    playground = Playground(tmp_path)
    environment = playground.environment(playground.spec()) | {"LINEAGE_REPLAY": variable}
    ended = run(playground, sys.executable, "-c", "print('ran')", environment=environment)
    assert (ended.returncode, ended.stdout) == (3, "")


def test_a_sandbox_that_is_not_there_ends_python(tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    spec = playground.spec(sandbox=str(tmp_path / "none"))
    ended = run(playground, sys.executable, "-c", "print('ran')", environment=playground.environment(spec))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "none" in ended.stderr


def test_an_uncaught_refusal_is_one_sentence_with_path_place_and_advice(tmp_path: Path) -> None:
    ended = Playground(tmp_path).run("import os\nos.remove('notes.txt')\n")
    assert ended.exit_code == 1
    (line,) = ended.output.splitlines()
    assert line.startswith("lineage: replay refused: remove notes.txt (")
    assert " at job.py:2; nothing was changed; write below the temporary folder" in line
    assert not ended.changed


def test_other_errors_of_a_script_are_told_as_ever(tmp_path: Path) -> None:
    ended = Playground(tmp_path).run("def f():\n    return 1 / 0\nf()\n")
    assert "Traceback" in ended.output
    assert "ZeroDivisionError" in ended.output


def test_connections_are_noted(tmp_path: Path) -> None:
    script = (
        "import socket\ns = socket.socket()\ns.settimeout(1)\n"
        "try:\n    s.connect(('127.0.0.1', 9))\nexcept OSError:\n    pass\n"
    )
    assert Playground(tmp_path).run(script).notes["connections"] == ["127.0.0.1:9"]


def test_processes_that_are_allowed_are_remarked(tmp_path: Path) -> None:
    ended = Playground(tmp_path).run(
        "import subprocess\nprint(subprocess.check_output(['echo', 'seen'], text=True))\n",
        allow_processes=True,
    )
    assert (ended.exit_code, ended.notes["refused"]) == (0, [])
    assert "seen" in ended.output
    assert any("--allow-processes" in remark for remark in ended.notes["remarks"])


@pytest.mark.skipif(not kernel.is_offered(), reason="the kernel has no fence")
def test_an_allowed_process_is_confined_by_the_kernel(tmp_path: Path) -> None:
    ended = Playground(tmp_path).run(
        "import os, sys\nos.system(f'rm -rf {sys.argv[1]}; echo x > notes.txt; touch new')\n",
        allow_processes=True,
    )
    assert not ended.changed


def test_the_old_output_is_removed_in_pretence(tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    out = playground.data / "out"
    ended = playground.run(
        "import glob, os, pathlib, shutil, sys\nout = sys.argv[1] + '/out'\n"
        "shutil.rmtree(out)\nos.mkdir(out)\nos.makedirs(out + '/deep/er', exist_ok=True)\n"
        "for name in glob.glob(out + '/*'):\n    os.remove(name)\n"
        "pathlib.Path(out, '_SUCCESS').unlink()\nos.rmdir(out)\n",
        outputs=[f"file:{out}"],
    )
    assert (ended.exit_code, ended.notes["refused"]) == (0, []), ended.output
    assert not ended.changed
    assert {note["path"] for note in ended.notes["pretended"]} >= {str(out), f"{out}/part-00000"}


@pytest.mark.parametrize(
    "outputs", [["{}"], ["{}/out", "{}/in.txt/x"], ["/"], ["hdfs:{}/in.txt"], ["in.txt"]]
)
def test_what_was_read_is_not_removed_even_in_pretence(tmp_path: Path, outputs: list[str]) -> None:
    playground = Playground(tmp_path)
    data = str(playground.data)
    ended = playground.run(
        "import os, sys\nos.remove(sys.argv[1] + '/in.txt')\n",
        outputs=[path.format(data) for path in outputs],
        protected=[f"{data}/in.txt", *(path.format(data) for path in outputs)],
    )
    assert not ended.changed
    assert "in.txt" in ended.refused


def test_the_launcher_becomes_the_command_within_the_fences(tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    environment = playground.environment(playground.spec())
    launcher = (sys.executable, "-m", "spark_agent.worker.guard.launch")
    before = playground.digest()
    ended = run(
        playground,
        *launcher,
        "sh",
        "-c",
        "echo $TMPDIR; rm -rf ../data; echo x > new",
        environment=environment,
    )
    if kernel.is_offered():
        assert ended.stdout.strip() == str(playground.sandbox / "tmp")
    else:
        assert ended.returncode == 3
    assert playground.digest() == before
    ended = run(
        playground, *launcher, sys.executable, "-c", "open('notes.txt', 'w')", environment=environment
    )
    assert "replay refused: open for writing notes.txt" in ended.stderr
    assert playground.digest() == before


def test_the_launcher_says_what_is_wrong(tmp_path: Path) -> None:
    playground = Playground(tmp_path)
    environment = playground.environment(playground.spec())
    launcher = (sys.executable, "-m", "spark_agent.worker.guard.launch")
    for words in ((), ("no-such-command",)):
        ended = run(playground, *launcher, *words, environment=environment)
        assert ended.returncode == 3
        assert len(ended.stderr.splitlines()) == 1


def test_python_without_a_replay_imports_nothing_of_the_guard() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LINEAGE_REPLAY"}
    program = "import sys; print([m for m in sys.modules if m.startswith('spark_agent')])"
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "guard" not in printed
    assert "spark_agent.hook" in printed
