"""Rows that are saved in a session: files of the names that they had, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_agent import TraceError
from spark_agent.client.explanation import InputRow
from spark_agent.client.saved_rows import save

pytestmark = pytest.mark.unit


def row(path: str | None, number: int, text: str | None, warning: str | None = None) -> InputRow:
    return InputRow(record=f"app#0#read#0#{number}", path=path, row=number, text=text, warning=warning)


def test_rows_become_lines_in_their_order_and_names_are_kept_apart(tmp_path: Path) -> None:
    rows = [row("/a/in.csv", 7, "seven"), row("/b/in.csv", 1, "ä"), row("/a/in.csv", 2, "two\r")]
    files = save(rows, str(tmp_path / "repro"))
    assert [Path(file).name for file in files] == ["in.csv", "in-2.csv"]
    assert [Path(file).read_bytes() for file in files] == [b"two\r\nseven\n", "ä\n".encode()]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(None, 3, "x"), "no lines of files"),
        (row("/a/in.csv", 3, None), "no lines of files"),
        (row("/a/in.csv", 3, "x", "it changed"), "/a/in.csv:4: it changed"),
    ],
)
def test_what_cannot_be_written_writes_nothing(bad: InputRow, said: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=said):
        save([row("/a/in.csv", 1, "one"), bad], str(tmp_path / "repro"))
    assert not (tmp_path / "repro").exists()


def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is there already"):
        save([row("/a/in.csv", 1, "one")], str(tmp_path))
    assert list(tmp_path.iterdir()) == []
