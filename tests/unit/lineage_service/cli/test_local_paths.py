from __future__ import annotations

from pathlib import Path

from lineage_service.cli.local_paths import is_file, is_there


def test_any_text_may_be_asked_about(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert is_there(str(tmp_path))
    assert is_file(str(tmp_path / "file"))
    assert not is_file(str(tmp_path))
    for text in ("", "a" * 5_000, "nul\0", "sales.csv:1," * 1_000):
        assert not is_there(text)
        assert not is_file(text)
