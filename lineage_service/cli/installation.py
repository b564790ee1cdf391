"""What this installation of lineage-master holds, and the command that adds what it lacks.

Reads what pip wrote down (PEP 610: where the package came from) and looks for files; imports nothing of the
service, so that it answers where only the agent is installed.
"""

from __future__ import annotations

import json
import shlex
from importlib import resources
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

NAME = "lineage-master"
#: A module that is there where the extra `service` is installed, and PySpark.
_SERVICE_MODULE, _PYSPARK = "pydantic_settings", "pyspark"


def version() -> str:
    """The installed version, "" for a source folder that is not installed."""
    package = _distribution()
    return package.version if package else ""


def install_command(extra: str = "service") -> str:
    """The pip command that adds an extra to what is installed here, from where that came from."""
    package = _distribution()
    if package is None:
        return f"pip install --editable '.[{extra}]'"
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    if not url.scheme:
        return f"pip install '{NAME}[{extra}]=={package.version}'"
    if url.scheme != "file":
        return f"pip install '{NAME}[{extra}] @ {origin['url']}'"
    path = unquote(url.path)
    editable = "--editable " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{shlex.quote(f'{path}[{extra}]')}"


def contents() -> dict[str, str]:
    """Each part of an installation -> "yes", or "no" with what is absent without it and how to get it."""
    jar = resources.files("spark_agent") / "jvm" / "lineage.jar"
    page = resources.files("lineage_page") / "dist" / "index.html"
    whole = "install a wheel that `make wheel` made"
    return {
        "agent's jar": "yes"
        if jar.is_file()
        else f"no, so DataFrames and SQL have no record lineage: {whole}; in a clone, run `make jar`",
        "web page": "yes" if page.is_file() else f"no: {whole}; in a clone, run `make page`",
        "service": "yes" if find_spec(_SERVICE_MODULE) else f"no, only the agent: {install_command()}",
        "PySpark": "yes" if find_spec(_PYSPARK) else "no: pip install pyspark",
    }


def _distribution() -> Distribution | None:
    try:
        return distribution(NAME)
    except PackageNotFoundError:
        return None
