"""The web page: static files that talk to the API over HTTP only."""

from importlib import resources
from pathlib import Path


def static_folder() -> Path:
    """The folder with index.html and what it loads, wherever the package is installed."""
    return Path(str(resources.files(__name__) / "static"))
