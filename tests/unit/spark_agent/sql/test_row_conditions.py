"""How a row of an output is taken apart, and how lists of files are compared."""

from __future__ import annotations

import pytest

from spark_agent.delivery.settings import EAGER, LAZY, read
from spark_agent.sql.files.input_state import _change, listing
from spark_agent.sql.rerun.row_conditions import WrittenFile, members


class Files:
    """A Seq of Hadoop's FileStatus, as far as it is asked."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def mkString(self, between: str) -> str:
        return between.join(self._texts)


def status(path: str, size: int, time: int) -> str:
    return (
        f"LocatedFileStatus{{path={path}; isDirectory=false; length={size}; replication=1; "
        f"blocksize=33554432; modification_time={time}; access_time=7; owner=; group=; permission=rw-rw-rw-; "
        "isSymlink=false; hasAcl=false; isEncrypted=false; isErasureCoded=false}"
    )


def test_a_list_of_files_is_read_from_what_hadoop_says_of_it() -> None:
    files = Files(status("file:/data/a b%20;.txt", 12, 34), status("s3a://bucket/x=1/y", 5, 6))
    assert listing(files) == {"/data/a b%20;.txt": (12, 34), "s3a://bucket/x=1/y": (5, 6)}
    assert listing(Files()) == {}


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"/a": (1, 1), "/b": (2, 2)}, ""),
        ({"/a": (1, 1)}, "/b is gone"),
        ({"/a": (1, 1), "/b": (2, 2), "/c": (3, 3)}, "/c is new"),
        ({"/a": (1, 1), "/b": (4, 2)}, "/b has changed (2 bytes then, 4 now)"),
        ({"/a": (1, 1), "/b": (2, 9)}, "/b was written again since (at 2 ms then, at 9 ms now)"),
    ],
)
def test_a_change_names_the_file(now: dict[str, tuple[int, int]], said: str) -> None:
    assert _change({"/a": (1, 1), "/b": (2, 2)}, now) == said


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        (
            '{"a":1,"b":"x, \\"y\\"}","c":{"d":[1.50,null]}}',
            {"a": "1", "b": '"x, \\"y\\"}"', "c": '{"d":[1.50,null]}'},
        ),
        ("{}", {}),
        ('{"a":1.0E10}', {"a": "1.0E10"}),
        ("[1]", None),
        ('{"a":', None),
        ("", None),
    ],
)
def test_the_members_of_a_json_line_stay_as_they_are_written(line: str, texts: dict[str, str] | None) -> None:
    assert members(line) == texts


def test_folders_between_root_and_file_say_their_values() -> None:
    path = "/out/tag=a%2Fb c/Day=__HIVE_DEFAULT_PARTITION__/part-0.parquet"
    file = WrittenFile(path, "/out", "parquet", {}, (), ("tag", "Day"))
    assert file.values_of_folders() == {"tag": "a/b c", "day": None}


@pytest.mark.parametrize(
    ("value", "level", "problems"),
    [("", EAGER, 0), (" Lazy ", LAZY, 0), ("index", EAGER, 1), ("eager", EAGER, 0), ("laziest", EAGER, 1)],
)
def test_a_level_that_nobody_knows_is_eager_and_told(value: str, level: str, problems: int) -> None:
    settings = read(lambda name, default: value if name == "spark.lineage.dataframes.level" else default)
    assert settings.dataframes_level == level
    assert len(settings.problems) == problems
