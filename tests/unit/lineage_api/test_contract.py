"""What is promised about the API: OpenAPI, docs/api.md, parameters that are those of the queries."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest
from fastapi.openapi.models import OpenAPI

from lineage_api.access import OPEN_PATHS, Access
from lineage_api.app import create_app
from lineage_api.csv import CHOICE_COLUMNS, COMPARE_COLUMNS, MISSING_COLUMNS, RECORD_COLUMNS, TRACE_COLUMNS
from lineage_api.openapi import EXAMPLES_FILE
from lineage_api.parameters import (
    DatasetParameters,
    DatasetsParameters,
    RecordParameters,
    TraceParameters,
)
from lineage_api.problems import PROBLEMS
from lineage_service import queries
from lineage_service.result_tables import (
    ABSENCE_COLUMNS,
    CONTRAST_COLUMNS,
    DATASET_COLUMNS,
    EXPLANATION_COLUMNS,
    FAILURE_COLUMNS,
    HISTORY_COLUMNS,
    ROW_SET_COLUMNS,
    SLOW_COLUMNS,
    SUSPECT_COLUMNS,
)
from lineage_service.testing.queries import MemoryQueries
from tests.support.api_examples import examples

DOCUMENT = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    return create_app(MemoryQueries()).openapi()


def operations(openapi: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def resolved(openapi: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in given:
        return given
    _, _, kind, name = given["$ref"].split("/")
    found: dict[str, Any] = openapi["components"][kind][name]
    return found


def parameters_of(openapi: dict[str, Any], name: str) -> set[str]:
    operation = dict(operations(openapi))[name]
    return {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"}


def documented_parameters(section: str) -> set[str]:
    text = DOCUMENT.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))


def test_openapi_is_valid_and_every_reference_resolves(openapi):
    OpenAPI.model_validate(openapi)
    openapi_spec_validator.validate(openapi)
    assert openapi["openapi"].startswith("3.")
    for kind, named in openapi["components"].items():
        if kind != "securitySchemes":
            assert set(re.findall(rf"'#/components/{kind}/([\w-]+)'", str(openapi))) == set(named)


def test_every_operation_and_parameter_is_described_and_has_an_example(openapi):
    for name, operation in operations(openapi):
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["operationId"], name
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (name, parameter["name"])
            assert parameter["schema"]["examples"], (name, parameter["name"])
            assert "null" not in str(parameter["schema"]), (name, parameter["name"])


def test_every_parameter_has_bounds(openapi):
    for name, operation in operations(openapi):
        for parameter in operation.get("parameters", ()):
            schema = parameter["schema"]
            if schema["type"] == "string":
                assert "maxLength" in schema or "enum" in schema, (name, parameter["name"])
            elif schema["type"] == "integer":
                assert {"minimum", "maximum"} <= set(schema), (name, parameter["name"])
            elif schema["type"] == "number":
                ends = {key.removeprefix("exclusive").lower() for key in schema}
                assert {"minimum", "maximum"} <= ends, (name, parameter["name"])
            else:
                assert schema["type"] == "boolean", (name, parameter["name"])


def test_every_field_of_every_answer_is_described(openapi):
    for name, schema in openapi["components"]["schemas"].items():
        assert schema["description"], name
        for field, each in schema["properties"].items():
            assert each.get("description"), (name, field)


def test_every_answer_has_an_example_that_its_schema_accepts(openapi):
    for name, operation in operations(openapi):
        for status, given in operation["responses"].items():
            response = resolved(openapi, given)
            assert response["description"], (name, status)
            for header in response.get("headers", {}).values():
                assert resolved(openapi, header)["description"], (name, status)
            for media_type, content in response.get("content", {}).items():
                assert content["example"], (name, status, media_type)
                schema = {**content["schema"], "components": openapi["components"]}
                jsonschema.validate(content["example"], schema, jsonschema.Draft202012Validator)


def test_every_error_in_openapi_is_a_problem_of_that_status(openapi):
    for name, operation in operations(openapi):
        errors = {status: resolved(openapi, each) for status, each in operation["responses"].items()}
        for status, response in errors.items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (name, status)
                assert response["content"]["application/problem+json"]["example"]["status"] == int(status)
        assert {"400", "413", "414", "421", "422", "431"} <= set(errors), name


def test_the_token_is_asked_for_where_it_is_in_openapi(openapi):
    locked = create_app(MemoryQueries(), access=Access.of("a-token-of-this-test")).openapi()
    for name, operation in operations(locked):
        is_open = name.split()[1] in OPEN_PATHS
        assert operation.get("security") == (None if is_open else [{"bearer": []}, {"apiKey": []}])
        assert ("401" in operation["responses"]) is not is_open
    for name, operation in operations(openapi):
        assert {} in operation.get("security", [{}]), name


def test_the_examples_are_what_the_service_answers(caplog):
    caplog.set_level(logging.CRITICAL)
    kept = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
    assert examples() == kept, "run `python -m tests.support.api_examples`, and look at what changed"


def test_traces_records_and_datasets_offer_csv(openapi):
    offering = {
        name
        for name, operation in operations(openapi)
        if "text/csv" in operation["responses"]["200"].get("content", {})
    }
    assert offering == {
        "GET /api/trace",
        "GET /api/history",
        "GET /api/applications/{app}/trace",
        "GET /api/applications/{app}/rowset",
        "GET /api/applications/{app}/explanation",
        "GET /api/applications/{app}/absence",
        "GET /api/applications/{app}/missing",
        "GET /api/missing",
        "GET /api/applications/{app}/failures",
        "GET /api/applications/{app}/slow",
        "GET /api/applications/{app}/suspects",
        "GET /api/applications/{app}/contrast",
        "GET /api/applications/{app}/compare",
        "GET /api/applications/{app}/nodes/{node}/records",
        "GET /api/datasets",
        "GET /api/dataset",
        "GET /api/compare",
        "GET /api/jobs/{job}/waves",
    }


def test_the_documented_endpoints_are_those_of_the_app(openapi):
    documented = re.findall(r"^\| `((?:GET|POST) /\S*)` \|", DOCUMENT, flags=re.MULTILINE)
    assert documented == [name for name, _ in operations(openapi)]


@pytest.mark.parametrize(
    ("section", "operation"),
    [
        ("Applications", "GET /api/applications"),
        ("Records", "GET /api/applications/{app}/nodes/{node}/records"),
        ("Traces of datasets", "GET /api/trace"),
        ("Traces", "GET /api/applications/{app}/trace"),
        ("Traces", "POST /api/applications/{app}/trace/graph"),
        ("Row sets", "GET /api/applications/{app}/rowset"),
        ("Explanations", "GET /api/applications/{app}/explanation"),
        ("Absent keys", "GET /api/applications/{app}/absence"),
        ("Missing rows", "GET /api/applications/{app}/missing"),
        ("Slow records", "GET /api/applications/{app}/slow"),
        ("Suspects", "GET /api/applications/{app}/suspects"),
        ("Contrast", "GET /api/applications/{app}/contrast"),
        ("Values", "GET /api/applications/{app}/values"),
        ("Datasets", "GET /api/datasets"),
        ("One dataset", "GET /api/dataset"),
        ("Comparisons", "GET /api/compare"),
    ],
)
def test_the_documented_parameters_are_those_of_the_app(openapi, section, operation):
    assert documented_parameters(section) == parameters_of(openapi, operation)


def test_the_documented_problems_and_columns_are_those_of_the_app():
    documented = re.findall(r"^\| (\d+) \| `urn:lineage-master:([\w-]+)` \|", DOCUMENT, flags=re.MULTILINE)
    known = {(str(int(status)), name) for status, name, _ in PROBLEMS.values()} | {("500", "unexpected")}
    assert set(documented) == known
    assert f"`{','.join(TRACE_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(CHOICE_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(COMPARE_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(MISSING_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(FAILURE_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(SLOW_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(SUSPECT_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(CONTRAST_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(ROW_SET_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(EXPLANATION_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(ABSENCE_COLUMNS)}`" in DOCUMENT
    assert TRACE_COLUMNS[-len(RECORD_COLUMNS) :] == RECORD_COLUMNS
    assert f"`{','.join(DATASET_COLUMNS)}`" in DOCUMENT
    assert f"`{','.join(HISTORY_COLUMNS)}`" in DOCUMENT


def test_the_parameters_are_the_fields_of_the_queries_with_the_same_defaults():
    for parameters, query in (
        (RecordParameters, queries.RecordQuery),
        (TraceParameters, queries.TraceQuery),
        (DatasetsParameters, queries.DatasetsQuery),
        (DatasetParameters, queries.DatasetQuery),
    ):
        defaults = {
            field.name: field.default
            for field in dataclasses.fields(query)
            if field.default is not dataclasses.MISSING
        }
        names = {name for name, field in parameters.model_fields.items() if not field.is_required()}
        assert names == set(defaults)
        assert {name: parameters.model_fields[name].default for name in names} == defaults
