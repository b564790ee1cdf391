"""Where tests stand: what several tests share is in tests/support, and no test leans on another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHARED = "tests.support"


def imports_of(path: Path) -> Iterator[str]:
    """The full names that a module imports, those within functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("folder", ["tests", "perf", "scripts", "examples"])
def test_what_tests_share_is_in_one_folder(folder: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in imports_of(path)
        if name.startswith("tests.") and not name.startswith(SHARED)
    ]
    assert wrong == []
