"""What is promised about the API: OpenAPI, docs/api.md, and models that mirror the answers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI

from api import models
from api.app import create_app
from api.parameters import RecordParameters, TraceParameters
from api.problems import PROBLEMS
from api.table import RECORD_COLUMNS, TRACE_COLUMNS
from lineage_service import answers
from lineage_service.questions_memory import MemoryQuestions

DOCUMENT = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    return create_app(MemoryQuestions()).openapi()


def operations(openapi: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def parameters_of(openapi: dict[str, Any], name: str) -> set[str]:
    operation = dict(operations(openapi))[name]
    return {each["name"] for each in operation["parameters"] if each["in"] == "query"}


def documented_parameters(section: str) -> set[str]:
    text = DOCUMENT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))


def test_openapi_is_valid_and_every_reference_resolves(openapi):
    OpenAPI.model_validate(openapi)
    assert openapi["openapi"].startswith("3.")
    references = set(re.findall(r"'#/components/schemas/(\w+)'", str(openapi)))
    assert references == set(openapi["components"]["schemas"])


def test_every_operation_and_parameter_is_described(openapi):
    for name, operation in operations(openapi):
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["operationId"], name
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (name, parameter["name"])


def test_every_error_in_openapi_is_a_problem(openapi):
    for name, operation in operations(openapi):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (name, status)


def test_openapi_shows_a_trace_that_its_model_accepts(openapi):
    (example,) = openapi["components"]["schemas"]["Trace"]["examples"]
    assert models.Trace.model_validate(example).model_dump(mode="json") == example


def test_traces_and_records_offer_csv(openapi):
    offering = {
        name
        for name, operation in operations(openapi)
        if "text/csv" in operation["responses"]["200"].get("content", {})
    }
    assert offering == {
        "GET /api/applications/{app}/trace",
        "GET /api/applications/{app}/nodes/{node}/records",
    }


def test_the_documented_endpoints_are_those_of_the_app(openapi):
    documented = re.findall(r"^\| `((?:GET|POST) /\S*)` \|", DOCUMENT, flags=re.MULTILINE)
    assert documented == [name for name, _ in operations(openapi)]


@pytest.mark.parametrize(
    ("section", "operation"),
    [
        ("Applications", "GET /api/applications"),
        ("Records", "GET /api/applications/{app}/nodes/{node}/records"),
        ("Traces", "GET /api/applications/{app}/trace"),
        ("Traces", "POST /api/applications/{app}/trace/graph"),
        ("Values", "GET /api/applications/{app}/values"),
    ],
)
def test_the_documented_parameters_are_those_of_the_app(openapi, section, operation):
    assert documented_parameters(section) == parameters_of(openapi, operation)


def test_the_documented_problems_and_columns_are_those_of_the_app():
    documented = re.findall(r"^\| (\d+) \| `urn:lineage-master:([\w-]+)` \|", DOCUMENT, flags=re.MULTILINE)
    known = {(str(int(status)), name) for status, name, _ in PROBLEMS.values()} | {("500", "unexpected")}
    assert set(documented) == known
    assert f"`{','.join(TRACE_COLUMNS)}`" in DOCUMENT
    assert TRACE_COLUMNS[-len(RECORD_COLUMNS) :] == RECORD_COLUMNS


@pytest.mark.parametrize(
    "name",
    [
        "Application",
        "ApplicationLag",
        "Dataset",
        "Edge",
        "Flow",
        "Graph",
        "GroupLag",
        "Lag",
        "Materialized",
        "Node",
        "PartitionLag",
        "Record",
        "RecordPage",
        "SourceRow",
        "Trace",
        "TracedNode",
        "ValueStep",
        "Values",
    ],
)
def test_a_model_has_the_fields_of_its_answer_in_order(name):
    fields = [field.name for field in dataclasses.fields(getattr(answers, name))]
    assert list(getattr(models, name).model_fields) == fields


def test_the_parameters_are_the_fields_of_the_queries_with_the_same_defaults():
    for parameters, query in ((RecordParameters, answers.RecordQuery), (TraceParameters, answers.TraceQuery)):
        defaults = {
            field.name: field.default
            for field in dataclasses.fields(query)
            if field.default is not dataclasses.MISSING
        }
        names = {name for name, field in parameters.model_fields.items() if not field.is_required()}
        assert names == set(defaults)
        assert {name: parameters.model_fields[name].default for name in names} == defaults
