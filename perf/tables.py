"""Tables in Markdown, as every report here has them, and where a report goes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def publish(folder: Path, name: str, figures: Mapping[str, Any], page: str) -> None:
    """Write the figures and the page of today as NAME-DATE.json and .md, and print the page."""
    folder.mkdir(parents=True, exist_ok=True)
    dated = f"{name}-{date.today()}"
    (folder / f"{dated}.json").write_text(json.dumps(figures, indent=1) + "\n")
    (folder / f"{dated}.md").write_text(page)
    print(page)
