from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def judge(kind: str, text: str, *asked: list[str], folder: Path | None = None) -> list[dict[str, Any]]:
    ended = subprocess.run(
        [sys.executable, "-m", "lineage_service.replays.sift.judge", kind, text],
        input="".join(json.dumps(texts) + "\n" for texts in asked),
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize(
    "text", ["int(line) > 2", " int(line) > 2 ", "lambda row: int(row) > 2", "lambda line: int(line) > 2"]
)
def test_an_expression_of_line_and_a_function_are_asked_row_by_row(text: str) -> None:
    ready, first, second = judge("rows", text, ["1", "3", "x", "4"], [])
    assert ready == {}
    assert first["failing"] == [1, 3]
    assert first["errors"] == 1
    assert first["first"].startswith("ValueError: invalid literal")
    assert first["first"].endswith("on the row 'x'")
    assert second == {"failing": [], "errors": 0, "first": ""}


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("rows", "int(line", "SyntaxError"),
        ("rows", "1 > 0", "TypeError: it is neither"),
        ("all", "checks", "TypeError: write MODULE:FUNCTION"),
        ("all", "nowhere:check", "ModuleNotFoundError"),
        ("all", "json:nothing", "AttributeError"),
        ("all", "json:__name__", "TypeError: __name__ of json is no function"),
    ],
)
def test_what_is_no_test_is_said(kind: str, text: str, why: str) -> None:
    (answer,) = judge(kind, text, ["1"])
    assert answer["error"].startswith(why)


def test_a_function_is_asked_of_all_rows_and_may_print(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(
        "print('imported')\ndef is_wrong(rows):\n    print('asked')\n    return len(rows) > int(rows[0])\n"
    )
    answers = judge("all", "checks:is_wrong", ["2", "x"], ["1", "x"], [], folder=tmp_path)
    assert [answer.get("fails") for answer in answers] == [None, False, True, False]
    assert answers[3]["first"] == "IndexError: list index out of range"
