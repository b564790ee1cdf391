"""Access control: the token, the host names of the service, and the sites whose pages may read.

Every path requires the token, except those that show nothing of any lineage: the files of the page, the
documentation and `/healthz`. The token is compared in constant time and never repeated. Host names are
checked on loopback addresses, where only this machine can connect: the one attack left there is a page of a
site that resolves its own name to 127.0.0.1 (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Receive, Scope, Send

from lineage_api.problems import refusal
from lineage_service.errors import LineageError

if TYPE_CHECKING:
    from lineage_service.settings import Settings

__all__ = ["OPEN_PATHS", "TOKEN_FILE", "Access", "AccessError", "AuthMiddleware", "from_settings"]

#: These show nothing of any lineage; what begins with /static/ belongs to the page.
OPEN_PATHS = frozenset({"/", "/healthz", "/docs", "/openapi.json"})
_OPEN_FOLDER = "/static/"
#: In the home folder: the generated token of a service that other machines can reach.
TOKEN_FILE = "api.token"

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}")  # RFC 6750, section 2.1
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_CHALLENGE = 'Bearer realm="lineage"'


class AccessError(LineageError):
    """A setting of the access control is invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who has access. `token` None: everybody. `hosts` None: by any name. `origins`: sites whose pages read.

    The token is its SHA-256, so that printing this object does not show it.
    """

    token: bytes | None = None
    hosts: frozenset[str] | None = None
    origins: tuple[str, ...] = ()

    @classmethod
    def of(cls, token: str | None, hosts: Collection[str] | None = None, *origins: str) -> Access:
        return cls(
            token=None if token is None else _digest(token.encode()),
            hosts=None if hosts is None else frozenset(hosts),
            origins=origins,
        )


def from_settings(settings: Settings, address: str) -> tuple[Access, Path | None]:
    """The access to a service that listens on `address`, and the file with its token if there is one.

    Raises AccessError.
    """
    is_local = ipaddress.ip_address(address).is_loopback
    extra_hosts = _names(settings.api_hosts)
    hosts = _LOOPBACK_NAMES | {address} | extra_hosts if is_local or extra_hosts else None
    origins = _origins(settings.api_cors_origins)
    if settings.api_auth == "off":
        return Access.of(None, hosts, *origins), None
    token = _configured_token(settings)
    if token is None and (not is_local or settings.api_auth == "on"):
        file = settings.home.absolute() / TOKEN_FILE
        return Access.of(_generated_token(file), hosts, *origins), file
    return Access.of(token, hosts, *origins), None


def _configured_token(settings: Settings) -> str | None:
    path, token = settings.api_token_file, settings.api_token.get_secret_value()
    source = "--api-token or LINEAGE_API_TOKEN"
    if path:
        source = f"the first line of {path} (--api-token-file)"
        token = _first_line(Path(path), "--api-token-file")
    if not token and not path:
        return None
    if not _TOKEN.fullmatch(token):
        raise AccessError(
            f"{source} is not a token: use 16 to 512 of the characters A-Z a-z 0-9 . _ ~ + / = -, for "
            "example the output of `openssl rand -hex 32`"
        )
    return token


def _generated_token(file: Path) -> str:
    """The token in the file, which is created if it does not exist; only its owner can read it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            file.touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            file.chmod(0o600)
        else:
            file.write_text(secrets.token_urlsafe(32) + "\n", encoding="utf-8")
    except OSError as error:
        raise AccessError(
            f"{file} cannot be written ({error.strerror}), and other machines can reach this service: set a "
            "token with LINEAGE_API_TOKEN_FILE"
        ) from None
    token = _first_line(file, "the token of an earlier start")
    if not _TOKEN.fullmatch(token):
        raise AccessError(f"{file} does not contain a token: remove it, and the next start writes a new one")
    return token


def _first_line(file: Path, what: str) -> str:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise AccessError(f"{what}: {file} cannot be read: {reason}") from None
    return lines[0].strip() if lines else ""


def _names(text: str) -> frozenset[str]:
    names = frozenset(name.strip().lower().strip("[]") for name in text.split(",") if name.strip())
    for name in sorted(names):
        if not _HOST.fullmatch(name):
            raise AccessError(f"--api-hosts: {name!r} is not a host name (without scheme, port and *)")
    return names


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(origin.strip().lower() for origin in text.split(",") if origin.strip())
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise AccessError(
                f"--api-cors-origins: {origin!r} is not an origin: write https://host or https://host:port "
                "without a path, and name each site: there is no *"
            )
    return origins


class AuthMiddleware:
    """ASGI middleware that checks host name and token."""

    def __init__(self, app: ASGIApp, *, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        violation = self._violation(scope) if scope["type"] == "http" else None
        if violation is None:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, *violation)(scope, receive, send)

    def _violation(self, scope: Scope) -> tuple[HTTPStatus, str, dict[str, str]] | None:
        if self._access.hosts is not None:
            host = _header(scope, b"host").decode("latin-1")
            if _host_name(host) not in self._access.hosts:
                return (
                    HTTPStatus.MISDIRECTED_REQUEST,
                    "This service does not answer to that host name. Add it to LINEAGE_API_HOSTS.",
                    {},
                )
        path = scope["path"]
        if self._access.token is None or path in OPEN_PATHS or path.startswith(_OPEN_FOLDER):
            return None
        token = _token_of(scope)
        if token is None:
            detail = "This service requires its token: `Authorization: Bearer TOKEN` or `X-API-Key: TOKEN`."
            return HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": _CHALLENGE}
        if not hmac.compare_digest(_digest(token), self._access.token):
            challenge = f'{_CHALLENGE}, error="invalid_token"'
            return HTTPStatus.UNAUTHORIZED, "The token is invalid.", {"WWW-Authenticate": challenge}
        return None


def _token_of(scope: Scope) -> bytes | None:
    """The token of a request: that of Authorization, else that of X-API-Key."""
    scheme, _, token = _header(scope, b"authorization").partition(b" ")
    if scheme.lower() == b"bearer" and token.strip():
        return token.strip()
    return _header(scope, b"x-api-key").strip() or None


def _header(scope: Scope, name: bytes) -> bytes:
    return next((bytes(value) for header, value in scope["headers"] if header == name), b"")


def _host_name(host: str) -> str:
    """Without its port: `localhost:8080`, `[::1]:8080`."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].removesuffix(".")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
