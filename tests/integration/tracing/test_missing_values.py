"""Values that are not there, cut or withheld: each is told from the others, with what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineage_service.lineage import TracedNode, Values
from lineage_service.queries import TraceQuery
from lineage_service.tracing.query.service import LineageQueries
from spark_agent import contract
from tests.support.file_applications import APP, MAP, questions_of, splits_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "rows.txt").write_text("one\ntwo\n")
    return tmp_path / "rows.txt"


def asked(path: Path, **fields: Any) -> LineageQueries:
    return questions_of(path.parent, splits_of(path), [2], **fields)


def values(questions: LineageQueries, offset: int = 0) -> Values:
    return questions.values(APP, f"0#{offset}", str(MAP))


def trace(questions: LineageQueries, offset: int = 0, **query: Any) -> tuple[str, TracedNode]:
    """(what it says to do, the map's records)."""
    found = questions.trace(
        APP, TraceQuery(direction="forward", node=str(MAP), partition=0, offset=offset, values=True, **query)
    )
    return found.how, found.nodes[0]


def test_values_that_were_not_captured_say_how_to_capture_them(path: Path) -> None:
    questions = asked(path)
    found = values(questions)
    assert (found.captured, [(step.name, step.type, step.value) for step in found.steps]) == (
        False,
        [("textFile", "text", "one")],
    )
    assert "run the job with --conf spark.lineage.detailed=true" in found.how
    assert trace(questions)[0] == found.how
    query = TraceQuery(direction="forward", node=str(MAP), partition=0, offset=0)
    assert questions.trace(APP, query).how == ""


def test_values_that_are_there_lack_nothing(path: Path) -> None:
    questions = asked(path, detailed=True, values={0: [("str", "ONE…"), ("int", "2")]})
    first, second = values(questions, 0), values(questions, 1)
    assert (first.captured, first.how, second.how) == (True, "", "")
    assert [(step.type, step.value, step.cut) for step in first.steps] == [
        ("text", "one", False),
        ("str", "ONE…", False),  # it ends so by itself: nothing was cut
    ]
    assert [(step.type, step.value) for step in second.steps] == [("text", "two"), ("int", "2")]
    how, node = trace(questions, 1)
    assert (how, node.records[0].value, node.records[0].value_type) == ("", "2", "int")


def test_values_of_operations_that_were_not_chosen_name_the_settings(path: Path) -> None:
    how = values(asked(path, detailed=True)).how
    assert "no values were captured of map (1)" in how
    assert "spark.lineage.values.nodes" in how
    assert "spark.lineage.values.call.sites" in how


def test_records_beside_the_sample_say_so(path: Path) -> None:
    questions = asked(path, detailed=True, values_sample=0.25, values={0: [("str", "ONE")]})
    assert values(questions, 0).how == ""
    assert "some records of map (1) are not in the sample" in values(questions, 1).how
    assert "spark.lineage.values.sample=1, not 0.25" in values(questions, 1).how
    assert trace(questions, 1)[0] == values(questions, 1).how


def test_a_value_that_has_not_arrived_is_not_called_unchosen(path: Path) -> None:
    questions = asked(path, detailed=True, values={0: [("str", "ONE")]}, manifest={"blocks": 2})
    assert "some values of map (1) have not arrived: missing blocks: 1" in values(questions, 1).how


def test_a_withheld_value_is_told_from_one_that_reads_the_same(path: Path) -> None:
    questions = asked(
        path,
        detailed=True,
        values={0: [contract.WITHHELD, ("str", contract.WITHHELD[1])]},
        manifest={"withheld": 1},
    )
    assert values(questions, 0).steps[-1].type == "withheld"
    assert "the function of spark.lineage.redact failed" in values(questions, 0).how
    assert values(questions, 1).steps[-1].type == "str"
    assert values(questions, 1).how == ""
    how, node = trace(questions, 0)
    assert "spark.lineage.redact" in how
    assert node.records[0].value_type == "withheld"


def test_a_cut_value_says_so_and_what_makes_it_longer(path: Path) -> None:
    questions = asked(path, detailed=True, values={0: [("str", "ON…"), ("str", "TWO")]}, manifest={"cut": 1})
    assert [step.cut for step in values(questions, 0).steps] == [False, True]
    assert "spark.lineage.values.max.characters" in values(questions, 0).how
    assert [step.cut for step in values(questions, 1).steps] == [False, False]
    assert values(questions, 1).how == ""
