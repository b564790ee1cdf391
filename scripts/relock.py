"""Writes lineage_service/devstack/*.lock anew: every jar of the local stack with its SHA-256 and size.

For maintainers, after a version below has changed. Needs Maven on the PATH, which resolves the dependencies;
users of `lineage up` need no Maven, because the lock says all that there is to know. Run it from anywhere:

    python scripts/relock.py
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

LOCKS = Path(__file__).parents[1] / "lineage_service" / "devstack"

#: What each program is asked for by name; Maven adds what these need.
PROGRAMS = {
    "kafka": (
        "org.apache.kafka:kafka_2.13:4.1.0",
        # Kafka logs through slf4j 1.7 and names no back end of its own: without one it dies without a word.
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    "neo4j": (
        "org.neo4j:neo4j:5.26.5",
        "org.neo4j.procedure:apoc-core:5.26.5:core",
        "org.neo4j.client:neo4j-browser:5.24.0",
    ),
}

#: Resolved, but of no use here: macOS sockets (Java's own do) and an artefact that is empty by design.
UNUSED = ("netty-transport-native-kqueue-*", "listenablefuture-9999.0-*")


def pom(coordinates: tuple[str, ...]) -> str:
    dependencies = ""
    for coordinate in coordinates:
        group, artifact, version, *classifier = coordinate.split(":")
        # APOC's own dependencies are inside Neo4j already, and its jar carries the rest.
        alone = (
            "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        )
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
            + (f"<classifier>{classifier[0]}</classifier>{alone}" if classifier else "")
            + "</dependency>"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>lock</groupId><artifactId>lock</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )


def lock_line(repository: Path, jar: Path) -> str:
    """The line of one jar in a folder with the layout of a Maven repository."""
    *group, artifact, version, _ = jar.relative_to(repository).parts
    classifier = jar.stem.removeprefix(f"{artifact}-{version}").removeprefix("-")
    coordinate = ":".join([".".join(group), artifact, version, *filter(None, [classifier])])
    content = jar.read_bytes()
    return f"{coordinate} {hashlib.sha256(content).hexdigest()} {len(content)}"


def resolve(coordinates: tuple[str, ...]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder, "repository")
        Path(folder, "pom.xml").write_text(pom(coordinates))
        subprocess.run(
            [
                "mvn",
                "--batch-mode",
                "--quiet",
                "dependency:copy-dependencies",
                "-DincludeScope=runtime",
                "-Dmdep.useRepositoryLayout=true",
                f"-DoutputDirectory={repository}",
            ],
            cwd=folder,
            check=True,
        )
        jars = [
            jar
            for jar in repository.rglob("*.jar")
            if not any(fnmatch(jar.name, unused) for unused in UNUSED)
        ]
        return sorted(lock_line(repository, jar) for jar in jars)


def main() -> None:
    for program, coordinates in PROGRAMS.items():
        lines = resolve(coordinates)
        header = (
            "# Made by scripts/relock.py. One jar a line: group:artifact:version[:classifier] sha256 size\n"
        )
        (LOCKS / f"{program}.lock").write_text(header + "\n".join(lines) + "\n")
        sys.stdout.write(
            f"{program}: {len(lines)} jars, {sum(int(line.split()[-1]) for line in lines) / 1e6:.0f} MB\n"
        )


if __name__ == "__main__":
    main()
