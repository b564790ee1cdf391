"""Spark Connect sessions: what a client executes becomes coarse nodes, for it runs in a server.

A client has no SparkContext and no plans. It sends each query as a message, which says what is read
and where it is written. There is one node for each message that runs something, with its sources, and a
gap: such an application is never complete. A client in a process with a running SparkContext (`local` mode
starts a server there) is part of that application. Any other one is an application of its own, with the id of
the session, if its conf has `spark.lineage.enabled=true`. Whatever fails here leaves the message as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_agent.delivery.log import logger
from spark_agent.driver.call_sites import call_site
from spark_agent.driver.session import Session
from spark_agent.sql import tables
from spark_agent.sql.tables import Endpoint

if TYPE_CHECKING:
    from spark_agent.sql.runtime.coarse_queries import CoarseQueries

#: Methods of the client that send a plan which is then run.
_SENDING = ("_execute", "_execute_and_fetch_as_iterator")
#: Commands that move no rows.
_IDLE = re.compile(r"register_|create_dataframe_view|get_resources|streaming_query_|.*_profile|remove_|ml_")
#: Statements that only ask, or only change names.
_ASKING = re.compile(
    r"\s*(select|values|show|describe|desc|explain|set|use|(create|drop)\s+.*\bview)\b", re.I
)
_REASON = "Spark Connect is not covered: what a client executes runs in a server, and is not followed"
#: Parts of a message that are looked at: of one with more, later sources are not named.
_MOST_PARTS = 10_000


@dataclass(frozen=True)
class _Conf:
    options: Mapping[str, Any]

    def get(self, key: str, default: str | None = None) -> Any:
        return self.options.get(key, default)


class Client:
    """What a Session asks of a SparkContext, of a client that has none."""

    def __init__(self, connect_session: Any, options: Mapping[str, Any]) -> None:
        import pyspark

        self.applicationId = f"connect-{connect_session.session_id}"
        self.appName = str(options.get("spark.app.name", "Spark Connect"))
        self.version = str(pyspark.__version__)
        self.master = f"connect:{connect_session.client.host}"
        self._conf = _Conf(options)


class Application:
    """What some Connect sessions belong to. One of its own ends with the last of them."""

    def __init__(self, session: Session, coarse_queries: CoarseQueries, *, is_own: bool) -> None:
        self.session, self.coarse_queries, self._is_own = session, coarse_queries, is_own
        self._lock = threading.Lock()
        self._open: set[str] = set()

    def opened(self, connect_session: Any) -> None:
        with self._lock:
            self._open.add(connect_session.session_id)

    def closed(self, connect_session: Any) -> None:
        with self._lock:
            self._open.discard(connect_session.session_id)
            is_last = not self._open
        if is_last and self._is_own:
            self.session.stop()


def follow(connect_session: Any, application: Application) -> None:
    """Watch one session. What it is asked to send goes out whatever becomes of this."""
    original_stop = connect_session.stop

    def stop() -> None:
        application.closed(connect_session)
        original_stop()

    connect_session.stop = stop
    application.opened(connect_session)
    client = connect_session.client
    for name in _SENDING:
        setattr(client, name, _sending(getattr(client, name), application.coarse_queries, _REASON))
    for name in ("newSession", "cloneSession"):
        if hasattr(connect_session, name):
            setattr(connect_session, name, _another(getattr(connect_session, name), application))


def _another(original: Callable[..., Any], application: Application) -> Callable[..., Any]:
    def another(*args: Any, **kwargs: Any) -> Any:
        session = original(*args, **kwargs)
        try:
            follow(session, application)
        except Exception as error:  # noqa: BLE001 - an agent bug: the user's job goes on
            application.session.events.gap(f"a Spark Connect session is not followed ({error!r})")
        return session

    return another


def _sending(original: Callable[..., Any], coarse_queries: CoarseQueries, reason: str) -> Callable[..., Any]:
    def send(request: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            name, query, sources = executed(request.plan)
            if query is not None:
                at = call_site()
                coarse_queries.publish(query if query.name else Endpoint(name), sources, reason, call_site=at)
        except Exception as error:  # noqa: BLE001 - an agent bug: the user's query goes on
            logger.debug("a message of Spark Connect could not be read: %r", error)
            with contextlib.suppress(Exception):
                coarse_queries.publish(Endpoint("query"), (), reason)
        return original(request, *args, **kwargs)

    return send


def executed(plan: Any) -> tuple[str, Endpoint | None, list[Endpoint]]:
    """(method of PySpark, where a plan writes, what it reads), of a message.

    The second is None of one that runs nothing, and has no name of one that writes nothing.
    """
    kind = plan.WhichOneof("op_type")
    if kind != "command":
        return _method(), Endpoint(""), _sources(plan)
    command = plan.command.WhichOneof("command_type") or ""
    if _IDLE.match(command):
        return "", None, []
    body = getattr(plan.command, command)
    if command == "sql_command":
        text = body.sql or (body.input.sql.query if body.HasField("input") else "")
        if _ASKING.match(text):
            return "", None, []
    return _method(), _written(command, body), _sources(plan)


def _written(command: str, body: Any) -> Endpoint:
    if command == "write_operation":
        if body.HasField("table"):
            return Endpoint("saveAsTable", str(body.table.table_name))
        format = str(body.source or "files")
        if body.path:
            return tables.of_files(format, str(body.path))
        return tables.of_options(format, dict(body.options))
    if command == "write_operation_v2":
        return Endpoint("writeTo", str(body.table_name))
    if command == "write_stream_operation_start":
        name = f"stream {body.query_name}".strip()
        if body.path:
            folder = tables.of_files(str(body.format or "files"), str(body.path))
            return Endpoint(name, folder.description, folder.dataset)
        return Endpoint(name, str(body.table_name or body.format))
    return Endpoint("")


def _sources(plan: Any) -> list[Endpoint]:
    """What the reads of a message name."""
    sources: dict[tuple[str, str], Endpoint] = {}
    for read in _reads(plan):
        kind = read.WhichOneof("read_type")
        if kind == "named_table":
            endpoint = Endpoint("table", str(read.named_table.unparsed_identifier))
        else:
            source = read.data_source
            options, format = dict(source.options), str(source.format or "files")
            path = next(iter(source.paths), "")
            endpoint = tables.of_files(format, str(path)) if path else tables.of_options(format, options)
        sources[endpoint.name, endpoint.description] = endpoint
    return list(sources.values())


def _reads(message: Any) -> Iterator[Any]:
    """All messages of the type Read in another one."""
    pending, seen = [message], 0
    while pending and seen < _MOST_PARTS:
        part = pending.pop()
        seen += 1
        if part.DESCRIPTOR.name == "Read":
            yield part
        for field, value in part.ListFields():
            if field.message_type is None or field.message_type.GetOptions().map_entry:
                continue
            pending.extend([value] if hasattr(value, "DESCRIPTOR") else value)


def _method() -> str:
    """The outermost method of PySpark that this thread is in."""
    import pyspark

    inside, name = os.path.dirname(os.path.abspath(pyspark.__file__)), ""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(inside):
            name = frame.f_code.co_name
        elif name:
            break
        frame = frame.f_back
    return name or "query"
