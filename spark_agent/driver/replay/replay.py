"""The replay that this process is, if it is one: its spec, and what the agent does of it.

`LINEAGE_REPLAY` names the file of the spec, which is read once. Promises that a spec which cannot be read
refuses the job, and that nothing here is imported where no replay is asked for. To import it loads no
PySpark.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from spark_agent import contract
from spark_agent.contract.replay_notes import note
from spark_agent.contract.replay_spec import (
    INFLUENCE,
    OUTPUTS,
    SPEC_VARIABLE,
    decode_spec,
    started_fields,
)
from spark_agent.delivery.settings import EAGER, AgentSettings, WatchedRows
from spark_agent.driver.partitions import absolute
from spark_agent.driver.replay.outputs import Outputs, uri
from spark_agent.driver.replay.report import MAX_VALUES, Report
from spark_agent.driver.replay.taken_values import TakenValues
from spark_agent.worker.guard.refusals import ReplayRefused

if TYPE_CHECKING:
    from spark_agent.driver.event_publisher import EventPublisher
    from spark_agent.driver.monkeypatch import Patches
    from spark_agent.driver.nodes import Node

_lock = threading.RLock()
#: By the path of the spec's file.
_replays: dict[str, Replay] = {}


def current() -> Replay | None:
    """The replay of this process; None if it is none. Raises ReplayRefused if its spec cannot be read."""
    path = os.environ.get(SPEC_VARIABLE)
    if path is None:
        return None
    with _lock:
        if path not in _replays:
            _replays[path] = Replay(read_spec(path))
        return _replays[path]


def become(spec: Mapping[str, Any]) -> None:
    """From here on this process is the replay of another spec, within the same guard."""
    with _lock:
        _replays[os.environ[SPEC_VARIABLE]] = Replay(spec)


def read_spec(path: str) -> dict[str, Any]:
    """The spec in a file. Raises ReplayRefused."""
    try:
        with open(path, "rb") as file:
            return decode_spec(file.read())
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError as error:
        problem = str(error)
    raise ReplayRefused("follow the spec", path, advice=problem)


def refuse(reason: object) -> NoReturn:
    """End the program with one sentence, before it does anything: no job runs unguarded instead."""
    raise SystemExit(f"lineage: {reason}")


class Replay:
    """One replay. Thread-safe as its report and outputs are."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self.sandbox = str(spec["sandbox"]).rstrip("/")
        self.mode = str(spec["mode"])
        #: Are records dropped on which a function raises?
        self.skips_failing = spec.get("skip_failing") is True
        #: Is nothing captured and sent?
        self.is_silent = spec.get("silent") is True
        #: Are there few partitions?
        self.is_compact = spec.get("compact") is True
        self.report = Report(self.sandbox)
        stand_ins = {entry["path"]: entry["folder"] for entry in spec.get("stand_ins", ())}
        self.outputs = Outputs(os.path.join(self.sandbox, OUTPUTS), self.report.differs, stand_ins)
        self._nodes: dict[int, tuple[str, str]] = {}  # number -> name and call site
        self._sinks: dict[int, dict[str, Any]] = {}
        self._taken = TakenValues()
        self._taken_before: list[str] | None = None  # the sink that is asked about
        self._has_influence = False  # is it written?
        self._unplanned: dict[str, dict[str, Any]] = {}  # sinks without a node so far, by where they write
        self._restriction: Any = None
        self._has_named = False  # has an application of the original's name begun?
        #: The functions of nodes by their numbers, where the influence of rows is asked for.
        self.functions: dict[int, Any] | None = {} if "influence" in spec else None

    @property
    def _asked(self) -> Mapping[str, Any]:
        """The row whose influence is asked for; empty if none is."""
        asked: Mapping[str, Any] = self.spec.get("influence") or {}
        return asked

    def started(self) -> dict[str, Any]:
        """What `application_started` says of it."""
        return started_fields(self.spec)

    def adapted(self, settings: AgentSettings) -> AgentSettings:
        """The settings of the program, as this replay needs them."""
        if self.skips_failing:  # sampled paths know nothing of records that were dropped
            settings = replace(settings, values_sample=1.0)
        if self.is_silent:
            return replace(settings, detailed=False, is_quiet=True, on_error="silent")
        if self.spec.get("step") is not True:
            return settings
        return replace(
            settings,
            dataframes_level=EAGER,
            detailed=True,
            values_nodes=("*",),
            values_call_sites=("*",),
            values_sample=1.0,
            values_of=_watched(self.spec.get("watched")),
        )

    def attach(self, application_id: str, name: str, events: EventPublisher) -> None:
        """Follow an application of this program by its events.

        Of several, the first of the original's name is its replay, else the first. What comes behind that one
        under other names is not restricted.
        """
        from spark_agent.driver.replay import quick_end
        from spark_agent.driver.replay.restriction import Restriction  # loads PySpark

        if self.is_silent:
            quick_end.install()
        is_named = name == self.spec.get("name")
        is_other = self._has_named and not is_named
        if self._restriction is not None and not is_other and is_named == self._has_named:
            self.report.differs(
                "the program started another SparkContext, to which the row set was applied as well"
            )
        self._nodes, self._sinks = {}, {}
        self.report.begin(application_id, is_first_named=is_named and not self._has_named)
        self._restriction = Restriction(self.spec, self.report, is_other=is_other)
        self._has_named |= is_named
        events.observe = self._observe
        events.on_skipped = self._skipped

    def watch(self, patches: Patches) -> None:
        """Notice the values that the program takes, where that is asked for."""
        if self.functions is not None:
            self._taken.watch(patches)

    def end(self) -> None:
        """The application has ended."""
        self._restriction.end()
        if self.functions is not None and not self._has_influence:
            self._write_influence({"why": "the agent follows the rows of saveAsTextFile only"})
        self.report.write()

    def _observe(self, event_type: str, fields: Mapping[str, Any]) -> None:
        """An event is published."""
        if event_type != contract.NODE_REGISTERED:
            return
        number, name, site = fields["node"], fields["name"], fields.get("call_site") or ""
        self._nodes[number] = name, site
        if fields["kind"] == "source":
            self._restriction.of_frame(number, name, site)
        elif fields["kind"] == "sink" and number not in self._sinks:
            if number == self._asked.get("node"):
                self._taken_before = self._taken.names
            self._sinks[number] = self._sink_of(number, name, site, fields.get("dataset") or {})

    def _sink_of(self, number: int, name: str, site: str, dataset: Mapping[str, Any]) -> dict[str, Any]:
        location = str(dataset.get("location") or dataset.get("name") or "")
        sink = self._unplanned.pop(absolute(location), None) if location else None
        if sink is not None:
            format = dataset.get("format") or sink["format"]
            site = site or sink["call_site"]
            self.report.update(sink, node=number, name=name, call_site=site, format=format)
            return sink
        if number not in self._asked.get("kept", ()):
            self._taken.add(name)
        return self.report.sink(_entry(number, name, site))

    # -- sources ---------------------------------------------------------------------------------------

    def restricted(self, dataset: Any, node: Node, *, is_copy: bool) -> Any:
        """What a source that was just made is read as. `is_copy`: of what this replay has written."""
        return self._restriction.of_rdd(dataset, node, is_copy=is_copy)

    def blocks_of(
        self, number: int, name: str, site: str, roots: Sequence[str]
    ) -> Sequence[Mapping[str, Any]] | None:
        """The blocks of a DataFrame's scan, with the rows that are meant; None where all of it is read."""
        is_copy = any(self.outputs.holds(root) for root in roots)
        blocks: Sequence[Mapping[str, Any]] | None
        blocks = self._restriction.blocks_of(number, name, site, is_copy=is_copy)
        return blocks

    # -- sinks -----------------------------------------------------------------------------------------

    def redirected(self, number: int, name: str, site: str, path: str, format: str) -> str:
        """What an RDD's saver writes instead of `path`, as a URI. Raises ReplayRefused if that is none."""
        if not path:
            what, advice = f"call {name} without a folder", "what it writes cannot be redirected"
            note(self.sandbox, "refused", {"what": what, "path": "", "where": site})
            raise ReplayRefused(what, where=site, advice=advice)
        folder = self.outputs.folder_for(path, f"{number}-{name}")
        entry = {**_entry(number, name, site), "path": absolute(path), "to": folder, "format": format}
        self._sinks[number] = self.report.sink(entry)
        return uri(folder)

    def redirected_frame(self, name: str, site: str, path: str, format: str, *, is_more: bool) -> str:
        """The same of a DataFrame, whose node is not there before its query is planned.

        `is_more`: by its mode it may find what was written there before.
        """
        if self.outputs.holds(path):
            return path
        folder = self.outputs.folder_for(path, f"df-{name}", is_more=is_more)
        entry = {**_entry(None, name, site), "path": absolute(path), "to": folder, "format": format}
        self._unplanned[folder] = self.report.sink(entry)
        return uri(folder)

    def saves(self, sink: Node) -> None:
        """A sink is about to save its records: compute the influence of the rows, if that is asked for."""
        asked = self._asked
        if self.functions is None or asked["node"] != sink.number:
            return
        if self._taken.names:
            names = ", ".join(self._taken.names)
            result = {"why": f"the program took values from {names}, which its functions may use"}
        else:
            from spark_agent.driver.replay.local_evaluation import influence_of  # loads PySpark

            result = influence_of(sink, self.functions, self.spec["sources"], asked["text"])
        self._write_influence(result)

    def _write_influence(self, result: Mapping[str, Any]) -> None:
        """With what gave the program values before."""
        self._has_influence = True
        taken = self._taken.names if self._taken_before is None else self._taken_before
        with open(os.path.join(self.sandbox, INFLUENCE), "w", encoding="utf-8") as file:
            json.dump({**result, "taken": taken}, file)

    def gave(self, settings: AgentSettings, sink: Node, records: list[Any]) -> None:
        """The records that an action gave the program."""
        entry = self._sinks.get(sink.number)
        if entry is not None:
            self.report.values(entry, _texts(settings, sink.name, records[:MAX_VALUES]), len(records))

    # -- records that were left out ----------------------------------------------------------------------

    def _skipped(self, manifest: Mapping[str, Any], failures: list[dict[str, Any]], total: int) -> None:
        """A task run that Spark accepted has dropped records."""
        self.report.skipped([self._dropped(manifest, failure) for failure in failures], total)

    def _dropped(self, manifest: Mapping[str, Any], failure: Mapping[str, Any]) -> dict[str, Any]:
        number, split, position = failure["failed_node"], manifest["split"], failure["position"]
        name, site = self._nodes.get(number, ("", ""))
        return {
            "node": number,
            "name": name,
            "call_site": site,
            "partition": split,
            **{field: failure[field] for field in ("error", "message", "frame", "certain")},
            "record": {
                "node": _before(manifest, number),
                "record_id": None if position is None else f"{split}#{position}",
                "value": failure.get("record"),
            },
        }


def _watched(sources: Sequence[Mapping[str, Any]] | None) -> WatchedRows | None:
    """The rows of sources whose ways are followed; None: those of all."""
    if sources is None:
        return None
    return tuple(
        (source["node"], split["split"], tuple((first, count) for first, count in split["positions"]))
        for source in sources
        for split in source.get("splits", ())
    )


def _entry(number: int | None, name: str, site: str) -> dict[str, Any]:
    return {"node": number, "name": name, "call_site": site, "path": None, "to": None, "format": None}


def _before(manifest: Mapping[str, Any], number: int) -> int:
    """The node whose output a record is that the node `number` of a task run read."""
    nodes = [manifest["input"], *manifest["nodes"]]
    return int(nodes[max(nodes.index(number, 1) - 1, 0)]) if number in nodes[1:] else int(nodes[-1])


def _texts(settings: AgentSettings, name: str, records: list[Any]) -> list[contract.Text]:
    """The records as texts, of which only what the user's redaction function allows leaves the job."""
    from spark_agent.worker.block_sink import Tally
    from spark_agent.worker.redaction import redacting

    limit = settings.values_max_characters
    if not settings.redact:
        return [contract.typed_text(record, limit) for record in records]
    texts: list[contract.Text] = []
    add = redacting(settings.redact, name, "value", Tally(), texts.append, limit)
    for record in records:
        add(record)
    return [contract.cut_text(text, limit) for text in texts]
