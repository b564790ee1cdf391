"""A job, a consumer and a real Kafka that asks for TLS and a password."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from lineage_service.flow_store import DeltaFlowStore
from lineage_service.settings import Settings
from lineage_service.stack.download import fetch
from lineage_service.stack.errors import DownloadError, JavaError
from lineage_service.stack.jars import read_lock
from lineage_service.stack.java import find_java
from lineage_service.stack.kafka import Kafka
from lineage_service.stack.ports import HOST, choose_port
from lineage_service.stack.progress import Quiet
from lineage_service.stack.server import Place

SECRET = "rosebud-7"
DEADLINE_S = 120.0
_SETTINGS = """
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
JOB = """
import sys
from pyspark import SparkContext

with SparkContext(appName="secured") as sc:
    sc.parallelize(range(20), 2).map(lambda n: n * n).saveAsTextFile(sys.argv[1])
    print("APPLICATION", sc.applicationId)
"""


@dataclass(frozen=True, kw_only=True)
class Secured:
    """A broker whose every client must know its certificate and a password."""

    servers: str
    authority: Path


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory, jar_folder: Path, cannot_have: Callable[[str], NoReturn]
) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    keystore, authority = folder / "broker.p12", folder / "ca.pem"
    keytool = Path(os.path.realpath(find_java())).with_name("keytool")
    store = ["-keystore", str(keystore), "-storetype", "PKCS12", "-storepass", SECRET, "-alias", "broker"]
    name = ["-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", "-validity", "2"]
    subprocess.run([keytool, "-genkeypair", "-keyalg", "RSA", *name, *store], check=True, capture_output=True)
    export = subprocess.run([keytool, "-exportcert", "-rfc", *store], check=True, capture_output=True)
    authority.write_bytes(export.stdout)
    server = Kafka()
    place = Place(folder=folder / "kafka", logs=folder / "logs")
    ports: dict[str, int] = {}
    for purpose in ("broker", "secure", "controller"):
        ports[purpose] = choose_port(purpose, [], taken=ports.values())
    lock = read_lock(server.name)
    try:
        fetch(list(lock), jar_folder, Settings().maven_repository, Quiet())
        java = find_java()
    except (DownloadError, JavaError) as error:
        cannot_have(f"no kafka: {error}")
    place.folder.mkdir(parents=True)
    place.logs.mkdir(parents=True)
    command = server.prepare(java, [jar_folder.absolute() / jar.file_name for jar in lock], place, ports)
    with (place.folder / "server.properties").open("a") as file:
        file.write(_SETTINGS.format(host=HOST, keystore=keystore, secret=SECRET, **ports))
    with (place.logs / "kafka.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not server.is_ready({"bootstrap_servers": f"{HOST}:{ports['broker']}"}):
            said = (place.logs / "kafka.log").read_text()[-3000:]
            assert process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.1)
        yield Secured(servers=f"{HOST}:{ports['secure']}", authority=authority)
    finally:
        process.kill()
        process.wait()


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
        "kafka_bootstrap_servers": secured.servers,
        **settings,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LINEAGE_")}
    environment |= {f"LINEAGE_{name.upper()}": str(value) for name, value in chosen.items()}
    command = [sys.executable, "-m", "lineage_service.cli", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def submitted(tmp_path: Path, secured: Secured, config: Path) -> tuple[str, str]:
    """(application id, all that the job and Spark said) of an ordinary job with two flags."""
    job = tmp_path / "job.py"
    job.write_text(JOB)
    confs = {
        "spark.lineage.enabled": "true",
        "spark.lineage.onError": "fail",
        "spark.lineage.delivery.timeout": "20",
        "spark.lineage.kafka.bootstrap.servers": secured.servers,
        "spark.lineage.kafka.config": config,
        "spark.ui.enabled": "false",
    }
    flags = [part for name, value in confs.items() for part in ("--conf", f"{name}={value}")]
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [submit, "--master", "local[2]", *flags, job, tmp_path / "out"],
        env={**os.environ, "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return done.stdout.split("APPLICATION ")[1].split()[0], said


def test_a_job_and_a_consumer_reach_a_kafka_with_tls_and_a_password(
    secured: Secured, config: Path, tmp_path: Path
) -> None:
    application_id, said = submitted(tmp_path, secured, config)
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


def test_a_consumer_without_the_file_says_that_no_broker_answers(secured: Secured, tmp_path: Path) -> None:
    consumed = lineage(tmp_path, secured, "consume")
    assert consumed.returncode == 1
    assert consumed.stderr.count("\n") == 1
    assert f"no Kafka broker answers at {secured.servers}" in consumed.stderr


def test_a_wrong_password_is_said_and_not_repeated(secured: Secured, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace(SECRET, "wrong-8"))
    consumed = lineage(tmp_path, secured, "consume", kafka_config=config)
    assert consumed.returncode == 1
    assert "wrong-8" not in consumed.stdout + consumed.stderr
