"""Paths of files as people and applications write them, as one name."""

from __future__ import annotations

import pytest

from lineage_service.tracing.files.file_parts import normal_path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/data/in.txt", "/data/in.txt"),
        ("/data/a#b?c%20d", "/data/a#b?c%20d"),
        ("file:/data/a#b?c", "/data/a#b?c"),
        ("file:///data/a%20b;c", "/data/a b;c"),
        ("file://host/data/x", "/data/x"),
        ("file://[half/an/address", "/an/address"),
        ("s3n://bucket/[a", "s3://bucket/[a"),
    ],
)
def test_a_path_has_one_name_whatever_stands_in_it(path: str, name: str) -> None:
    assert normal_path(path) == name
