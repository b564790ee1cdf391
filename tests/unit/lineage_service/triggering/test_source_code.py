from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from lineage_service.triggering.certain.source_code import code_now, unsteady_call
from spark_agent.contract.program_code import hash_of_files


def script(folder: Path, text: str) -> list[str]:
    path = folder / "job.py"
    path.write_text(text, encoding="utf-8")
    return [str(path)]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("from datetime import datetime\n\nx = datetime.now()", "datetime.datetime.now"),
        ("import datetime as d\nx = d.date.today()", "datetime.date.today"),
        ("import random\nx = random.Random(1).random()", "random.Random"),
        ("import numpy as np\nnp.random.rand(3)", "numpy.random.rand"),
        ("import requests\nrequests.get('http://x')", "requests.get"),
        ("from pyspark.sql import functions as F\nF.current_date()", "current_date"),
        ("from pyspark.sql.functions import rand as r\nr(1)", "rand"),
        ("spark.sql('select now() as n')", "now()"),
        ('df.where("day = current_date")', "current_date"),
    ],
)
def test_what_differs_from_run_to_run_is_named(text: str, call: str, tmp_path: Path) -> None:
    found = unsteady_call(script(tmp_path, text))
    assert found is not None
    assert found.call == call
    assert f"job.py:{found.line}" in str(found)


@pytest.mark.parametrize(
    "text",
    [
        '"""Takes current_date from its input."""',
        "from pyspark.sql import functions as F\nF.unix_timestamp('at')",
        "import datetime\nx = datetime.datetime(2026, 1, 1)",
        "now = rows.first\nnow()",
        "import time\ntime.sleep(1)",
    ],
)
def test_what_does_not_is_not(text: str, tmp_path: Path) -> None:
    assert unsteady_call(script(tmp_path, text)) is None


def test_archives_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "deps.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lib/clock.py", "import time\ntime.time()")
    found = unsteady_call([str(path)])
    assert found is not None
    assert found.file.endswith("deps.zip/lib/clock.py")


def test_code_that_is_no_python_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError):
        unsteady_call(script(tmp_path, "x = = 1"))


def test_the_hash_is_of_contents_and_names(tmp_path: Path) -> None:
    files = script(tmp_path, "x = 1")
    before = hash_of_files(files)
    assert code_now(files) == before
    script(tmp_path, "x = 2")
    assert code_now(files) != before
    Path(files[0]).unlink()
    assert code_now(files) is None
