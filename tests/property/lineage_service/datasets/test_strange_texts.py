"""Names and cursors of strangers: an answer, or an error that says what is wrong with them."""

from __future__ import annotations

import base64
import json
from contextlib import suppress

from hypothesis import example, given
from hypothesis import strategies as st

from lineage_service.datasets.pages import dataset_page, datasets_page
from lineage_service.datasets.places import matches, without_wildcards
from lineage_service.errors import InvalidQueryError, NotFoundError
from lineage_service.queries import DatasetQuery, DatasetsQuery
from spark_agent.contract.dataset_names import DatasetName
from tests.support.dataset_applications import Job, dataset, state

PIECES = (
    "/",
    "//",
    "file:",
    "s3a://",
    "s3://b",
    "data",
    "k=v",
    ".",
    "..",
    "*",
    "[",
    "]",
    "{",
    "}",
    ",",
    "?",
    "\x00",
    "%20",
    "é",
)
strange = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=20)


def shop(name: str) -> Job:
    job = Job("app")
    job.write("/data/monthly")
    job.write(name)
    job.write("", dataset=dataset(name, "kafka", "kafka://b:9092"))
    job.unfollowed([{"dataset": dataset(name)}], {"name": name, "description": name})
    return job


@given(strange, strange)
@example("", "/")
@example("[", "[")
def test_any_name_is_found_or_refused_in_words(name: str, other: str) -> None:
    made = state(shop(other))
    assert datasets_page(made, DatasetsQuery(text=name)).total >= 0
    with suppress(NotFoundError, InvalidQueryError):
        dataset_page(made, DatasetQuery(name=name))


@given(strange)
def test_what_an_application_named_is_found_by_its_path(name: str) -> None:
    made = state(shop(name))
    for one in datasets_page(made, DatasetsQuery()).datasets:
        if one.path and one.path == one.path.rstrip("/"):
            with suppress(InvalidQueryError):  # another one has that name, too
                page = dataset_page(made, DatasetQuery(name=one.path, namespace=one.namespace or None))
                assert one.namespace in ("", page.dataset.namespace)


def encoded(values: list[object]) -> str:
    """As a cursor is, whatever is in it."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just([])
cursors = st.text(max_size=60) | st.lists(values, max_size=6).map(encoded)


@given(cursors)
@example(encoded(["", float("inf"), "", 0, ""]))
@example("W" * 100_000)
def test_any_cursor_is_one_of_this_service_or_refused(cursor: str) -> None:
    made = state(shop("/in"))
    for page in (
        lambda: datasets_page(made, DatasetsQuery(cursor=cursor)),
        lambda: dataset_page(made, DatasetQuery(name="/data/monthly", cursor=cursor)),
    ):
        with suppress(InvalidQueryError):
            page()


@given(strange, strange)
def test_any_pattern_has_a_folder_and_is_matched_without_an_error(pattern: str, path: str) -> None:
    named = DatasetName("file", pattern)
    assert "*" not in without_wildcards(named).name
    assert matches(named, DatasetName("file", path)) in (True, False)
