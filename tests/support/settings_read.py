"""Which settings a command reads, found in its code: a second way to what the command line's table says.

Follows `settings` from the command's function into every function that it is passed to. A function that reads
`settings.NAME`, or is given `settings.NAME`, reads NAME. `self._settings` is not followed: nothing uses that.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lineage_service.cli import main
from lineage_service.settings import Settings

Place = tuple[str, str]
"""(module, function)."""


def settings_read_by(command: str) -> set[str]:
    """Names of settings that the command's code reads."""
    module, _, function = main.COMMANDS[command].target.partition(":")
    waiting: list[Place] = [(module, function)]
    seen: set[Place] = set()
    read: set[str] = set()
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        names, passed = _looked_at(*place)
        read |= names
        waiting += passed
    return read & set(Settings.model_fields)


def _looked_at(module: str, function: str) -> tuple[set[str], list[Place]]:
    """The settings that one function reads itself, and the functions that it passes them on to."""
    tree, imports = _parsed(module)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    names: set[str] = set()
    passed: list[Place] = []
    for node in (inner for outer in found for inner in ast.walk(outer)):
        if isinstance(node, ast.Attribute) and _is_settings(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.Call) and any(map(_is_settings, [*node.args, *_values(node)])):
            for called in (node.func, *node.args):  # `open(settings)`, and `partial(open, settings)`
                passed += _place_of(called, module, imports)
    return names, passed


def _values(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords]


def _is_settings(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "settings"


def _place_of(called: ast.expr, module: str, imports: dict[str, str]) -> list[Place]:
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        inside = imports.get(called.value.id)
        return [(inside, called.attr)] if inside is not None and find_spec(inside) is not None else []
    if not isinstance(called, ast.Name):
        return []
    whole = imports.get(called.id, f"{module}.{called.id}")
    where, _, name = whole.rpartition(".")
    return [(where, name)] if where.startswith(("lineage_service", "lineage_api")) else []


@cache
def _parsed(module: str) -> tuple[ast.Module, dict[str, str]]:
    """A module's code, and what each of its imported names stands for, wherever it is imported."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    imports = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return tree, imports
