"""requirements.lock, which `make lock` writes, beside pyproject.toml, which people write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.environment import DEVELOPMENT

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements.lock"
PYTHONS = ("3.10", "3.11")


def environment(python: str) -> dict[str, str]:
    return {"python_version": python, "python_full_version": f"{python}.9"}


def applies(requirement: Requirement, python: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**environment(python), "extra": ""})


def locked(python: str) -> dict[str, str]:
    """Name and version of what the lock installs on `python`."""
    pins = [
        Requirement(line.rstrip("\\ ")) for line in LOCK.read_text().splitlines() if re.match(r"\w", line)
    ]
    return {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins if applies(pin, python)
    }


def asked_for(extras: Mapping[str, list[str]], extra: str) -> Iterator[Requirement]:
    for line in extras[extra]:
        requirement = Requirement(line)
        if requirement.name == "lineage-master":
            for inner in requirement.extras:
                yield from asked_for(extras, inner)
        else:
            yield requirement


def requested() -> list[Requirement]:
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    return [*map(Requirement, core.dependencies), *asked_for(core.optional_dependencies, "dev")]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_agrees_with_pyproject_on_each_python(python: str) -> None:
    pins = locked(python)
    disagree = [
        str(requirement)
        for requirement in requested()
        if applies(requirement, python)
        and not requirement.specifier.contains(pins.get(canonicalize_name(requirement.name), "0"))
    ]
    assert disagree == [], "run `make lock`"


def test_the_lock_has_nothing_that_is_no_longer_asked_for() -> None:
    """Each pin says whose requirement it is; what only pyproject.toml asks for is still in there."""
    direct = {canonicalize_name(requirement.name) for requirement in requested()}
    blocks = re.findall(r"^([\w.-]+)==.*\n(?:    --hash.*\n)+((?:    #.*\n)+)", LOCK.read_text(), re.M)
    assert len(blocks) > 100
    stale = [
        name
        for name, via in blocks
        if "lineage-master (pyproject.toml)" in via and canonicalize_name(name) not in direct
    ]
    assert stale == [], "run `make lock`"


def test_every_pin_has_a_hash_and_no_index_is_named() -> None:
    text = LOCK.read_text()
    pins = [line for line in text.splitlines() if re.match(r"\w", line)]
    assert pins
    assert all(line.endswith("\\") for line in pins)
    assert "://" not in text
    assert "--index" not in text


def test_the_environment_is_made_of_the_lock_and_nothing_else() -> None:
    (_, first), (_, second) = DEVELOPMENT
    assert first == ["--requirement", str(LOCK)]
    assert {"--no-deps", "--no-build-isolation"} <= set(second)
