"""The jar, which is compiled against one PySpark, fits the one that is installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pyspark
import pytest

from tests.support.class_files import ClassPath

pytestmark = pytest.mark.thorough

#: Only the Kafka client's own class loader finds what these use.
_OF_CLIENT = "lineagemaster/delivery/kafka/"


def test_all_that_the_agents_classes_use_of_spark_is_there(jar: Path) -> None:
    installed = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    classes = ClassPath([jar, *installed])
    own = [
        name.removesuffix(".class")
        for name in zipfile.ZipFile(jar).namelist()
        if name.startswith("lineagemaster/") and name.endswith(".class")
    ]
    assert len(own) > 50
    problems = [problem for name in own for problem in classes.problems(name)]
    assert [problem for problem in problems if _OF_CLIENT not in problem] == []
