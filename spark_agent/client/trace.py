"""`trace`: the lineage of an RDD or a file, asked for in the running session and given as rows for Spark.

Asks the HTTP API of the service; nothing of it runs on executors. For its users: docs/tracing-in-spark.md.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from spark_agent import agent
from spark_agent.agent import Agent
from spark_agent.client.application import Application, normal_path
from spark_agent.client.failures import Failure, failures_of
from spark_agent.client.http import ApiClient, TraceError, default_address
from spark_agent.client.lineage_records import LineageRecords, records_of_all
from spark_agent.client.missing_rows import MissingRow, missing_rows
from spark_agent.client.slow_records import SlowRecord, slow_records_of
from spark_agent.sql.rerun.rerun import CannotRerunError

__all__ = ["LineageRecords", "TraceError", "trace"]


def trace(
    of: Any, *, application: str | None = None, api: str | None = None, wait_s: float = 30.0
) -> LineageRecords:
    """The records of an RDD of this session, of an output folder, or of an input or output file.

    An action must have used it. `application` is an earlier application's id, for a folder or file; `api`
    another address than that of spark.lineage.api. Waits at most `wait_s` until what the application has
    done so far can be asked for, and warns when it is not. Raises TraceError.
    """
    client, application, running = _named(application, api)
    traced = _traced(client, application, running, wait_s)
    if isinstance(of, (str, os.PathLike)):
        path = normal_path(os.fspath(of))
        if running is not None and running.spark_sessions.wrote(path):
            # An output of a query whose records were not captured: the query runs again for a row.
            rerun = partial(_rerun, client, running, partial(running.spark_sessions.rerun, path), wait_s)
            missing = _asking(running, path)
            return LineageRecords(traced, frozenset(), within=path, _rerun=rerun, _missing=missing)
        return _asked_again(running, traced, path)
    number = getattr(getattr(of, "_lineage_node", None), "number", None)
    if number is None:
        raise TraceError(f"{of!r} is neither a path nor an RDD that was made while lineage was on")
    node_id = f"{application}#{number}"
    if node_id not in traced.nodes:
        raise TraceError("no action has used this RDD yet (or it is a part of an operation): act on it first")
    return LineageRecords(traced, frozenset({node_id}))


def failures(
    *, application: str | None = None, api: str | None = None, wait_s: float = 30.0
) -> list[Failure]:
    """Which records made tasks of this session, or of an earlier application, fail. As `trace.failures`.

    What failed just now may take a moment to be stored. Raises TraceError.
    """
    client, application, running = _named(application, api)
    if running is not None:
        _wait(client, application, running, wait_s)
    return failures_of(client.get("applications", application, "failures"))


def slow(
    *, limit: int = 20, application: str | None = None, api: str | None = None, wait_s: float = 30.0
) -> list[SlowRecord]:
    """Which records took long in this session, or in an earlier application. As `trace.slow`.

    Raises TraceError.
    """
    client, application, running = _named(application, api)
    if running is not None:
        _wait(client, application, running, wait_s)
    return slow_records_of(client.get("applications", application, "slow", limit=str(limit)))


def many(records: Sequence[LineageRecords]) -> LineageRecords:
    """Records that were chosen one by one, as one set: they are traced together. As `trace.many`.

    `trace.many([trace(FILE).row(3), trace(FILE).row(8)]).go_back_all()`. Raises TraceError.
    """
    return records_of_all(records)


trace.many = many  # type: ignore[attr-defined] # functions take attributes
trace.failures = failures  # type: ignore[attr-defined] # functions take attributes
trace.slow = slow  # type: ignore[attr-defined] # functions take attributes


def _named(application: str | None, api: str | None) -> tuple[ApiClient, str, Agent | None]:
    """(who answers, the application, its agent if it is this session's). Raises TraceError."""
    active = agent.active()
    if application is None:
        if active is None:
            raise TraceError(
                "lineage is off in this session: start it with spark.lineage.enabled=true, or name the "
                "application of an earlier one"
            )
        application = active.session.application_id
    named = api or (active.session.api if active is not None else "")
    client = ApiClient(named or default_address(os.environ))
    running = active if active is not None and application == active.session.application_id else None
    return client, application, running


def _traced(client: ApiClient, application: str, running: Agent | None, wait_s: float) -> Application:
    """What is stored of an application, after a wait for what a running one has done so far."""
    if running is not None:
        _wait(client, application, running, wait_s)
    return Application.load(client, application)


def _wait(client: ApiClient, application: str, running: Agent, wait_s: float) -> None:
    running.spark_sessions.flush()
    events = running.session.events
    missing = client.wait_for(application, events.committed_runs, events.emitted_events, wait_s)
    if missing:
        warnings.warn(f"the lineage of {application} is not complete: {missing}", stacklevel=4)


def _asked_again(running: Agent | None, traced: Application, path: str) -> LineageRecords:
    """The records at a path; of a file that queries of this session read, rows can be asked for again."""
    missing = _asking(running, path)
    try:
        return replace(_at_path(traced, path), _missing=missing)
    except TraceError as error:  # the level lazy: nothing else can be had of it
        if missing is None:
            raise
        return LineageRecords(traced, frozenset(), within=path, _missing=missing, _problem=str(error))


def _asking(running: Agent | None, path: str) -> Callable[[int], list[MissingRow]] | None:
    """What asks the queries of this session that read a file; None where none did."""
    if running is None or not running.spark_sessions.has_read(path):
        return None
    return partial(_missing, running, path)


def _missing(running: Agent, path: str, row: int) -> list[MissingRow]:
    application = running.session.application_id
    return missing_rows(application, path, row, running.spark_sessions.missing(path, row))


def _at_path(application: Application, path: str) -> LineageRecords:
    node_ids = application.nodes_at(path)
    if node_ids and not os.path.isfile(path):
        return LineageRecords(application, node_ids)
    return LineageRecords(application, frozenset({application.node_of_file(path)}), within=path)


def _rerun(
    client: ApiClient,
    running: Agent,
    run_again: Callable[[int], tuple[int, str]],
    wait_s: float,
    row: int,
) -> LineageRecords:
    """The records of a row, by running its query again. Raises TraceError."""
    try:
        node, bound = run_again(row)
    except CannotRerunError as error:
        raise TraceError(str(error)) from None
    if bound:
        warnings.warn(f"this lineage is an upper bound: {bound}", stacklevel=4)
    application = running.session.application_id
    traced = _traced(client, application, running, wait_s)
    return LineageRecords(traced, frozenset({f"{application}#{node}"}))
