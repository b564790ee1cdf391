"""Suspects of any application of RDDs against loops over what each record was made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from lineage_service.lineage import Suspect
from lineage_service.queries import ContrastQuery, StartQuery, SuspectsMethod, SuspectsQuery
from lineage_service.tracing.debugging import consequences, lineages
from lineage_service.tracing.query.service import LineageQueries
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP
from tests.support.random_runs import applications
from tests.support.run_applications import Place, RunApplication


def start(place: Place) -> StartQuery:
    node, split, offset = place
    return StartQuery(node=str(node), partition=split, offset=offset)


def origins(application: RunApplication, places: Iterable[Place]) -> set[Place]:
    """All records that these were made of, and they themselves."""
    made, seen = application.made(), set(places)
    frontier = seen
    while frontier:
        frontier = {before for place in frontier for before in made[place]} - seen
        seen = seen | frontier
    return seen


def gave(application: RunApplication) -> dict[tuple[int, Place], int]:
    """(operator, input) -> outputs."""
    return Counter(
        (operator.node, (before, split, at))
        for stage in application.stages
        for before, operator in zip(
            [stage.begin, *(operator.node for operator in stage.operators)], stage.operators, strict=False
        )
        for split, outputs in enumerate(operator.made)
        for inputs in outputs
        for at in inputs
    )


def place_of(suspect: Suspect) -> Place:
    assert suspect.record is not None
    *_, split, offset = suspect.record.record_id.split("#")
    return int(suspect.record.node_id.rpartition("#")[2]), int(split), int(offset)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_each_record_that_stands_out_has_the_value_that_is_said(data: st.DataObject) -> None:
    application = data.draw(applications())
    places = sorted(application.ways())
    if not places:
        return
    bad = data.draw(st.lists(st.sampled_from(places), max_size=2, unique=True))
    good = data.draw(st.lists(st.sampled_from(places), max_size=3, unique=True)) if bad else []
    method: SuspectsMethod = data.draw(st.sampled_from(["graded", "newt"]))
    with TemporaryDirectory() as name:
        store = FileStore(Path(name))
        store.tell(*application.told())
        queries = LineageQueries(store, time_budget_s=60)
        query = SuspectsQuery(bad=tuple(map(start, bad)), good=tuple(map(start, good)), method=method)
        answer = queries.suspects(APP, query)
        with patch.object(lineages, "_MOST_TOGETHER", 0):  # each row is walked by itself
            assert LineageQueries(store, time_budget_s=60).suspects(APP, query) == answer
        with patch.object(consequences, "_FEW", 0):  # units are followed forward
            assert LineageQueries(store, time_budget_s=60).suspects(APP, query) == answer
        if bad:  # whatever it says, it answers
            queries.contrast(APP, ContrastQuery(bad=query.bad, good=query.good or query.bad))
    outputs, made, behind = gave(application), application.made(), origins(application, bad)
    scores = [suspect.score for suspect in answer.suspects]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    for suspect in answer.suspects:
        rank = 1 + sum(score > suspect.score for score in scores)
        assert suspect.rank == rank
        if suspect.record is None:
            continue
        place = place_of(suspect)
        if suspect.feature == "outputs":
            assert suspect.value == outputs.get((int(suspect.node_id.rpartition("#")[2]), place), 0)
        else:
            assert suspect.value == len(made[place])
        assert suspect.leads_to_bad == ((place in behind) if bad else None)
