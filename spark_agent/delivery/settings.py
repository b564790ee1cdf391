"""The one table of the agent's settings: Spark conf keys, their defaults and what they mean.

Read once, when a SparkContext starts. Bad values never fail a job: the default is taken and the
application's record says so. The table in docs/settings.md is made from `SETTINGS`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from spark_agent import contract
from spark_agent.contract import kafka_config
from spark_agent.contract.home import lineage_home
from spark_agent.delivery import setting_names

ENABLED, QUIET = "spark.lineage.enabled", "spark.lineage.quiet"
JOB = "spark.lineage.job"
_DETAILED, _OLD_DETAILED = "spark.lineage.detailed", "spark.rdd.lineage.detailed"


@dataclass(frozen=True)
class Setting:
    name: str
    default: str
    help: str


SETTINGS = (
    Setting(
        ENABLED,
        "false",
        "Capture lineage for this application. Nothing is patched unless it is `true`. Cloudera's lineage "
        "listeners read this key, too. If they are configured, a further key of this table must be set, "
        "other than `spark.lineage.quiet`.",
    ),
    Setting(
        "spark.lineage.kafka.bootstrap.servers",
        "",
        "Kafka brokers, host:port, separated by commas. Without a port, 9092 is used. Empty: "
        "LINEAGE_KAFKA_BOOTSTRAP_SERVERS, else the local stack of `lineage up`, else 127.0.0.1:9092.",
    ),
    Setting(
        "spark.lineage.kafka.config",
        "",
        "File with options of the Kafka client for TLS and passwords, `name=value` in each line; see "
        "security.md. Read on the driver. Empty: LINEAGE_KAFKA_CONFIG.",
    ),
    Setting(
        "spark.lineage.api",
        "",
        "Address of `lineage serve` for `spark_agent.trace`; see tracing-in-spark.md. Empty: the "
        "address in `api.json` of the home folder, else http://127.0.0.1:8080.",
    ),
    Setting(
        JOB,
        "",
        "The job that the application is an execution of, for `lineage trigger`; see triggering.md. Empty: "
        "the application's name.",
    ),
    Setting("spark.lineage.topic.node", contract.NODE_TOPIC, "Topic of applications, nodes and manifests."),
    Setting("spark.lineage.topic.flow", contract.FLOW_TOPIC, "Topic of flow blocks."),
    Setting(
        "spark.lineage.dataframes",
        "true",
        "Capture DataFrames and SQL, too; see dataframes.md. `false`: their plans stay as they are.",
    ),
    Setting(
        "spark.lineage.dataframes.level",
        "eager",
        "How much of DataFrames and SQL is captured. `eager`: all flows. `lazy`: only the graph; a trace in "
        "the same session runs the query again for its row; see dataframes.md.",
    ),
    Setting(
        "spark.lineage.jdbc.keys",
        "on",
        "Ask a database for the primary key of each table that is read or written, and name records by it; "
        "see tables.md. `off`: they are known by their places. With `spark.lineage.redact` it is off.",
    ),
    Setting(
        _DETAILED,
        "false",
        "Capture the value of every intermediate record, too. `spark.rdd.lineage.detailed` is an older name.",
    ),
    Setting(
        "spark.lineage.values.max.characters",
        str(contract.MAX_TEXT_CHARACTERS),
        "With `detailed`: the maximum length of a value's text, from 1 to "
        f"{contract.MAX_VALUE_CHARACTERS} characters. Cut values are counted.",
    ),
    Setting(
        "spark.lineage.values.nodes",
        "*",
        "With `detailed`: only values of operations with these names. Patterns with `*` and `?`, separated "
        "by commas; `!` before a pattern excludes its matches (`*,!keyBy`).",
    ),
    Setting(
        "spark.lineage.values.call.sites",
        "*",
        "With `detailed`: only values of operations at these places. Patterns for `FILE:LINE`, with or "
        "without the file's folder (`job.py:4?`); in notebooks `In [CELL]:LINE`.",
    ),
    Setting(
        "spark.lineage.values.sample",
        "1",
        "With `detailed`: the fraction of input records whose sampled paths have values, above 0 and at most "
        "1; see values.md. Positions are always complete.",
    ),
    Setting(
        "spark.lineage.explain",
        "auto",
        "What explanations need beside flows. `auto`: which input of a merge by key was returned unchanged, "
        "which row of a group the functions of a query picked, where in the program's loops an operation is, "
        "and digests of the records that a loop hands from turn to turn. `off`: nothing.",
    ),
    Setting(
        "spark.lineage.pace",
        "false",
        "Look in each Python worker, some 60 times a second, which record it is at, to say which ones took "
        "long; see debugging.md.",
    ),
    Setting(
        "spark.lineage.redact",
        "",
        "`MODULE:FUNCTION` that is called on the executors with each key and value before it leaves, and "
        "returns what may leave; see values.md.",
    ),
    Setting(
        "spark.lineage.onError",
        "silent",
        "If lineage is lost: `silent` lets the job continue, counts the losses and reports them once on "
        "standard error; `partial` also writes a warning into Spark's log; `fail` fails the job. What waits "
        "in the spool is not lost.",
    ),
    Setting(
        QUIET,
        "false",
        "Write nothing to standard error. Otherwise the agent writes one line at the start of an "
        "application, one at its end, and one for each problem. Each begins with `lineage: `.",
    ),
    Setting(
        "spark.lineage.delivery.timeout",
        "2",
        "Seconds that the driver, and the tasks of an executor together, wait for a broker in total before "
        "they continue without it. What was not delivered by then goes into the spool.",
    ),
    Setting(
        "spark.lineage.spool.dir",
        "",
        "Folder on each host for messages that no broker took in time; see operations.md. Hosts may share "
        "it. Empty: LINEAGE_SPOOL_DIR, else `lineage-spool-UID` in the first of Spark's local folders.",
    ),
    Setting(
        "spark.lineage.spool.maxBytes",
        "1g",
        "How much the spool may take on a host: bytes, or with `k`, `m`, `g`. What has no room there is "
        "dropped. `0`: no spool.",
    ),
    Setting(
        "spark.lineage.spool.fsync",
        "false",
        "Wait until the disk has what goes into the spool. Without it, a machine that loses its power may "
        "lose some of it.",
    ),
)

#: MODULE:FUNCTION
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")

_DEFAULTS = {setting.name: setting.default for setting in SETTINGS}
#: Every key that is read.
KNOWN = frozenset((*_DEFAULTS, _OLD_DETAILED))
ON_ERROR = ("silent", "partial", "fail")
EAGER, LAZY = "eager", "lazy"
LEVELS = (EAGER, LAZY)
AUTO = "auto"
EXPLAIN = (AUTO, "off")


WatchedRows = tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]
"""Records of sources: (node, partition, ranges `(first, count)` in order)."""


@dataclass(frozen=True)
class AgentSettings:
    """What the agent does, parsed. Travels to the executors with every command, so it stays small."""

    bootstrap_servers: str
    node_topic: str = contract.NODE_TOPIC
    flow_topic: str = contract.FLOW_TOPIC
    dataframes: bool = True
    dataframes_level: str = EAGER
    jdbc_keys: bool = True
    detailed: bool = False
    on_error: str = "silent"
    is_quiet: bool = False
    delivery_timeout_s: float = 2.0
    spool_dir: str = ""
    spool_max_bytes: int = 1 << 30
    spool_fsync: bool = False
    values_max_characters: int = contract.MAX_TEXT_CHARACTERS
    values_nodes: tuple[str, ...] = ("*",)
    values_call_sites: tuple[str, ...] = ("*",)
    values_sample: float = 1.0
    #: In a replay: only values of what these records go into; None: no such choice.
    values_of: WatchedRows | None = None
    redact: str = ""
    is_explained: bool = True
    pace: bool = False
    #: Further options of the Kafka client. They hold secrets: never part of a text.
    client: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    problems: tuple[str, ...] = field(default=())

    @property
    def follows_paths(self) -> bool:
        """Are the values of some records captured, and of others not?"""
        return self.values_sample < 1 or self.values_of is not None


def flag(text: str) -> bool | None:
    """What a text says, as Spark reads its own flags; None where it says neither."""
    return {"true": True, "false": False}.get(text.strip().lower())


def read(conf: Callable[[str, str], str | None], names: Iterable[str] = ()) -> AgentSettings:
    """Settings from `conf(key, default)`, the shape of SparkConf.get.

    `names` are the keys of the conf that may be meant for the agent. Those that are not settings are
    reported.
    """
    problems = setting_names.unknown(names, KNOWN)

    def get(name: str) -> str:
        return (conf(name, "") or "").strip() or _DEFAULTS[name]

    def is_set(name: str) -> bool:
        text, default = get(name), _DEFAULTS[name]
        if flag(text) is None:
            problems.append(f"{name}={text} is neither true nor false; {default} is used")
            text = default
        return flag(text) is True

    def word(name: str, words: tuple[str, ...]) -> str:
        text, default = get(name).lower(), _DEFAULTS[name]
        if text not in words:
            problems.append(f"{name}={text} is none of {', '.join(words)}; {default} is used")
            return default
        return text

    is_detailed = is_set(_DETAILED)
    if older := (conf(_OLD_DETAILED, "") or "").strip():
        problems.append(f"{_OLD_DETAILED} is an older name; use {_DETAILED}")
        if not conf(_DETAILED, ""):
            is_detailed = flag(older) is True
    redact = get("spark.lineage.redact")
    if redact and not _FUNCTION.fullmatch(redact):
        problems.append(f"spark.lineage.redact={redact} is not MODULE:FUNCTION; keys and values are redacted")
    return AgentSettings(
        bootstrap_servers=_servers(get("spark.lineage.kafka.bootstrap.servers"), problems),
        node_topic=get("spark.lineage.topic.node"),
        flow_topic=get("spark.lineage.topic.flow"),
        dataframes=is_set("spark.lineage.dataframes"),
        dataframes_level=word("spark.lineage.dataframes.level", LEVELS),
        jdbc_keys=word("spark.lineage.jdbc.keys", ("on", "off")) == "on" and not redact,
        detailed=is_detailed,
        on_error=word("spark.lineage.onError", ON_ERROR),
        is_quiet=is_set(QUIET),
        delivery_timeout_s=_seconds(get("spark.lineage.delivery.timeout"), problems),
        spool_dir=_folder(
            get("spark.lineage.spool.dir") or os.environ.get("LINEAGE_SPOOL_DIR", ""), problems
        ),
        spool_max_bytes=_bytes(get("spark.lineage.spool.maxBytes"), problems),
        spool_fsync=is_set("spark.lineage.spool.fsync"),
        values_max_characters=_characters(get("spark.lineage.values.max.characters"), problems),
        values_nodes=_patterns(get("spark.lineage.values.nodes")),
        values_call_sites=_patterns(get("spark.lineage.values.call.sites")),
        values_sample=_fraction(get("spark.lineage.values.sample"), problems),
        redact=redact,
        is_explained=word("spark.lineage.explain", EXPLAIN) == AUTO,
        pace=is_set("spark.lineage.pace"),
        client=_client(
            get("spark.lineage.kafka.config") or os.environ.get("LINEAGE_KAFKA_CONFIG", ""), problems
        ),
        problems=tuple(problems),
    )


def _servers(named: str, problems: list[str]) -> str:
    from spark_agent.contract import broker_addresses  # executors get what was read

    servers, faults = broker_addresses.addresses(named or default_bootstrap_servers(os.environ))
    source = "spark.lineage.kafka.bootstrap.servers" if named else "LINEAGE_KAFKA_BOOTSTRAP_SERVERS"
    problems.extend(f"{source}: {fault}" for fault in faults)
    return servers


def _seconds(text: str, problems: list[str]) -> float:
    try:
        if 0 <= float(text) < float("inf"):
            return float(text)
    except ValueError:
        pass
    problems.append(f"spark.lineage.delivery.timeout={text} is not a number of seconds; 2 is used")
    return 2.0


def _folder(text: str, problems: list[str]) -> str:
    if "://" in text and not text.startswith("file://"):
        problems.append(
            f"spark.lineage.spool.dir={text} is not a folder of the executors' machines: mount it there; the "
            "default is used"
        )
        return ""
    return text


def _bytes(text: str, problems: list[str]) -> int:
    match = re.fullmatch(r"(\d{1,15})([kmgt]?)b?", text.lower())
    if match:
        return int(match[1]) << (10 * " kmgt".index(match[2] or " "))
    problems.append(
        f"spark.lineage.spool.maxBytes={text} is not a number of bytes, as 500000000 or 512m; 1g is used"
    )
    return 1 << 30


def _client(path: str, problems: list[str]) -> tuple[tuple[str, str], ...]:
    try:
        return kafka_config.read(path) if path else ()
    except ValueError as error:
        problems.append(f"spark.lineage.kafka.config: {error}")
        return ()


def _characters(text: str, problems: list[str]) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= contract.MAX_VALUE_CHARACTERS:
        return int(text[:9])
    problems.append(
        f"spark.lineage.values.max.characters={text} is not a number from 1 to "
        f"{contract.MAX_VALUE_CHARACTERS}; {contract.MAX_TEXT_CHARACTERS} is used"
    )
    return contract.MAX_TEXT_CHARACTERS


def _fraction(text: str, problems: list[str]) -> float:
    try:
        if 0 < float(text) <= 1:
            return float(text)
    except ValueError:
        pass
    problems.append(f"spark.lineage.values.sample={text} is not above 0 and at most 1; 1 is used")
    return 1.0


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def default_bootstrap_servers(environment: Mapping[str, str]) -> str:
    """The broker that is meant where none is named: the environment's, else the local stack's."""
    named = environment.get("LINEAGE_KAFKA_BOOTSTRAP_SERVERS", "").strip()
    if named:
        return named
    state = os.path.join(lineage_home(environment), "stack.json")
    try:
        with open(state, encoding="utf-8") as file:
            return str(json.load(file)["kafka"]["bootstrap_servers"])
    except (OSError, ValueError, KeyError, TypeError):
        return "127.0.0.1:9092"
