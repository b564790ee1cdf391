"""Draws the pictures of the documentation that have a text source: docs/pictures/*.dot become *.svg.

`python -m scripts.pictures` needs Graphviz. Each SVG names the hash of its source, so that a test
notices a picture that is out of date. Nothing else of the project needs Graphviz.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
#: Fonts of the reader's machine: labels are centred, so another width does no harm.
FONTS = "Helvetica, Arial, &quot;Liberation Sans&quot;, sans-serif"


def sources() -> list[Path]:
    return sorted(FOLDER.glob("*.dot"))


def source_hash(source: Path) -> str:
    """What an SVG says of its source."""
    return hashlib.sha256(source.read_bytes().replace(b"\r\n", b"\n")).hexdigest()


def hash_in(svg: str) -> str | None:
    """The hash of the source that an SVG was drawn from."""
    match = re.search(r"<!-- drawn from [\w.-]+ sha256:([0-9a-f]{64}) -->", svg)
    return match[1] if match else None


def drawn(source: Path, dot: str) -> str:
    """The SVG of a source, without what differs between versions of Graphviz for no reason."""
    run = subprocess.run([dot, "-Tsvg", source], check=True, capture_output=True, text=True)
    svg = re.sub(r"<!--(?! drawn).*?-->\s*", "", run.stdout, flags=re.DOTALL)
    svg = svg.replace('font-family="Helvetica,sans-Serif"', f'font-family="{FONTS}"')
    head, tag, rest = svg.partition("<svg ")
    return f"{head}<!-- drawn from {source.name} sha256:{source_hash(source)} -->\n{tag}{rest}"


def main(_arguments: Sequence[str] = (), say: Callable[[str], object] = print) -> int:
    dot = shutil.which("dot")
    if dot is None:
        say("pictures: there is no `dot` on the PATH: install Graphviz (Debian: apt install graphviz)")
        return 1
    for source in sources():
        target = source.with_suffix(".svg")
        target.write_text(drawn(source, dot), encoding="utf-8")
        say(f"drew {target.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
