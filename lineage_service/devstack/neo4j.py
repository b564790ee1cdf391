"""Neo4j Community with APOC core and Neo4j Browser, loopback only, no authentication."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lineage_cypher import browser
from lineage_service.devstack.kafka import accepts
from lineage_service.devstack.ports import HOST
from lineage_service.devstack.server import Place, java_command

_OPTIONS = (
    "-Xmx512m",
    # Two cores are not worth a collector's threads. Both compilers stay on for the long work that Cypher is,
    # although the quick one alone starts with 9 s of CPU instead of 13.
    "-XX:+UseSerialGC",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("java.nio", "java.io", "sun.nio.ch", "java.lang", "java.util.concurrent")
    ),
)

#: Without authentication the answers to other web pages' scripts must stay unreadable: hence the allowed
#: origin. The quiet period is a wait for new connections at shutdown: 10 s for nothing (measured: 0.7 s
#: without). The command after a connection gives Browser the style of our graph (docs/neo4j.md).
_SETTINGS = """\
server.default_listen_address={host}
server.bolt.listen_address={host}:{bolt}
server.bolt.advertised_address={host}:{bolt}
server.http.listen_address={host}:{http}
server.http.advertised_address={host}:{http}
server.https.enabled=false
server.directories.logs={logs}
server.memory.heap.max_size=512m
server.memory.pagecache.size=256m
db.tx_log.preallocate=false
dbms.security.auth_enabled=false
dbms.security.http_access_control_allow_origin=http://{host}:{http}
dbms.usage_report.enabled=false
client.allow_telemetry=false
browser.post_connect_cmd={style}
internal.dbms.bolt.netty_server_shutdown_quiet_period=0
"""

#: Of Browser's address: it connects by itself, and does not ask for a name and a password that nobody has.
_CONNECTED = "?preselectAuthMethod=NO_AUTH"


@contextmanager
def _silent_driver_log() -> Iterator[None]:
    """Keeps the driver's warnings about a server that is just starting off the terminal."""
    log = logging.getLogger("neo4j")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


class Neo4j:
    """The graph database of the local stack."""

    name = "neo4j"
    title = "Neo4j"
    version = "5.26.5"
    ports: Mapping[str, int] = {"bolt": 7687, "http": 7474}

    def addresses(self, ports: Mapping[str, int]) -> dict[str, str]:
        http = f"http://{HOST}:{ports['http']}"
        return {
            "bolt": f"bolt://{HOST}:{ports['bolt']}",
            "http": http,
            "browser": f"{http}/browser/{_CONNECTED}",
        }

    def logs(self, place: Place) -> Sequence[Path]:
        # The server's own log, and before it what only the process prints: the JVM's complaints.
        return [place.logs / "neo4j.out", place.logs / "neo4j.log"]

    def prepare(self, java: Path, jars: Sequence[Path], place: Place, ports: Mapping[str, int]) -> list[str]:
        configuration = place.folder / "conf"
        plugins = place.folder / "plugins"
        configuration.mkdir(exist_ok=True)
        plugins.mkdir(exist_ok=True)
        settings = _SETTINGS.format(host=HOST, logs=place.logs, style=browser.style_command(), **ports)
        (configuration / "neo4j.conf").write_text(settings)
        # Neo4j looks for procedures in `plugins` and finds their classes on the class path: APOC must be in
        # both.
        apoc = next(jar for jar in jars if jar.name.startswith("apoc-core-"))
        for other in plugins.glob("apoc-core-*.jar"):
            if other.name != apoc.name:
                other.unlink()
        shutil.copyfile(apoc, plugins / apoc.name)
        return java_command(
            java,
            place,
            _OPTIONS,
            [f"{plugins}/*", *(jar for jar in jars if jar != apoc)],
            [
                "org.neo4j.server.CommunityEntryPoint",
                f"--home-dir={place.folder}",
                f"--config-dir={configuration}",
            ],
        )

    def is_ready(self, addresses: Mapping[str, str]) -> bool:
        # Not at the top: `lineage status` of a stack that is down needs no Neo4j client.
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        if not accepts(addresses["bolt"].removeprefix("bolt://")):
            return False
        with (
            _silent_driver_log(),
            neo4j.GraphDatabase.driver(addresses["bolt"], connection_timeout=3) as driver,
        ):
            try:
                # Not `execute_query`: that tries again for a while by itself, and the caller wants to say so.
                with driver.session() as session:
                    session.run("RETURN apoc.version()").consume()
            except (DriverError, Neo4jError):
                return False
        # Browser comes a moment after Bolt.
        return accepts(addresses["http"].removeprefix("http://"))
