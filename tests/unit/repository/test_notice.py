"""NOTICE beside what the package really carries."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from scripts import jvm, page

NOTICE = (Path(__file__).parents[3] / "NOTICE").read_text("utf-8")


def bundled() -> list[str]:
    """The npm packages that the page is made of, without those that only build it."""
    packages = json.loads((page.UI / "package-lock.json").read_text("utf-8"))["packages"]
    return [
        path.removeprefix("node_modules/")
        for path, package in packages.items()
        if path and not package.get("dev")
    ]


def test_every_package_in_the_page_is_named() -> None:
    assert len(bundled()) >= 3
    assert [name for name in bundled() if f"\n{name}, MIT License, in the web page" not in NOTICE] == []


def test_the_terms_are_those_of_the_packages(without: Callable[[str, str], NoReturn]) -> None:
    licences = [page.UI / "node_modules" / name / "LICENSE" for name in bundled()]
    missing = [str(path.relative_to(page.UI.parent)) for path in licences if not path.is_file()]
    if missing:
        without("NODE", f"{missing[0]} is not there: run `make page`, which installs it with Node.js")
    for path in licences:
        assert path.read_text("utf-8").strip() in NOTICE


def test_every_library_in_the_jar_is_named(cannot_have: Callable[[str], NoReturn]) -> None:
    if not jvm.JAR.is_file():
        cannot_have("no lineage.jar: run `make jar`, which needs a JDK")
    with zipfile.ZipFile(jvm.JAR) as jar:
        names = jar.namelist()
    ours = re.compile(r"lineagemaster/|META-INF/|kafka-client/(lineagemaster/|org/slf4j/LoggerFactory.class)")
    rest = {name.removeprefix("kafka-client/") for name in names if not ours.match(name)}
    shaded = "org/apache/kafka/shaded/"
    libraries = {
        f"{shaded}com/google/protobuf/": "org.apache.kafka.shaded.com.google.protobuf",
        f"{shaded}io/opentelemetry/proto/": "org.apache.kafka.shaded.io.opentelemetry.proto",
    }
    assert [package for package in libraries.values() if package not in NOTICE] == []
    unnamed = {
        name
        for name in rest
        if not name.startswith(tuple(libraries))
        and (name.startswith(shaded) or not name.startswith("org/apache/kafka/"))
    }
    assert unnamed == {"LICENSE", "NOTICE"}
