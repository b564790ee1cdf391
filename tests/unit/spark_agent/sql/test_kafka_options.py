from __future__ import annotations

from pathlib import Path

import pytest

from spark_agent.sql.kafka_options import java_options


def test_a_password_becomes_a_login_that_keeps_its_quotes() -> None:
    options, problems = java_options(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "lineage",
            "sasl.password": 'a"b\\c',
        }
    )
    assert problems == []
    assert options == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="lineage" password="a\\"b\\\\c";',
    }


def test_certificates_travel_as_text(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"-----BEGIN {name}-----\n")
    options, problems = java_options(
        {
            "ssl.ca.location": str(tmp_path / "ca"),
            "ssl.certificate.location": str(tmp_path / "cert"),
            "ssl.key.location": str(tmp_path / "key"),
            "ssl.key.password": "word",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert problems == []
    assert options == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "-----BEGIN ca-----\n",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "-----BEGIN cert-----\n",
        "ssl.keystore.key": "-----BEGIN key-----\n",
        "ssl.key.password": "word",
        "ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.ssl.certificate.verification", "secret"),
        ("ssl.ca.location", "/nowhere/secret"),
        ("sasl.username", "secret"),
        ("ssl.key.pem", "-----BEGIN RSA PRIVATE KEY-----secret"),
    ],
)
def test_what_the_java_client_cannot_have_is_named_without_its_value(name: str, value: str) -> None:
    _, (problem,) = java_options({name: value})
    assert "secret" not in problem
    assert name.removesuffix(".pem") in problem or "private key" in problem
