"""Addresses and tables of databases (JDBC), without a secret in them.

Pure. A table is named as in OpenLineage: the server as namespace, and `database.schema.table`. Promises that
no user, no password and no option is in a name, nor in a text that quotes an address.
"""

from __future__ import annotations

import re

__all__ = ["address", "table_name", "unquoted", "without_secrets"]

#: Where the options of an address begin.
_OPTIONS = re.compile(r"[;?(].*", re.DOTALL)
#: Options that stand where others have the name of the database.
_BARE_OPTIONS = re.compile(r"[:/,&][^:/,&=]*=.*", re.DOTALL)
_SCHEME = re.compile(r"jdbc:[A-Za-z0-9+.-]+:")
#: Machines and the name of a database. What looks otherwise may hold who logs in, and is left out.
_HOST = r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?"
_MACHINES = re.compile(rf"{_HOST}(?:,{_HOST})*(?:[/:][\w./-]*)?")
#: What JDBC calls a database -> what OpenLineage calls it, and the port where the address says none.
_SERVERS = {
    "db2": ("db2", 50000),
    "mariadb": ("mysql", 3306),
    "mysql": ("mysql", 3306),
    "oracle": ("oracle", 1521),
    "postgresql": ("postgres", 5432),
    "redshift": ("redshift", 5439),
    "sqlserver": ("mssql", 1433),
    "teradata": ("teradata", 1025),
    "trino": ("trino", 8080),
}
_HOST = r"(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\])(?::(?P<port>[0-9]+))?(?:,[^/]*)?"
_ADDRESS = re.compile(rf"jdbc:(?P<server>[a-z0-9]+)://{_HOST}(?:[/:](?P<database>[\w.-]+))?", re.IGNORECASE)
#: Where the name of the database is among the options.
_DATABASE = re.compile(r"[;?&,/](?:databaseName|database)=([\w.-]+)(?=[;?&,]|$)", re.IGNORECASE)
#: An address within a text, as far as it can be told from that.
_QUOTED = re.compile(r"jdbc:[^\s'\"<>\[\]]+[^\s'\"<>\[\],.]")
_PASSWORD = re.compile(r"\b((?:password|passwd|pwd)\s*=\s*)[^\s;&,)]+", re.IGNORECASE)
_QUOTES = re.compile(r"[\"`\[\]]")


def address(url: str) -> str:
    """The address of a database without what may be a secret: no user, no password, no option."""
    scheme = _SCHEME.match(url)
    if scheme is None:
        return "jdbc"
    rest = url[scheme.end() :]
    is_of_machines = rest.startswith("//")
    if is_of_machines:
        login, at, _ = rest[2:].partition("/")[0].rpartition("@")
        rest = rest[2 + len(login) + len(at) :]
    elif "@" in _OPTIONS.sub("", rest):
        is_of_machines, rest = True, rest.rpartition("@")[2].removeprefix("//")
    rest = _BARE_OPTIONS.sub("", _OPTIONS.sub("", rest)).rstrip("/:")
    if is_of_machines:
        rest = f"//{rest}" if _MACHINES.fullmatch(rest) else ""
    return (scheme[0] + rest).rstrip("/:")


def unquoted(table: str) -> str:
    """A name of a table without the quotes of SQL."""
    return _QUOTES.sub("", table)


def table_name(address: str, url: str, table: str) -> tuple[str, str]:
    """(namespace, name) of a table. `address` is that of `url` without what may be a secret.

    An address that names no server of a known kind is a namespace as it is.
    """
    table = unquoted(table)
    place = _ADDRESS.fullmatch(address)
    server, port = _SERVERS.get(place["server"].lower() if place else "", ("", 0))
    if place is None or not server:
        return address, table
    among_options = _DATABASE.search(url)
    database = place["database"] or (among_options[1] if among_options else "")
    if database and not table.lower().startswith(f"{database.lower()}."):
        table = f"{database}.{table}"
    return f"{server}://{place['host'].lower()}:{place['port'] or port}", table


def without_secrets(text: str) -> str:
    """A text, such as the message of an error, with its addresses of databases as `address` has them."""
    text = _QUOTED.sub(lambda quoted: address(quoted[0]), text)
    return _PASSWORD.sub(lambda option: f"{option[1]}…", text)
