"""Builds the Java part of the agent, spark_agent/jvm/lineage.jar, and does only what is not done yet.

    python -m scripts.jvm build|check

`build` compiles spark_agent/jvm/src against the installed PySpark, unless the same sources are built there
already, and puts the pinned Kafka client into the jar. The same sources and tools make the same bytes.
`check` compiles with all warnings of javac as errors. Where there is no JDK, or the Kafka client cannot be
downloaded, each says so in one line and is done: everything but the lineage of DataFrames and SQL works
without the jar. With LINEAGE_TEST_JVM=required that is a failure. hatch_build.py builds with it, too, and
there it is always one. Importing this module needs the standard library only.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from lineage_service.devstack.errors import DownloadError
from lineage_service.devstack.jars import Jar, read_lock
from scripts.environment import EnvironmentFailed, alone, say

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "spark_agent" / "jvm"
JAR = FOLDER / "lineage.jar"
#: Where the Kafka client, and what only it may see, is in the jar: the job's class loader does not find it.
CLIENT = "kafka-client/"
_CLIENT_ONLY = ("lineagemaster/delivery/kafka/", "org/slf4j/")
_COMMANDS = ("build", "check")
#: The oldest Java that runs a Spark that we know.
_RELEASE = "11"
#: The oldest JDK that reads the class files of the Spark that the jar is compiled against.
OLDEST_JDK = 17
#: Name in the jar -> the terms of what is in it.
_LICENSES = {"META-INF/LICENSE": ROOT / "LICENSE", "META-INF/NOTICE": ROOT / "NOTICE"}
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold
_STAMP = "lineagemaster/sources.sha256"


class JarNotBuilt(Exception):
    """There is nothing to build the jar with; the message says what to do."""


def is_built() -> bool:
    """True if the jar is there and made of the sources as they are."""
    return _stamp(JAR) == _digest()


def check_tools() -> None:
    """Raises JarNotBuilt where this machine cannot compile."""
    _javac()


def run(command: str) -> None:
    """Raises JarNotBuilt, and CalledProcessError where the sources do not compile."""
    with alone(FOLDER / "lineage"):
        digest = _digest()
        if command == "build" and _stamp(JAR) == digest:
            return
        javac = _javac()
        client = _kafka_client()
        with tempfile.TemporaryDirectory() as folder:
            classes = Path(folder)
            _compile(javac, client, classes, strict=command == "check")
            if command == "build":
                say("Building the agent's jar ...")
                _pack(classes, client, digest)


def _sources() -> list[Path]:
    return sorted((FOLDER / "src").rglob("*.java"))


def _digest() -> str:
    """Of all that the jar is made of."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + _client_in_lock().sha256.encode())
    for name, path in _LICENSES.items():
        digest.update(f"{name}\n".encode() + path.read_bytes())
    for path in _sources():
        digest.update(f"{path.relative_to(FOLDER)}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _stamp(jar: Path) -> str:
    try:
        with zipfile.ZipFile(jar) as file:
            return file.read(_STAMP).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return ""


def _javac() -> Path:
    home = os.environ.get("JAVA_HOME")
    compiler = str(Path(home, "bin", "javac")) if home else shutil.which("javac")
    if compiler is None or not os.access(compiler, os.X_OK):
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise JarNotBuilt(f"there is no javac {where}: install a JDK, {OLDEST_JDK} or later")
    version = subprocess.run(
        [compiler, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    ).stdout.strip()
    number = re.match(r"javac (\d+)", version)
    if number is None or int(number[1]) < OLDEST_JDK:
        raise JarNotBuilt(f"{compiler} is {version or 'no javac'}: install a JDK, {OLDEST_JDK} or later")
    return Path(compiler)


def _client_in_lock() -> Jar:
    return next(jar for jar in read_lock("kafka") if jar.artifact == "kafka-clients")


def _kafka_client() -> Path:
    # Not at the top: what these import is not there where only `is_built` is asked.
    from lineage_service.devstack.download import fetch
    from lineage_service.devstack.progress import Quiet

    jar = _client_in_lock()
    folder = ROOT / ".cache" / "lineage" / "jars"
    try:
        return fetch([jar], folder, os.environ.get("LINEAGE_MAVEN_REPOSITORY", ""), Quiet())[0]
    except DownloadError as error:
        raise JarNotBuilt(f"the Kafka client cannot be had: {error}") from None


def _compile(javac: Path, client: Path, classes: Path, *, strict: bool) -> None:
    spark = importlib.util.find_spec("pyspark")
    if spark is None or not spark.submodule_search_locations:
        raise JarNotBuilt("PySpark, which it is compiled against, is not installed")
    jars = Path(spark.submodule_search_locations[0], "jars")
    command = [str(javac), "--release", _RELEASE, "-encoding", "UTF-8", "-proc:none", "-g:source,lines"]
    # Not of our sources: Spark's class files, its jars' manifests. Version ids: none of ours is ever stored.
    command += ["-Xlint:all,-classfile,-path,-options,-serial", *(["-Werror"] if strict else [])]
    command += ["-cp", f"{jars}/*{os.pathsep}{client}", "-d", str(classes), *map(str, _sources())]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        say(done.stdout.strip(), sys.stderr)
        done.check_returncode()


def _pack(classes: Path, client: Path, digest: str) -> None:
    entries = dict(_entries(classes, client))
    entries[_STAMP] = digest.encode()
    unfinished = JAR.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as jar:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(entry, entries[name])
    unfinished.replace(JAR)


def _entries(classes: Path, client: Path) -> Iterator[tuple[str, bytes]]:
    for path in classes.rglob("*.class"):
        name = path.relative_to(classes).as_posix()
        yield (CLIENT if name.startswith(_CLIENT_ONLY) else "") + name, path.read_bytes()
    for name, path in _LICENSES.items():
        yield name, path.read_bytes()
    with zipfile.ZipFile(client) as jar:
        for name in jar.namelist():
            if name.endswith(".class") or name in ("LICENSE", "NOTICE"):
                yield CLIENT + name, jar.read(name)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in _COMMANDS:
        say("usage: python3 -m scripts.jvm build|check", sys.stderr)
        return 2
    try:
        run(arguments[0])
    except subprocess.CalledProcessError as error:
        return error.returncode or 1
    except EnvironmentFailed as error:
        say(f"jar: {error}", sys.stderr)
        return 1
    except JarNotBuilt as error:
        without = "the jar stays as it is" if JAR.is_file() else "DataFrames and SQL have no record lineage"
        say(f"jar: {error}; {without}", sys.stderr)
        return 1 if os.environ.get("LINEAGE_TEST_JVM") == "required" else 0
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
