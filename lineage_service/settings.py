"""The one table of the service's settings: environment variables LINEAGE_<NAME>, read once at the edge.

Command line flags of the same names (`--kafka-bootstrap-servers`) win over the environment. The table in
docs/settings.md is made from this class and a test compares the two.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_agent import contract
from spark_agent.contract.home import lineage_home

#: Times have an end: what waits for ever, or no time at all, would fail within a thread.
_DAY_S = 86_400.0


class Settings(BaseSettings):
    """What every command of `lineage` reads."""

    model_config = SettingsConfigDict(env_prefix="LINEAGE_", extra="ignore")

    home: Path = Field(
        default_factory=lambda: Path(lineage_home(os.environ)),
        validate_default=True,
        description="Folder of the local stack: downloaded jars, data, logs, and the flow store by default. "
        "Empty: the platform's folder for your data, `~/.local/share/lineage-master` on Linux; see "
        "operations.md.",
    )
    kafka_bootstrap_servers: str = Field(
        default="",
        description="Kafka brokers, host:port. Empty: the local stack's broker, else 127.0.0.1:9092.",
    )
    kafka_config: str = Field(
        default="",
        description="File with options of the Kafka client for TLS and passwords, `name=value` in each line; "
        "see security.md.",
    )
    node_topic: str = Field(
        default=contract.NODE_TOPIC, description="Topic of applications, nodes and manifests."
    )
    flow_topic: str = Field(default=contract.FLOW_TOPIC, description="Topic of flow blocks.")
    dead_letter_topic: str = Field(
        default=contract.DEAD_LETTER_TOPIC, description="Topic for messages that cannot be decoded."
    )
    consumer_group: str = Field(
        default="lineage", description="Kafka consumer group. Its processes share the work."
    )
    batch_max_bytes: int = Field(
        default=32_000_000, ge=1, description="A batch is written at this many bytes."
    )
    batch_max_seconds: float = Field(
        default=1.0, ge=0, le=_DAY_S, description="A batch is written after this many seconds."
    )
    held_max_bytes: int = Field(
        default=192_000_000,
        ge=3_000_000,
        description="`lineage consume` has at most this many bytes of unstored messages in memory: a third "
        "is read ahead by Kafka's client, the rest is collected for batches; see operations.md.",
    )
    store: str = Field(
        default="",
        description="Folder of the flow store, or its URL in an object store (`s3://bucket/flows`); see "
        "operations.md. Empty: `flows` in the home folder.",
    )
    neo4j_uri: str = Field(
        default="", description="Bolt address of Neo4j. Empty: the local stack's, else no Neo4j."
    )
    neo4j_user: str = Field(default="neo4j", description="User name for Neo4j.")
    neo4j_password: SecretStr = Field(
        default=SecretStr(""), description="Password for Neo4j; empty means no authentication."
    )
    neo4j_password_file: str = Field(
        default="",
        description="File whose first line is the password for Neo4j, instead of `LINEAGE_NEO4J_PASSWORD`.",
    )
    neo4j_ca: str = Field(
        default="",
        description="File with the certificates of the authorities for Neo4j's TLS (bolt+s, neo4j+s). "
        "Empty: those of the system.",
    )
    neo4j_database: str = Field(default="neo4j", description="Database of Neo4j.")
    graph_max_flows: int = Field(
        default=100_000,
        ge=0,
        description="A complete application with at most this many records, and flows between them, is "
        "exported into Neo4j as a whole; see neo4j.md. 0: none is.",
    )
    graph_row_characters: int = Field(
        default=1_000,
        ge=0,
        description="Input and output rows of these applications are in Neo4j up to this many characters; "
        "0: no file is read for it.",
    )
    graph_max_records: int = Field(
        default=100_000, ge=1, description="At most this many records of one trace are put into Neo4j."
    )
    api_host: str = Field(default="127.0.0.1", description="Address that `lineage serve` listens on.")
    api_port: int = Field(
        default=8080, description="Port that `lineage serve` listens on; 0 takes a free one."
    )
    api_auth: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether `lineage serve` asks for a token. `auto`: if one is set, or if other "
        "machines can reach it; see security.md.",
    )
    api_token: SecretStr = Field(
        default=SecretStr(""),
        description="The token that `lineage serve` asks for. Empty: see `LINEAGE_API_AUTH`.",
    )
    api_token_file: str = Field(
        default="", description="File whose first line is the token, instead of `LINEAGE_API_TOKEN`."
    )
    api_hosts: str = Field(
        default="",
        description="Further host names of `lineage serve`, separated by commas: behind a proxy, the name "
        "that browsers see. On a loopback address, all names but localhost and these are refused.",
    )
    api_cors_origins: str = Field(
        default="",
        description="Sites whose pages may read the API, separated by commas (`https://notes.example.org`). "
        "Empty: none.",
    )
    api_questions: int = Field(
        default=8, ge=1, le=32, description="At most this many queries are answered at a time; others wait."
    )
    api_wait_seconds: float = Field(
        default=30.0,
        gt=0,
        le=_DAY_S,
        description="A query that has waited for this long is refused with a 503.",
    )
    metrics: bool = Field(
        default=True,
        description="Answer `/metrics`: `lineage serve` beside the API, `lineage consume` on its own port.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", description="Address that `lineage consume` answers `/metrics` on."
    )
    metrics_port: int = Field(
        default=9480,
        description="Port of `lineage consume` for `/metrics`, or the next free one; 0 takes any.",
    )
    trace_seconds: float = Field(
        default=30.0, gt=0, le=_DAY_S, description="Time budget of one query over HTTP."
    )
    cache_bytes: int = Field(
        default=512 << 20,
        ge=1_000_000,
        description="What `lineage serve` has read of flows and records stays in memory, up to this many "
        "bytes; see operations.md.",
    )
    trigger_redact: str = Field(
        default="",
        description="Columns of which `lineage trigger` keeps no numbers, separated by commas: it only knows "
        "whether their values are equal; see triggering.md.",
    )
    maven_repository: str = Field(
        default="", description="Maven repository for the local stack's jars. Empty: Maven Central."
    )

    @field_validator("home", mode="before")
    @classmethod
    def _home(cls, value: object) -> object:
        """As the agent reads it: empty is the default, and `~` the user's folder."""
        path = lineage_home({**os.environ, "LINEAGE_HOME": str(value)})
        if path.startswith("~"):
            raise ValueError("this user has no home folder: name a folder by its whole path")
        return path
