"""Files by a folder or a glob."""

from __future__ import annotations

import pytest

from lineage_service.tracing.files.path_patterns import PathPattern


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/data/out", "/data/out/part-0", True),
        ("/data/out/", "/data/out/month=1/part-0", True),
        ("/data/out", "/data/output/part-0", False),
        ("/data/out/part-0", "/data/out/part-0", True),
        ("/", "/data/out/part-0", True),
        ("file:/data/out", "/data/out/part-0", True),
        ("s3a://bucket/out", "s3://bucket/out/part-0", True),
        ("s3a://bucket/*/part-*", "s3://bucket/out/part-0", True),
        ("/data/*.csv", "/data/a.csv", True),
        ("/data/*.csv", "/data/below/a.csv", False),
        ("/data/**/*.csv", "/data/below/deep/a.csv", True),
        ("/data/**/*.csv", "/data/a.csv", True),
        ("/data/month=*", "/data/month=1/part-0", True),
        ("/data/month=?", "/data/month=12/part-0", False),
        ("/data/month=[12]", "/data/month=2/part-0", True),
        ("/data/month=[!12]", "/data/month=2/part-0", False),
        ("/data/[z-a]*", "/data/z", False),
        ("part-*.csv", "/data/out/part-3.csv", True),
        ("part-*.csv", "/data/out/part-3.json", False),
        ("/data/a[1]", "/data/a[1]/part-0", True),
        ("/" + "*a" * 100 + "b", "/" + "a" * 250, False),
    ],
)
def test_files_fit(pattern: str, path: str, fits: bool) -> None:
    assert PathPattern(pattern).fits(path) is fits
