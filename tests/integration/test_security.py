"""A job, a consumer, a real Kafka and a real Neo4j that ask for TLS and a password."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import neo4j
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
from neo4j.exceptions import DriverError, Neo4jError

from lineage_service.devstack.errors import DownloadError, JavaError
from lineage_service.devstack.java import find_java
from lineage_service.devstack.kafka import Kafka
from lineage_service.devstack.neo4j import Neo4j
from lineage_service.devstack.ports import HOST
from lineage_service.devstack.server import Server
from lineage_service.graph.graph_store import GraphRefusedError
from lineage_service.graph.neo4j_store import Neo4jGraph
from lineage_service.kafka.topics import create_topics
from lineage_service.store.flow_store import DeltaFlowStore
from perf.delivery.own_server import OwnServer, free_ports
from spark_agent import contract
from tests.support.consumers import Bench, bench_of
from tests.support.lineage_messages import APP, event
from tests.support.spark.taps import PARTITIONS

ROOT = Path(__file__).parents[2]
SECRET = "rosebud-7"
DEADLINE_S = 480.0
_KAFKA = """
listeners=PLAINTEXT://{host}:{broker},SECURE://{host}:{secure},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{broker},SECURE://{host}:{secure}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_lineage="{secret}";
listener.name.secure.ssl.keystore.location={keystore}
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.password={secret}
"""
_NEO4J = """
dbms.security.auth_enabled=true
server.bolt.tls_level=REQUIRED
dbms.ssl.policy.bolt.enabled=true
dbms.ssl.policy.bolt.base_directory={folder}
dbms.ssl.policy.bolt.private_key=tls.key
dbms.ssl.policy.bolt.public_certificate=ca.pem
dbms.ssl.policy.bolt.client_auth=NONE
server.config.strict_validation.enabled=false
"""
JOB = """
import sys
from pyspark import SparkContext

with SparkContext(appName="secured") as sc:
    sc.parallelize(range(20), 2).map(lambda n: n * n).saveAsTextFile(sys.argv[1])
    print("APPLICATION", sc.applicationId)
"""
#: A plan with a tap, made by hand; what its tasks tell is printed.
SQL_JOB = """
import sys
from pyspark.sql import SparkSession
from spark_agent.delivery import settings
from tests.support.spark.taps import Taps

spark = SparkSession.builder.getOrCreate()
options = settings.read(spark.sparkContext.getConf().get)
taps = Taps(spark, options.bootstrap_servers, client=options.client, topic="lineage-flow")
read = taps.with_ids(spark.range(0, 20, 1, 2), 1, "id1")
taps.tapped(read, {"id1": 1}).write.parquet(sys.argv[1])
for manifest in taps.manifests():
    print("SAID", manifest["blocks"], manifest["dropped"], manifest["problem"])
"""


@dataclass(frozen=True, kw_only=True)
class Secured:
    """A server whose every client must know its certificate and a password."""

    address: str
    authority: Path


Start = Callable[..., None]


@pytest.fixture(scope="module")
def start(jar_folder: Path, cannot_have: Callable[[str], NoReturn]) -> Iterator[Start]:
    """start(server, folder, ports, settings file, more settings, is_ready): returns when it is ready."""
    running: list[OwnServer] = []

    def start(
        server: Server,
        folder: Path,
        ports: dict[str, int],
        file: str,
        more: str,
        is_ready: Callable[[], bool] | None = None,
    ) -> None:
        try:
            running.append(OwnServer(server, folder, jar_folder, ports, is_ready))
        except (DownloadError, JavaError) as error:
            cannot_have(f"no {server.name}: {error}")
        running[-1].configure(file, more)
        running[-1].start()

    yield start
    for each in running:
        each.kill()


def certify(folder: Path) -> tuple[Path, Path]:
    """A key and its certificate for 127.0.0.1, signed by itself: (PKCS 12 of both, PEM of the second)."""
    keystore, certificate = folder / "server.p12", folder / "ca.pem"
    keytool = Path(os.path.realpath(find_java())).with_name("keytool")
    store = ["-keystore", str(keystore), "-storetype", "PKCS12", "-storepass", SECRET, "-alias", "server"]
    name = ["-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", "-validity", "2"]
    subprocess.run([keytool, "-genkeypair", "-keyalg", "RSA", *name, *store], check=True, capture_output=True)
    export = subprocess.run([keytool, "-exportcert", "-rfc", *store], check=True, capture_output=True)
    certificate.write_bytes(export.stdout)
    return keystore, certificate


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, start: Start) -> Secured:
    folder = tmp_path_factory.mktemp("secured")
    keystore, authority = certify(folder)
    ports = free_ports("broker", "secure", "controller")
    more = _KAFKA.format(host=HOST, keystore=keystore, secret=SECRET, **ports)
    start(Kafka(), folder, ports, "server.properties", more)
    return Secured(address=f"{HOST}:{ports['secure']}", authority=authority)


@pytest.fixture(scope="module")
def secured_graph(tmp_path_factory: pytest.TempPathFactory, start: Start) -> Secured:
    folder = tmp_path_factory.mktemp("secured-graph")
    keystore, authority = certify(folder)
    key, _, _ = pkcs12.load_key_and_certificates(keystore.read_bytes(), SECRET.encode())
    assert key is not None
    (folder / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    ports = free_ports("bolt", "http")
    uri = f"bolt://{HOST}:{ports['bolt']}"

    def has_changed_its_password() -> bool:
        """The first user of a new server must."""
        trust = neo4j.TrustCustomCAs(str(authority))
        options: dict[str, Any] = {"encrypted": True, "trusted_certificates": trust}
        with neo4j.GraphDatabase.driver(uri, auth=("neo4j", "neo4j"), **options) as driver:
            try:
                with driver.session(database="system") as session:
                    change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $secret"
                    session.run(change, secret=SECRET).consume()
            except (DriverError, Neo4jError):
                return False
        return True

    more = _NEO4J.format(folder=folder)
    start(Neo4j(), folder, ports, "conf/neo4j.conf", more, has_changed_its_password)
    return Secured(address=uri, authority=authority)


@pytest.fixture
def config(secured: Secured, tmp_path: Path) -> Path:
    """The file of client options."""
    path = tmp_path / "kafka.properties"
    path.write_text(
        f"security.protocol=SASL_SSL\nssl.ca.location={secured.authority}\nsasl.mechanism=PLAIN\n"
        f"sasl.username=lineage\nsasl.password={SECRET}\n"
    )
    return path


def lineage(
    tmp_path: Path, secured: Secured, *arguments: str, **settings: object
) -> subprocess.CompletedProcess[str]:
    chosen = {
        "home": tmp_path / "home",
        "store": tmp_path / "flows",
        "kafka_bootstrap_servers": secured.address,
        **settings,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    environment |= {f"LINEAGE_{name.upper()}": str(value) for name, value in chosen.items()}
    command = [sys.executable, "-m", "lineage_service.cli.main", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def submitted(
    tmp_path: Path, secured: Secured, config: Path, text: str = JOB, is_on: bool = True
) -> tuple[str, str]:
    """(what the job said, what it and Spark said) of an ordinary job with two flags."""
    job = tmp_path / "job.py"
    job.write_text(text)
    confs = {
        "spark.lineage.enabled": str(is_on).lower(),
        "spark.lineage.onError": "fail",
        "spark.lineage.delivery.timeout": "20",
        "spark.lineage.kafka.bootstrap.servers": secured.address,
        "spark.lineage.kafka.config": config,
        "spark.ui.enabled": "false",
    }
    flags = [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [submit, "--master", "local[2]", *flags, job, tmp_path / "out"],
        env={**os.environ, "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return done.stdout, said


@pytest.mark.thorough
def test_a_job_and_a_consumer_reach_a_kafka_with_tls_and_a_password(
    secured: Secured, config: Path, tmp_path: Path
) -> None:
    told, said = submitted(tmp_path, secured, config)
    application_id = told.split("APPLICATION ")[1].split()[0]
    consumed = lineage(
        tmp_path,
        secured,
        "consume",
        "--until-complete",
        application_id,
        "--timeout",
        "60",
        kafka_config=config,
    )
    assert consumed.returncode == 0, consumed.stderr
    assert DeltaFlowStore(tmp_path / "flows").applications() == [application_id]
    assert SECRET not in said + consumed.stdout + consumed.stderr
    events = DeltaFlowStore(tmp_path / "flows").events(application_id)
    assert SECRET not in str(events)


@pytest.mark.usefixtures("jar")
@pytest.mark.thorough
def test_a_query_reaches_a_kafka_with_tls_and_a_password(
    secured: Secured, config: Path, tmp_path: Path
) -> None:
    client = dict(line.split("=", 1) for line in config.read_text().splitlines())
    create_topics(secured.address, {"lineage-flow": PARTITIONS}, options=client)
    told, said = submitted(tmp_path, secured, config, SQL_JOB, is_on=False)
    lines = [line.split(" ", 3)[1:] for line in told.splitlines() if line.startswith("SAID ")]
    assert sorted(lines) == [["0", "0", ""], ["0", "0", ""], ["1", "0", ""], ["1", "0", ""]]
    assert SECRET not in said


@pytest.mark.thorough
def test_a_consumer_without_the_file_says_that_no_broker_answers(secured: Secured, tmp_path: Path) -> None:
    consumed = lineage(tmp_path, secured, "consume")
    assert consumed.returncode == 1
    first, last = consumed.stderr.splitlines()
    assert f"from Kafka at {secured.address} as group" in first
    assert last.startswith(f"lineage: no Kafka broker answers at {secured.address}")


@pytest.mark.thorough
def test_a_wrong_password_is_said_and_not_repeated(secured: Secured, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace(SECRET, "wrong-8"))
    consumed = lineage(tmp_path, secured, "consume", kafka_config=config)
    assert consumed.returncode == 1
    assert "wrong-8" not in consumed.stdout + consumed.stderr


@pytest.fixture
def bench(kafka: Any, tmp_path: Path, topic: str) -> Iterator[Bench]:
    yield from bench_of(kafka, tmp_path, topic)


def consumed_into(
    bench: Bench, secured_graph: Secured, secret: str, **settings: object
) -> subprocess.CompletedProcess[str]:
    """What `lineage consume` said of an application of two events, its password in a file."""
    password = bench.folder / "password"
    password.write_text(f"{secret}\n")
    bench.send_events(event(contract.APPLICATION_STARTED, name="job"))
    bench.send_events(event(contract.APPLICATION_ENDED, counters={"runs": 0}))
    settings = {"neo4j_uri": secured_graph.address, "neo4j_password_file": password, **settings}
    process = bench.consume("--until-complete", APP, "--timeout", "5", **settings)
    out, _ = process.communicate(timeout=DEADLINE_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out)


@pytest.mark.thorough
def test_a_consumer_reaches_a_neo4j_with_tls_and_a_password(bench: Bench, secured_graph: Secured) -> None:
    uri = secured_graph.address.replace("bolt://", "bolt+s://")
    done = consumed_into(bench, secured_graph, SECRET, neo4j_uri=uri, neo4j_ca=secured_graph.authority)
    assert done.returncode == 0, done.stdout
    assert SECRET not in done.stdout
    trust = neo4j.TrustCustomCAs(str(secured_graph.authority))
    with neo4j.GraphDatabase.driver(
        secured_graph.address, auth=("neo4j", SECRET), encrypted=True, trusted_certificates=trust
    ) as driver:
        found = driver.execute_query("MATCH (a:LineageApplication) RETURN a.applicationId AS id").records
    assert [each["id"] for each in found] == [APP]


@pytest.mark.thorough
def test_a_neo4j_whose_certificate_nobody_vouches_for_gets_no_password(
    bench: Bench, secured_graph: Secured
) -> None:
    uri = secured_graph.address.replace("bolt://", "bolt+s://")
    done = consumed_into(bench, secured_graph, SECRET, neo4j_uri=uri)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert "is complete in the flow store, but" in last
    assert "has a certificate that nobody here vouches for" in last
    assert "LINEAGE_NEO4J_CA" in last
    assert SECRET not in done.stdout


@pytest.mark.thorough
def test_a_wrong_password_for_neo4j_is_said_and_not_repeated(bench: Bench, secured_graph: Secured) -> None:
    uri = secured_graph.address.replace("bolt://", "bolt+s://")
    done = consumed_into(bench, secured_graph, "wrong-8", neo4j_uri=uri, neo4j_ca=secured_graph.authority)
    assert done.returncode == 1
    assert "refuses: " in done.stdout.splitlines()[-1]
    assert "wrong-8" not in done.stdout


@pytest.mark.thorough
def test_a_wrong_password_is_refused_and_not_told(secured_graph: Secured) -> None:
    uri, authorities = secured_graph.address.replace("bolt://", "bolt+s://"), str(secured_graph.authority)
    store = Neo4jGraph(uri, user="neo4j", password="wrong-password", authorities=authorities)
    try:
        with pytest.raises(GraphRefusedError, match="LINEAGE_NEO4J_PASSWORD") as told:
            store.ping()
        assert "wrong-password" not in str(told.value)
    finally:
        store.close()
