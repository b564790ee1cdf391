"""The web page: files that talk to the API over HTTP only, built from src/ by `make page`."""

from importlib import resources
from pathlib import Path


def built_folder() -> Path:
    """The folder with index.html and, in `static`, what it loads, wherever the package is installed.

    It is not there where the page is not built.
    """
    return Path(str(resources.files(__name__) / "dist"))
