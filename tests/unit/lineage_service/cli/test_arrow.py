"""A process that is asked one thing starts without pandas, and whoever wants pandas has it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
import lineage_service.cli.trigger
import pyarrow as pa, pyarrow.dataset
assert pa.array([1, None]).null_count == 1
assert "pandas" not in sys.modules and "sklearn" not in sys.modules
frame = pa.table({"number": [1.5]}).to_pandas()
import pandas
assert isinstance(frame, pandas.DataFrame)
assert pa.Table.from_pandas(frame).column("number").to_pylist() == pa.array(frame["number"]).to_pylist()
assert not any(type(finder).__name__ == "_Absent" for finder in sys.meta_path)
from lineage_service.cli.arrow import release_memory
release_memory()
"""


def test_pandas_is_not_imported_before_somebody_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
