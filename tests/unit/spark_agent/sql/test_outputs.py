from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, ClassVar

import pytest

from spark_agent.sql.files import written_files
from spark_agent.sql.files.outputs import Output, Outputs
from spark_agent.sql.table_formats.delta_log import Commit
from spark_agent.sql.types import OutputFiles

PLACES = OutputFiles(key="a key", columns=["p"], values=["p"])
TWO = {"places": {"of": [["p=1", -1], ["p=2", -1]], "runs": [0, 0, 4, 1]}}


def output(folder: Path, *, deep: bool = False, **more: Any) -> Output:
    output = Output(str(folder), {}, **{"output_files": OutputFiles(), **more})
    output.jobs_before = written_files.jobs_below(str(folder), is_deep=deep)
    return output


def write(folder: Path, *names: str, job: str = "") -> str:
    """Files of one write job, which is given. `{}` stands for it."""
    job = job or str(uuid.uuid4())
    for name in names:
        path = folder / name.format(job)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")
    return job


def files_of(partitions: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(partition["split"], partition["path"]) for partition in partitions if "path" in partition]


def parts_of(partitions: list[dict[str, Any]]) -> list[tuple[int, list[tuple[int, str, int]]]]:
    return [
        (partition["split"], [(part["first"], part["path"], part["row"]) for part in partition["parts"]])
        for partition in partitions
        if "parts" in partition
    ]


def test_each_task_has_its_file(tmp_path: Path) -> None:
    written = output(tmp_path)
    job = write(tmp_path, "part-00000-{}-c000.txt", "part-00002-{}-c000.txt")
    for split, rows in ((0, 3), (1, 0), (2, 1)):
        written.take(split, rows, {})
    written_job, partitions = written.files()
    assert written_job == job
    assert files_of(partitions) == [
        (split, f"{tmp_path}/part-0000{split}-{job}-c000.txt") for split in (0, 2)
    ]


def test_a_query_of_no_rows_has_a_file_of_no_rows(tmp_path: Path) -> None:
    written = output(tmp_path)
    job = write(tmp_path, "part-00000-{}-c000.snappy.parquet")
    written.take(0, 0, {})
    assert files_of(written.files()[1]) == [(0, f"{tmp_path}/part-00000-{job}-c000.snappy.parquet")]


def test_rows_of_several_folders_are_told_by_parts(tmp_path: Path) -> None:
    written = output(tmp_path, output_files=PLACES, most_rows=3, deep=True)
    names = "p=1/part-00005-{}.c000.orc", "p=1/part-00005-{}.c001.orc", "p=2/part-00005-{}.c000.orc"
    job = write(tmp_path, *names)
    written.take(5, 6, TWO)
    first, second, third = (f"{tmp_path}/{name.format(job)}" for name in names)
    assert parts_of(written.files()[1]) == [(5, [(0, first, 0), (3, second, 0), (4, third, 0)])]


@pytest.mark.parametrize("is_deep", [True, False])
def test_files_of_earlier_jobs_are_not_those_of_this_one(tmp_path: Path, *, is_deep: bool) -> None:
    write(tmp_path, "p=1/part-00000-{}.c000.orc", "p=2/part-00000-{}.c000.orc")
    written = output(tmp_path, output_files=PLACES, deep=is_deep)
    job = write(tmp_path, "p=1/part-00000-{}.c000.orc", "p=2/part-00000-{}.c000.orc")
    written.take(0, 6, TWO)
    assert written.files()[0] == (job if is_deep else None)  # else it may be either


def test_a_job_of_which_files_are_missing_is_none(tmp_path: Path) -> None:
    written = output(tmp_path, output_files=PLACES)
    write(tmp_path, "p=1/part-00000-{}.c000.orc")
    written.take(0, 6, TWO)
    assert written.files() == (None, [])


def test_places_that_are_not_known_are_not_told(tmp_path: Path) -> None:
    written = output(tmp_path, output_files=PLACES)
    job = write(tmp_path, *(f"p={p}/part-0000{split}-{{}}.c000.orc" for p in (1, 2) for split in (0, 1)))
    written.take(0, 6, TWO)
    written.take(1, 6, {})  # too many runs of them
    written_job, partitions = written.files()
    assert written_job == job
    assert [split for split, _ in parts_of(partitions)] == [0]


def test_a_partition_may_be_elsewhere(tmp_path: Path) -> None:
    written = output(tmp_path / "table", output_files=PLACES)
    written.location = lambda folder: f"file:{tmp_path}/else" if folder == "p=2" else None
    job = write(tmp_path, "table/p=1/part-00000-{}.c000.orc", "else/part-00000-{}.c000.orc")
    written.take(0, 6, TWO)
    places = [(0, f"{tmp_path}/table/p=1/part-00000-{job}.c000.orc", 0)]
    places.append((4, f"{tmp_path}/else/part-00000-{job}.c000.orc", 0))
    assert parts_of(written.files()[1]) == [(0, places)]


def test_a_task_of_too_many_files_is_not_told(tmp_path: Path) -> None:
    written = output(tmp_path, most_rows=1)
    written.take(0, written_files.MOST_PIECES + 1, {})
    assert written.files() == (None, [])


def test_a_folder_that_cannot_be_listed_tells_nothing() -> None:
    written = Output("s3a://bucket/out", {}, output_files=PLACES)
    written.take(0, 6, TWO)
    assert written.files() == (None, [])


def test_a_query_that_failed_has_no_files(tmp_path: Path) -> None:
    outputs = Outputs()
    outputs.begin(1, output(tmp_path))
    write(tmp_path, "part-00000-{}-c000.txt")
    outputs.take(1, 0, 3, {})
    assert outputs.end(1, is_failed=True) is None
    assert outputs.end(1, is_failed=False) is None


def test_files_of_a_query_that_wrote_over_another_are_not_the_others(tmp_path: Path) -> None:
    outputs = Outputs()
    outputs.begin(1, output(tmp_path))
    first = write(tmp_path, "part-00000-{}-c000.txt")
    outputs.take(1, 0, 3, {})
    outputs.begin(2, output(tmp_path))
    (tmp_path / f"part-00000-{first}-c000.txt").unlink()
    second = write(tmp_path, "part-00000-{}-c000.txt")
    outputs.take(2, 0, 1, {})
    one, other = (outputs.end(node, is_failed=False) for node in (1, 2))
    assert one is not None
    assert not one.partitions
    assert one.output.has_unknown_files(one.partitions)
    assert other is not None
    assert not other.output.has_unknown_files(other.partitions)
    assert files_of(other.partitions) == [(0, f"{tmp_path}/part-00000-{second}-c000.txt")]


def test_a_job_is_one_query_s(tmp_path: Path) -> None:
    outputs = Outputs()
    outputs.begin(1, Output(str(tmp_path), {}, OutputFiles()))
    outputs.begin(2, Output(f"{tmp_path}/.", {}, OutputFiles()))
    write(tmp_path, "part-00000-{}-c000.txt")
    for node in (1, 2):
        outputs.take(node, 0, 3, {})
    written = [outputs.end(node, is_failed=False) for node in (1, 2)]
    assert [None if output is None else len(output.partitions) for output in written] == [1, 0]


def test_rows_that_are_not_one_line_each_are_not_told(tmp_path: Path) -> None:
    written = output(tmp_path)
    job = write(tmp_path, "part-00000-{}-c000.txt", "part-00001-{}-c000.txt")
    written.take(0, 3, {"lines": False})
    written.take(1, 3, {})
    _, partitions = written.files()
    assert files_of(partitions) == [(1, f"{tmp_path}/part-00001-{job}-c000.txt")]
    assert written.has_unknown_files(partitions)


def test_files_are_known_if_each_task_with_rows_has_one_or_its_rows_go_into_none(tmp_path: Path) -> None:
    written = output(tmp_path)
    write(tmp_path, "part-00000-{}-c000.txt")
    assert not written.has_unknown_files([])
    written.take(0, 3, {})
    written.take(1, 0, {})
    assert not written.has_unknown_files(written.files()[1])
    assert written.has_unknown_files([])
    written.reason = "these rows were deleted"
    assert not written.has_unknown_files([])


class _Awaited(Output):
    commits: ClassVar[list[Any]] = []

    @property
    def is_committed_later(self) -> bool:
        return True

    def commit(self) -> Any:
        answer = self.commits.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def files_of(self, commit: Any) -> list[dict[str, Any]]:
        return [{"split": commit.version}]


def test_a_commit_is_awaited_and_looked_for_ever_more_seldom() -> None:
    outputs, awaited = Outputs(), _Awaited("/t", {})
    outputs.begin(7, awaited)
    assert outputs.end(7, is_failed=False) is None
    awaited.commits[:] = [None, OSError("away"), Commit(3, ())]
    assert list(outputs.committed(is_eager=False)) == []
    assert list(outputs.committed(is_eager=False)) == []  # too early for a look
    assert list(outputs.committed(is_eager=True)) == []  # cannot be read
    assert outputs.uncommitted() == [7]
    [written] = outputs.committed(is_eager=True)
    assert written == (7, awaited, [{"split": 3}], Commit(3, ()))
    assert not outputs.is_awaiting


def test_a_query_that_failed_awaits_no_commit() -> None:
    outputs = Outputs()
    outputs.begin(7, _Awaited("/t", {}))
    assert outputs.end(7, is_failed=True) is None
    assert not outputs.is_awaiting
