"""Flow stores to ask: each of one real job, captured, consumed, and kept for the next measurement."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from perf.capture.broker import Broker
from perf.capture.cases import CASES
from perf.ingest.members import Service
from perf.ingest.topics import Job, Topics

_TIMEOUT_S = 900.0
_ABOUT = "about.json"


@dataclass(frozen=True, slots=True)
class Store:
    """A folder with `flows` (the store) and what its job read and wrote."""

    folder: Path
    case: str
    megabytes: float
    application_id: str
    inputs: tuple[Path, ...]
    output: Path


def build_store(folder: Path, case: str, megabytes: float, *, seed: int, data: Path, jars: Path) -> Store:
    """The store of one job below `folder`, from before or made now. Raises JobError."""
    place = folder / f"{case}-{megabytes:g}-{seed}"
    try:
        return _read(place)
    except FileNotFoundError:
        shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    broker = Broker(place / "stack", jars)
    try:
        store = _captured(place, broker, case, megabytes, seed, data)
    finally:
        broker.stop()
    shutil.rmtree(place / "stack")
    (place / _ABOUT).write_text(json.dumps(asdict(store), default=str))
    return store


def _read(place: Path) -> Store:
    about = json.loads((place / _ABOUT).read_text())
    return Store(
        folder=Path(about["folder"]),
        case=about["case"],
        megabytes=about["megabytes"],
        application_id=about["application_id"],
        inputs=tuple(map(Path, about["inputs"])),
        output=Path(about["output"]),
    )


def _captured(place: Path, broker: Broker, name: str, megabytes: float, seed: int, data: Path) -> Store:
    case = CASES[name]
    inputs = [source.file(data, megabytes, seed) for source in case.inputs]
    topics = Topics(broker.bootstrap_servers, name)
    topics.create()
    job = Job(topics, case, inputs, is_detailed=False, cores=2, memory="2g", folder=place)
    try:
        captured = job.captured()
        job.wait()
    finally:
        job.stop()
    service = Service(topics, place / "service")
    consumer = service.consume(0)
    try:
        topics.wait_until_committed(service.group, captured.ends, _TIMEOUT_S)
    finally:
        consumer.stop()
    assert captured.output is not None
    (service.folder / "flows").rename(place / "flows")
    return Store(
        folder=place,
        case=name,
        megabytes=megabytes,
        application_id=captured.application_id,
        inputs=tuple(inputs),
        output=captured.output,
    )
