"""The one table of the agent's settings: Spark conf keys, their defaults and what they mean.

Read once, when a SparkContext starts. Bad values never fail a job: the default is taken and the
application's record says so. The table in docs/settings.md is made from `SETTINGS`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spark_agent import contract, kafka_config
from spark_agent.home import lineage_home

ENABLED = "spark.lineage.enabled"


@dataclass(frozen=True)
class Setting:
    name: str
    default: str
    help: str


SETTINGS = (
    Setting(ENABLED, "false", "Capture lineage for this application. Nothing is patched unless it is true."),
    Setting(
        "spark.lineage.kafka.bootstrap.servers",
        "",
        "Kafka brokers, host:port. Empty: LINEAGE_KAFKA_BOOTSTRAP_SERVERS, else the local stack of "
        "`lineage up`, else 127.0.0.1:9092.",
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
        "Address of `lineage serve` for `spark_agent.trace`; see tracing-in-spark.md. Empty: that in "
        "`api.json` of the home folder, else http://127.0.0.1:8080.",
    ),
    Setting("spark.lineage.topic.node", contract.NODE_TOPIC, "Topic of applications, nodes and manifests."),
    Setting("spark.lineage.topic.flow", contract.FLOW_TOPIC, "Topic of flow blocks."),
    Setting(
        "spark.lineage.dataframes",
        "true",
        "Capture DataFrames and SQL, too; see dataframes.md. false: their plans stay as they are.",
    ),
    Setting(
        "spark.lineage.dataframes.level",
        "eager",
        "How much of DataFrames and SQL is captured: `eager` all flows; `lazy` nothing but the graph, and a "
        "trace in the same session runs the query again for its row; `index` which blocks of the input each "
        "row came from, and the trace reads these alone; see dataframes.md.",
    ),
    Setting(
        "spark.lineage.detailed",
        "false",
        "Capture the value of every intermediate record too. `spark.rdd.lineage.detailed` is an older name.",
    ),
    Setting(
        "spark.lineage.values.max.characters",
        str(contract.MAX_TEXT_CHARACTERS),
        "With `detailed`: a value's text is cut to so many characters, from 1 to "
        f"{contract.MAX_VALUE_CHARACTERS}; how many were cut is counted.",
    ),
    Setting(
        "spark.lineage.values.nodes",
        "*",
        "With `detailed`: only values of operations with these names: patterns with `*` and `?`, separated "
        "by commas; `!` before one takes away (`*,!keyBy`).",
    ),
    Setting(
        "spark.lineage.values.call.sites",
        "*",
        "With `detailed`: only values of operations that stand there: patterns for `FILE:LINE`, with or "
        "without the file's folder (`job.py:4?`).",
    ),
    Setting(
        "spark.lineage.values.sample",
        "1",
        "With `detailed`: the fraction of input records whose ways have values, above 0 and at most 1; see "
        "values.md. Positions are always complete.",
    ),
    Setting(
        "spark.lineage.redact",
        "",
        "`MODULE:FUNCTION` that is called on the executors with each key and value before it leaves, and "
        "gives what may leave; see values.md.",
    ),
    Setting(
        "spark.lineage.onError",
        "silent",
        "When lineage cannot be delivered: `silent` drops and counts it, `partial` also logs a warning, "
        "`fail` fails the job.",
    ),
    Setting(
        "spark.lineage.delivery.timeout",
        "2",
        "Seconds that the driver, and the tasks of an executor together, wait for a broker in all before "
        "they go on without it.",
    ),
)

#: MODULE:FUNCTION
_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")

_DEFAULTS = {setting.name: setting.default for setting in SETTINGS}
ON_ERROR = ("silent", "partial", "fail")
EAGER, LAZY, INDEX = "eager", "lazy", "index"
LEVELS = (EAGER, LAZY, INDEX)


@dataclass(frozen=True)
class AgentSettings:
    """What the agent does, parsed. Travels to the executors with every command, so it stays small."""

    bootstrap_servers: str
    node_topic: str = contract.NODE_TOPIC
    flow_topic: str = contract.FLOW_TOPIC
    dataframes: bool = True
    dataframes_level: str = EAGER
    detailed: bool = False
    on_error: str = "silent"
    delivery_timeout_s: float = 2.0
    values_max_characters: int = contract.MAX_TEXT_CHARACTERS
    values_nodes: tuple[str, ...] = ("*",)
    values_call_sites: tuple[str, ...] = ("*",)
    values_sample: float = 1.0
    redact: str = ""
    #: Further options of the Kafka client. They hold secrets: never part of a text.
    client: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    problems: tuple[str, ...] = field(default=())


def read(conf: Callable[[str, str], str | None]) -> AgentSettings:
    """Settings from `conf(key, default)`, the shape of SparkConf.get."""
    problems: list[str] = []

    def get(name: str) -> str:
        return (conf(name, "") or "").strip() or _DEFAULTS[name]

    detailed = get("spark.lineage.detailed")
    if not (conf("spark.lineage.detailed", "") or ""):
        detailed = conf("spark.rdd.lineage.detailed", "") or detailed
    on_error = get("spark.lineage.onError").lower()
    if on_error not in ON_ERROR:
        problems.append(f"spark.lineage.onError={on_error} is none of {', '.join(ON_ERROR)}; silent is used")
        on_error = "silent"
    level = get("spark.lineage.dataframes.level").lower()
    if level not in LEVELS:
        problems.append(
            f"spark.lineage.dataframes.level={level} is none of {', '.join(LEVELS)}; eager is used"
        )
        level = EAGER
    try:
        timeout = max(0.0, float(get("spark.lineage.delivery.timeout")))
    except ValueError:
        problems.append("spark.lineage.delivery.timeout is not a number of seconds; 2 is used")
        timeout = 2.0
    redact = get("spark.lineage.redact")
    if redact and not _FUNCTION.fullmatch(redact):
        problems.append(f"spark.lineage.redact={redact} is not MODULE:FUNCTION; keys and values are withheld")
    return AgentSettings(
        bootstrap_servers=get("spark.lineage.kafka.bootstrap.servers") or broker_nearby(os.environ),
        node_topic=get("spark.lineage.topic.node"),
        flow_topic=get("spark.lineage.topic.flow"),
        dataframes=get("spark.lineage.dataframes").lower() != "false",
        dataframes_level=level,
        detailed=detailed.strip().lower() == "true",
        on_error=on_error,
        delivery_timeout_s=timeout,
        values_max_characters=_characters(get("spark.lineage.values.max.characters"), problems),
        values_nodes=_patterns(get("spark.lineage.values.nodes")),
        values_call_sites=_patterns(get("spark.lineage.values.call.sites")),
        values_sample=_fraction(get("spark.lineage.values.sample"), problems),
        redact=redact,
        client=_client(
            get("spark.lineage.kafka.config") or os.environ.get("LINEAGE_KAFKA_CONFIG", ""), problems
        ),
        problems=tuple(problems),
    )


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


def broker_nearby(environment: Mapping[str, str]) -> str:
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
