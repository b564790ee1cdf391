"""The Python client of the README, as it stands there, against a service over a real flow store."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from lineage_api.access import Access
from lineage_api.app import create_app
from lineage_service.tracing.query.service import LineageQueries
from tests.support.api_store import build
from tests.support.e2e.browser import served

README = Path(__file__).parents[3] / "README.md"
TOKEN = "a-token-for-the-readme"


def client() -> str:
    (found,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), flags=re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_client_of_the_readme_has_ten_lines() -> None:
    assert len([line for line in client().splitlines() if line.strip()]) <= 10


def test_the_client_of_the_readme_prints_what_made_a_row(tmp_path: Path) -> None:
    app = create_app(LineageQueries(build(tmp_path), time_budget_s=60), access=Access.of(TOKEN))
    with served(app) as url:
        program = client()
        for there, here in (
            ("http://127.0.0.1:8080/", url),
            ('token=""', f'token="{TOKEN}"'),
            ("/data/out/part-00003", str(tmp_path / "sums.csv")),
            ("row=12", "row=0"),
        ):
            assert program.count(there) == 1
            program = program.replace(there, here)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "write write#0#0 North,15",
        "sum 0#0 ",
        "filter 0#0 ",
        "filter 0#2 ",
        "read read#0#1 North,paid,10",
        "read read#0#4 North,paid,5",
    ]
