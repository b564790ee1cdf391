"""Puts the command beside saved rows: `run.sh`, and the texts of the rows that it must give again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from lineage_service.errors import LineageError
from lineage_service.lineage import AskedRecord
from lineage_service.replays.explain.run_script import SavedJob, run_script
from lineage_service.replays.original import Original
from lineage_service.tracing.files.new_folders import new_file

__all__ = ["save_job"]

_SCRIPT, _ASKED = "run.sh", "asked.txt"


def save_job(
    original: Original,
    folder: Path,
    copies: Mapping[str, str],
    asked: Sequence[AskedRecord],
    words: Sequence[str],
) -> Path:
    """The script, in the folder of the copies: path of an input -> its copy. Raises LineageError."""
    folder = folder.absolute()
    texts: dict[str, list[str]] = defaultdict(list)
    for record in asked:
        place = _place_of(original, record.node)
        if place is not None and record.text is not None:
            texts[place].append(record.text)
    files: dict[str, str] = {}
    try:
        for place, of_place in sorted(texts.items()):
            path = _free(folder, _ASKED)
            _write(path, "".join(f"{text}\n" for text in of_place), 0o600)
            files[place] = path.name
        outputs = [place for sink in original.sinks if (place := _place_of(original, sink)) is not None]
        job = SavedJob(
            words=words,
            where=Path.cwd(),
            inputs={path: str(Path(copy).relative_to(folder)) for path, copy in copies.items()},
            outputs=tuple(dict.fromkeys(outputs)),
            asked=files,
        )
        path = _free(folder, _SCRIPT)
        _write(path, run_script(job), 0o700)
    except OSError as error:
        raise LineageError(f"{folder} cannot be written: {error.strerror or error}") from None
    return path


def _place_of(original: Original, number: int) -> str | None:
    """The folder of this machine that a sink wrote; None of any other."""
    sink = original.sinks.get(number)
    place = None if sink is None else original.place_of(sink)
    return place if place is not None and place.startswith("/") else None


def _free(folder: Path, name: str) -> Path:
    """A file that is not there yet: a copy may have the name."""
    stem, _, ending = name.partition(".")
    names = (name if number == 1 else f"{stem}-{number}.{ending}" for number in range(1, 10_000))
    return next(path for name in names if not (path := folder / name).exists())


def _write(path: Path, text: str, mode: int) -> None:
    with new_file(path) as file:
        file.write(text.encode())
    path.chmod(mode)
