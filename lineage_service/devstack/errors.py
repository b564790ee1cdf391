"""What can go wrong with the local stack. Each message says what happened and what to do next, for people."""

from __future__ import annotations

from lineage_service.errors import LineageError


class StackError(LineageError):
    """The local stack cannot do what was asked."""


class JavaError(StackError):
    """There is no Java, or it is too old."""


class HomeError(StackError):
    """The home folder cannot be read or written."""


class BusyError(StackError):
    """Another process is starting or stopping the same stack."""


class PortError(StackError):
    """No free port was found."""


class LockError(StackError):
    """A lock file of jars is not readable; only a damaged installation has this."""


class DownloadError(StackError):
    """A jar could not be had."""


class ServerError(StackError):
    """A server did not start or did not become ready; the message ends with its last log lines."""
