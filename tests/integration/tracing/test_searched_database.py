"""A database for searches reads the files that are searched, and nothing else, whatever is asked of it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lineage_service.tracing.files.searched_database import searched_database


def test_only_the_searched_files_can_be_read(tmp_path: Path) -> None:
    allowed, other = tmp_path / "it's allowed.parquet", tmp_path / "other.parquet"
    for path in (allowed, other):
        pq.write_table(pa.table({"n": [1, 2]}), path)
    with searched_database([str(allowed)]) as database:
        assert database.execute("SELECT n FROM read_parquet(?)", [str(allowed)]).fetchall() == [(1,), (2,)]
        secret = [1]  # a variable of Python's is no table  # noqa: F841
        for query in (
            f"SELECT * FROM read_parquet('{other}')",
            f"SELECT * FROM '{other}'",
            f"SELECT * FROM read_parquet('{tmp_path}/*.parquet')",
            "SELECT * FROM read_csv('/etc/passwd')",
            "SELECT * FROM read_text('/etc/passwd')",
            "SELECT * FROM glob('/etc/*')",
            "SELECT * FROM read_json('http://127.0.0.1:1/x')",
            "SELECT * FROM secret",
            f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
            f"ATTACH '{tmp_path}/attached.db'",
            f"EXPORT DATABASE '{tmp_path}/exported'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            f"SET allowed_paths = ['{other}']",
            "SET threads = 100",
        ):
            with pytest.raises(duckdb.Error):
                database.execute(query)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((allowed.name, other.name))
