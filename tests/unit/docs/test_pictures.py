"""The drawn pictures of the documentation: each SVG is drawn from its source, and shows what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.pictures import ROOT, hash_in, main, source_hash, sources

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_a_picture_is_drawn_from_its_source(source: Path) -> None:
    svg = source.with_suffix(".svg").read_text(encoding="utf-8")
    assert hash_in(svg) == source_hash(source), f"{source.name} has changed: run `make pictures`"


def test_there_are_pictures() -> None:
    assert {source.stem for source in sources()} >= {"backward-trace", "layers", "processes"}


def test_without_graphviz_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    lines: list[str] = []
    assert main(say=lines.append) == 1
    assert "Graphviz" in lines[0]


def layers_that_are_checked() -> set[str]:
    """The packages that the contracts of import-linter put into layers; single modules are left out."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.findall(r"^layers = \[(.*?)\]$", text, re.DOTALL | re.MULTILINE)
    assert len(found) == 5
    names = {name.rpartition(".")[2] for layers in found for name in re.findall(r'[\w.]+(?=[" ])', layers)}
    return {
        name
        for name in names
        if any(ROOT.glob(f"*/{name}/__init__.py")) or any(ROOT.glob(f"*/*/{name}/__init__.py"))
    }


def test_the_picture_of_the_layers_names_each_of_them() -> None:
    drawn = (ROOT / "docs" / "pictures" / "layers.dot").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", " ".join(re.findall(r'label="([^"]*)"', drawn)).replace("\\n", " ")))
    assert layers_that_are_checked() <= words
