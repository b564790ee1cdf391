"""Compares how this service reads .bz2 and .gz files of jobs with the libraries indexed_bzip2 and rapidgzip.

    pip install indexed_bzip2 rapidgzip      # beside the service; nothing else here needs them
    python -m perf.decompression [--megabytes 100]

Measures the first reading of a file, reads at random offsets after it, and where the splits of a .bz2 file
begin in its text. Compares these beginnings on many small files, and what is read of files that are not
whole. CPU seconds count all threads of the process. Writes `perf/results/decompression-DATE.json` and `.md`.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lineage_service.tracing.files.bzip2_splits import text_starts
from lineage_service.tracing.files.decompression import FileBytes, unlimited
from lineage_service.tracing.files.file_systems import FileSystems, UnreadableError
from perf.capture.__main__ import about_machine
from perf.capture.drivers import ROOT
from perf.tables import publish, table

OURS = "this service"
PIECE = 1 << 16
READ = 1 << 14
READS = 20
SPLITS = 8
SMALL_FILES = 200
SEED = 20261126

#: Opens a file at an offset of its text.
Open = Callable[[int], AbstractContextManager[Any]]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m perf.decompression", description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100, help="of text (100)")
    parser.add_argument("--out", type=Path, default=ROOT / "perf" / "results")
    parser.add_argument("--note", default="")
    options = parser.parse_args(argv)
    figures = about_machine("perf.decompression", options.note)
    del figures["Java"]
    figures |= {name: version(name) for name in ("indexed_bzip2", "rapidgzip")} | {"seed": SEED}
    with tempfile.TemporaryDirectory() as folder:
        text = words(int(options.megabytes * 1_000_000))
        for ending, compress in ((".bz2", bz2.compress), (".gz", gzip.compress)):
            path = Path(folder) / f"text{ending}"
            path.write_bytes(compress(text))
            figures[ending] = {name: measured(opened, text) for name, opened in readers(path).items()}
        figures["splits"] = split_starts(Path(folder) / "text.bz2")
    figures["small files"] = different_starts(random.Random(SEED))
    figures["not whole"] = {name: read_of(name) for name in NOT_WHOLE}
    publish(options.out, "decompression", figures, page(figures))
    return 0


def words(size: int) -> bytes:
    """Lines of random words."""
    rng = random.Random(SEED)
    every = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(20_000)]
    text = bytearray()
    while len(text) < size:
        text += " ".join(rng.choices(every, k=12)).encode() + b"\n"
    return bytes(text)


def readers(path: Path) -> Mapping[str, Open]:
    """How each opens the file; an index that it makes stays from one opening to the next."""
    ours = FileBytes(str(path), FileSystems())
    name = "indexed_bzip2" if path.suffix == ".bz2" else "rapidgzip"
    theirs = import_module(name).open(str(path), parallelization=1)

    @contextmanager
    def opened(offset: int) -> Iterator[Any]:
        theirs.seek(offset)
        yield theirs

    return {OURS: lambda offset: ours.reading(offset, unlimited), name: opened}


def measured(opened: Open, text: bytes) -> dict[str, float]:
    """CPU seconds of the first reading, and of single reads after it."""
    rng = random.Random(SEED)
    with opened(0) as file:
        begin, size = time.process_time(), 0
        while data := file.read(PIECE):
            size += len(data)
        first = time.process_time() - begin
    assert size == len(text)
    reads = []
    for _ in range(READS):
        offset = rng.randrange(len(text) - READ)
        begin = time.process_time()
        with opened(offset) as file:
            data = _exactly(file, READ)
        reads.append(time.process_time() - begin)
        assert data == text[offset : offset + READ]
    return {"first_s": first, "read_median_s": statistics.median(reads), "read_most_s": max(reads)}


def _exactly(file: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += file.read(size - len(data))
    return data


# -- splits ---------------------------------------------------------------------------------------------


def split_starts(path: Path) -> dict[str, float]:
    """CPU seconds until it is known where some splits begin."""
    size = path.stat().st_size
    starts = [size * at // SPLITS for at in range(1, SPLITS)]
    begin = time.process_time()
    ours = text_starts(str(path), starts, FileSystems(), unlimited)
    between = time.process_time()
    theirs = starts_by_library(path, starts)
    end = time.process_time()
    assert ours == theirs
    return {OURS: between - begin, "indexed_bzip2": end - between}


def starts_by_library(path: Path, starts: Iterable[int]) -> dict[int, int]:
    """The same by the offsets of blocks: that of the first block behind the mark in which a split begins."""
    with import_module("indexed_bzip2").open(str(path), parallelization=1) as file:
        offsets = sorted(file.block_offsets().items())
        length = file.seek(0, io.SEEK_END)
    return {
        start: next((text for bit, text in offsets if bit >= 8 * max(start, 5)), length) for start in starts
    }


def different_starts(rng: random.Random) -> dict[str, int]:
    """Of small files of several streams: splits, and those that the library says begin elsewhere."""
    splits = different = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.bz2"
        for _ in range(SMALL_FILES):
            parts = [rng.randbytes(rng.choice((0, 10, 90_000, 250_000))) for _ in range(rng.randint(1, 3))]
            data = b"".join(bz2.compress(part, rng.randint(1, 2)) for part in parts)
            path.write_bytes(data)
            starts = sorted(rng.sample(range(1, len(data)), min(9, len(data) - 1)))
            ours = text_starts(str(path), starts, FileSystems(), unlimited)
            theirs = starts_by_library(path, starts)
            splits += len(starts)
            different += sum(ours[start] != theirs[start] for start in starts)
    return {"files": SMALL_FILES, "splits": splits, "different": different}


# -- files that are not whole, or not as simple ------------------------------------------------------------

_TEXT = random.Random(SEED).randbytes(750_000).hex().encode()
_BZ2, _GZ = bz2.compress(_TEXT, 1), gzip.compress(_TEXT)
NOT_WHOLE: Mapping[str, tuple[str, bytes]] = {
    "half of a .bz2": (".bz2", _BZ2[: len(_BZ2) // 2]),
    "half of a .gz": (".gz", _GZ[: len(_GZ) // 2]),
    ".gz with zeros behind it": (".gz", _GZ + bytes(512)),
    "empty .gz": (".gz", b""),
}


def read_of(name: str) -> dict[str, str]:
    """What each reads, in a process of its own."""
    ending, data = NOT_WHOLE[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{ending}"
        path.write_bytes(data)
        return {reader: _in_process(_read_all, str(path), reader) for reader in (OURS, "library")}


def _in_process(target: Callable[..., None], *arguments: Any) -> str:
    context = multiprocessing.get_context("spawn")
    result = context.Queue()
    process = context.Process(target=target, args=(*arguments, result))
    process.start()
    said: str = result.get(timeout=60)
    process.join()
    return said


def _read_all(path: str, reader: str, result: Any) -> None:
    size, said = 0, ""
    try:
        opened = readers(Path(path))
        with opened[OURS if reader == OURS else next(name for name in opened if name != OURS)](0) as file:
            while data := file.read(PIECE):
                size += len(data)
    except (UnreadableError, OSError, RuntimeError, ValueError) as error:
        said = f", then {type(error).__name__}"
    result.put(f"{size:,} bytes{said}")


# -- the page -------------------------------------------------------------------------------------------


def page(figures: Mapping[str, Any]) -> str:
    about = [[key, str(value)] for key, value in figures.items() if isinstance(value, str | int)]
    read = [
        [ending, name, f"{of['first_s']:.2f} s", _ms(of["read_median_s"]), _ms(of["read_most_s"])]
        for ending in (".bz2", ".gz")
        for name, of in figures[ending].items()
    ]
    small, starts = figures["small files"], figures["splits"]
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in starts.items())
    not_whole = [[name, *of.values()] for name, of in figures["not whole"].items()]
    return f"""# Reading compressed files of jobs

{table(["", ""], about)}

CPU time of all threads: of the first reading, and of {READS} reads of {READ:,} bytes at random offsets
after it.

{table(["file", "read by", "first reading", "a read, median", "most"], read)}

Where {SPLITS - 1} splits of the .bz2 file begin in its text: {seconds}.
Of {small["splits"]:,} splits of {small["files"]} small files, {small["different"]} begin elsewhere by the
library.

{table(["file", OURS, "library"], not_whole)}
"""


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"


if __name__ == "__main__":
    sys.exit(main())
