"""What `lineage replay ... --job APP -- COMMAND --job APP -- COMMAND` asks for, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineage_service.cli import main
from lineage_service.cli.arguments import Parser
from lineage_service.cli.replay import configure
from lineage_service.cli.replay_chain import jobs_of


def asked(*words: str) -> list[tuple[str, list[str], list[str]]]:
    """(application, its command, the rows that are named) of each job."""
    parser = Parser(prog="lineage replay", allow_abbrev=False)
    configure(parser)
    at = words.index("--")
    options = parser.parse_args(list(words[:at]))
    options.words = list(words[at + 1 :])
    return [(job.application, job.words, job.start) for job in jobs_of(options)]


def test_each_application_has_its_command() -> None:
    words = (
        "out:1 out:2 --twice --job A -- python a.py --job x --job B -- spark-submit b.py -- -v --job=C -- c"
    )
    assert asked(*words.split()) == [
        ("A", ["python", "a.py", "--job", "x"], ["out:1", "out:2"]),
        ("B", ["spark-submit", "b.py", "--", "-v"], ["out:1", "out:2"]),
        ("C", ["c"], ["out:1", "out:2"]),
    ]


def test_without_the_flag_nothing_is_a_chain() -> None:
    assert asked("A", "out:1", "--", "python", "a.py", "--job", "B", "--", "x") == []


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("out:1 --job A -- python a.py", "say at least two applications, each with its command"),
        ("out:1 --job A -- --job B -- python b.py", "say at least two applications, each with its command"),
        ("out:1 --job A", "say at least two applications, each with its command"),
        (
            "--skip-failing --job A -- python a.py --job B -- python b.py",
            "--skip-failing is for one application: with --job, name rows of an output",
        ),
    ],
)
def test_what_is_no_chain_is_said(
    words: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["replay", "--home", str(tmp_path), *words.split()]) == 1
    assert problem in capsys.readouterr().err
