"""Schemathesis asks a running service over a real flow store all that OpenAPI allows: it finds nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lineage_api.access import Access
from tests.support.api_store import build, service
from tests.support.e2e.browser import served

pytestmark = pytest.mark.thorough

HERE = Path(__file__).parents[1]
TOKEN = "a-token-for-schemathesis"
SEED = 20261121
#: For each endpoint, beside some hundred cases at the bounds of each parameter: twenty seconds in all.
EXAMPLES = 10
_RUN_S = 280


def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("schemathesis")
    assert program.exists(), (
        "schemathesis is not installed: it is in the extra `dev`, which `make test` installs"
    )
    app = service(build(tmp_path), Access.of(TOKEN))
    operations = sum(map(len, app.openapi()["paths"].values()))
    with served(app) as url:
        done = subprocess.run(
            [
                *(program, "--config-file", HERE / "schemathesis.toml", "--no-color"),
                *("run", f"{url}openapi.json", "--header", f"Authorization: Bearer {TOKEN}"),
                *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--seed", str(SEED)),
                *("--max-examples", str(EXAMPLES), "--workers", "2", "--request-timeout", "60"),
                *("--continue-on-failure", "--warnings", "off"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=_RUN_S,
        )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert f"{operations} selected / {operations} total" in done.stdout
