"""`lineage consume`: writes lineage from Kafka into the stores, until stopped or an application is complete.

The door: settings in, exit code out. The loop and its promises are in `consumer`.
"""

from __future__ import annotations

import argparse
import logging
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lineage_service.completeness import Completeness, completeness_of
from lineage_service.errors import LineageError, UnavailableError
from lineage_service.ingest.consumer import Consumer
from lineage_service.ingest.gathered_messages import Limits
from lineage_service.kafka import client as kafka_client
from lineage_service.kafka.dead_letters import KafkaDeadLetters
from lineage_service.kafka.errors import no_broker
from lineage_service.kafka.group_claim import claim
from lineage_service.kafka.group_member import KafkaSubscription
from lineage_service.kafka.topics import TopicError, create_topics, topic_partitions
from lineage_service.monitoring.metrics import BatchMetrics, ConsumerMetrics, GraphMetrics, new_registry
from lineage_service.monitoring.metrics_server import metrics_server
from lineage_service.store.flow_store import FlowStore, open_store

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from lineage_service.graph.neo4j_store import Neo4jGraph
    from lineage_service.settings import Settings

__all__ = ["IncompleteError", "command", "configure"]

logger = logging.getLogger(__name__)

BROKER_DEADLINE_S = 10.0
_CHECK_S = 0.5


class IncompleteError(LineageError):
    """The application was not complete in time."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--until-complete",
        metavar="APPLICATION_ID",
        help="exit when this application has ended and all of its lineage is stored",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=300.0,
        help="with --until-complete: give up after this many seconds, exit code 1 (default: 300)",
    )
    parser.add_argument(
        "--reset-group",
        action="store_true",
        help="give the consumer group to this store and read the topics from their beginning; what the store "
        "has is left out. Nobody may consume in the group meanwhile",
    )


def command(settings: Settings, options: argparse.Namespace) -> int:
    """Consume as one member of the group. Raises LineageError."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    client = kafka_client.options(settings)
    logger.info("%s", _sentence(settings))
    _prepare_topics(settings, client)
    registry = new_registry()
    with metrics_server(settings, registry) if settings.metrics else nullcontext():
        return _consume(settings, options, registry, client)


def _consume(
    settings: Settings,
    options: argparse.Namespace,
    registry: CollectorRegistry,
    client: Mapping[str, str],
) -> int:
    """`client` has the Kafka client's further options."""
    store = open_store(settings)
    topics = [settings.node_topic, settings.flow_topic]
    claim(
        settings.kafka_bootstrap_servers,
        settings.consumer_group,
        topics,
        store.store_id,
        options=client,
        is_reset=options.reset_group,
    )
    graph, flows = _graph(settings), None
    if graph is not None:
        from lineage_service.graph_export import applications

        registry.register(GraphMetrics(graph.counters))
        flows = applications.from_settings(settings, graph)
    with closing(graph) if graph is not None else nullcontext():
        consumer = Consumer(
            partial(
                KafkaSubscription,
                settings.kafka_bootstrap_servers,
                settings.consumer_group,
                topics,
                options=client,
                queue_bytes=settings.held_max_bytes // 3,
                store_id=store.store_id,
            ),
            store,
            graph,
            KafkaDeadLetters(
                settings.kafka_bootstrap_servers,
                settings.dead_letter_topic,
                options=client,
            ),
            group=settings.consumer_group,
            node_topic=settings.node_topic,
            limits=Limits(
                max_bytes=settings.batch_max_bytes,
                max_seconds=settings.batch_max_seconds,
                gathered_bytes=settings.held_max_bytes - settings.held_max_bytes // 3,
            ),
            observer=BatchMetrics(registry),
        )
        registry.register(ConsumerMetrics(consumer))
        with _signals_to(consumer.stop):
            watch = None
            if options.until_complete is not None:
                watch = Watch(
                    store, options.until_complete, options.timeout, is_waiting=lambda: consumer.is_waiting
                )
            with flows.beside() if flows is not None else nullcontext():
                is_written = consumer.run(watch.is_over if watch is not None else lambda: False)
            if watch is not None:
                watch.check()
                if not is_written:
                    raise IncompleteError(
                        f"{options.until_complete} is complete in the flow store, but something of what this "
                        f"process took is not: {consumer.trouble}"
                    )
                if flows is not None:
                    flows.look_at(options.until_complete)
    return 0


def _sentence(settings: Settings) -> str:
    """From where to where, for the first line: a wrong broker or store is seen before anything is written."""
    graph = f"Neo4j at {settings.neo4j_uri}" if settings.neo4j_uri else "no Neo4j"
    return (
        f"consuming {settings.node_topic} and {settings.flow_topic} from Kafka at "
        f"{settings.kafka_bootstrap_servers} as group {settings.consumer_group}, into the store "
        f"{settings.store} and {graph}"
    )


def _graph(settings: Settings) -> Neo4jGraph | None:
    """The graph that the settings name. Its driver takes 0.4 s to import, a third of a consumer's start."""
    if not settings.neo4j_uri:
        return None
    from lineage_service.graph.neo4j_store import from_settings

    return from_settings(settings)


def _prepare_topics(settings: Settings, client: Mapping[str, str]) -> None:
    """See that the broker answers, and make the topics that are missing. Raises BrokerUnavailableError."""
    servers = settings.kafka_bootstrap_servers
    admin = kafka_client.client_of(
        AdminClient,
        {
            **client,
            "bootstrap.servers": servers,
            "log_level": 0,
            "error_cb": lambda _error: None,
        },
    )
    try:
        existing = admin.list_topics(timeout=BROKER_DEADLINE_S).topics
    except KafkaException as error:
        raise no_broker(servers, error) from error
    missing = {name: count for name, count in topic_partitions(settings).items() if name not in existing}
    try:
        if missing:
            create_topics(servers, missing, options=client)
    except TopicError as error:  # a broker that forbids it; what others make later is found later
        logger.warning("going on without topics %s: %s", ", ".join(missing), error)


class Watch:
    """Looks whether an application is complete in the store, whoever wrote it, until the time is over.

    One that was not followed as a whole never is. Then it is over once all that was sent is there.
    """

    def __init__(
        self,
        store: FlowStore,
        application_id: str,
        timeout_s: float,
        *,
        is_waiting: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_waiting` says that a store is away, so that what is complete in this one may lack there."""
        self._store = store
        self._is_waiting = is_waiting
        self._application_id = application_id
        self._timeout_s = timeout_s
        self._clock = clock
        self._deadline = clock() + timeout_s
        self._look_at = clock()
        self._seen: object = None
        self._found: Completeness | None = None

    def is_over(self) -> bool:
        """True when there is nothing to wait for any more. Looks now and then, and if anything changed."""
        now = self._clock()
        if now >= self._look_at or now >= self._deadline:
            self._look()
            # A store of many small files takes time to read: a fifth of it at most goes into looking.
            self._look_at = self._clock() + max(_CHECK_S, 4 * (self._clock() - now))
        is_final = self._found is not None and self._found.is_final and not self._is_waiting()
        return is_final or now >= self._deadline

    def check(self) -> None:
        """Raises IncompleteError."""
        self._look()
        if self._found is None or not self._found.is_complete:
            missing = "the flow store cannot be read" if self._found is None else self._found.describe()
            is_final = self._found is not None and self._found.is_final
            waited = "and cannot become so" if is_final else f"after {self._timeout_s:g} s"
            raise IncompleteError(f"{self._application_id} is not complete {waited}: {missing}")

    def _look(self) -> None:
        try:
            version = self._store.version()
            if version != self._seen:
                self._found = completeness_of(
                    self._store, self._application_id, self._store.events(self._application_id)
                )
                self._seen = version
        except UnavailableError as error:
            logger.warning("%s", error)


@contextmanager
def _signals_to(stop: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and Ctrl-C call `stop`; the second one does what it would have done."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def on_signal(_number: int, _frame: object) -> None:
        restore()
        stop()

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        restore()
