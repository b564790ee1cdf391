"""What a table is called in Spark's catalog, by OpenLineage's rules of symlinks.

Asks Spark's settings only, no metastore. A table of a Hive metastore is named by that, another one by the
folder of the warehouse.
"""

from __future__ import annotations

import re
from typing import Any

from spark_agent.contract.dataset_names import one_path
from spark_agent.delivery.database_names import address
from spark_agent.delivery.log import logger
from spark_agent.sql.types import Plan

__all__ = ["catalog_namespace", "name_in_catalog", "symlinks", "symlinks_in", "symlinks_of"]

#: Who logs in, as an address has it before the machine.
_LOGIN = re.compile(r"://[^/?#]*@")
_HIVE_URIS = ("spark.sql.hive.metastore.uris", "hive.metastore.uris")


def symlinks_of(plan: Plan, table: Any) -> list[dict[str, str]]:
    """Of a CatalogTable; `plan` is one of its session. Never raises."""
    try:
        identifier = table.identifier()
        database = identifier.database()
        # Without one it is a view of the session.
        return symlinks(plan, f"{database.get()}.{identifier.table()}") if database.isDefined() else []
    except Exception:  # noqa: BLE001 - a name is never worth a query
        logger.debug("the name of a table is not known", exc_info=True)
        return []


def symlinks(plan: Plan, table: str) -> list[dict[str, str]]:
    """The field `symlinks` of a dataset that is a table, `database.name`. Never raises."""
    try:
        return [{"namespace": catalog_namespace(*_settings(plan)), "name": table, "type": "TABLE"}]
    except Exception:  # noqa: BLE001 - a name is never worth a query
        logger.debug("the name of a catalog is not known", exc_info=True)
        return []


def name_in_catalog(relation: Plan, name: str) -> str:
    """What a table is called with its catalog; `relation` is one of version 2, `name` what it says itself.

    Never raises.
    """
    try:
        catalog, conf = relation.catalog(), relation.conf()
        if "/" in name or not catalog.isDefined() or _is_catalog(conf, name.partition(".")[0]):
            return name
        catalog_name = str(catalog.get().name())
        return f"{catalog_name}.{name}" if _is_catalog(conf, catalog_name) else name
    except Exception:  # noqa: BLE001 - a name is never worth a query
        logger.debug("the name of a catalog is not known", exc_info=True)
        return name


def symlinks_in(plan: Plan, name: str) -> list[dict[str, str]]:
    """The same of a table of a catalog of Iceberg, `catalog.namespace.name`. Never raises.

    The namespace is what the catalog is asked at, or its warehouse.
    """
    try:
        catalog, _, table = name.partition(".")
        conf, prefix = plan.conf(), f"spark.sql.catalog.{catalog}"
        place = conf.getConfString(f"{prefix}.uri", None) or conf.getConfString(f"{prefix}.warehouse", None)
        if not table or not _is_catalog(conf, catalog) or place is None:
            return []
        place = _without_login(str(place))
        metastores, warehouse = (place, "") if place.startswith("thrift:") else ("", place)
        return [{"namespace": catalog_namespace(metastores, warehouse), "name": table, "type": "TABLE"}]
    except Exception:  # noqa: BLE001 - a name is never worth a query
        logger.debug("the name of a catalog is not known", exc_info=True)
        return []


def _without_login(place: str) -> str:
    """The address of a catalog without who logs in there, which may be a secret."""
    return address(place) if place.startswith("jdbc:") else _LOGIN.sub("://", place)


def _is_catalog(conf: Any, name: str) -> bool:
    return conf.getConfString(f"spark.sql.catalog.{name}", None) is not None


def _settings(plan: Plan) -> tuple[str, str]:
    """(addresses of a metastore, folder of the warehouse) of the session."""
    conf = plan.conf()
    warehouse = str(conf.warehousePath())
    if str(conf.getConfString("spark.sql.catalogImplementation", "in-memory")) != "hive":
        return "", warehouse
    uris = [conf.getConfString(name, "") for name in _HIVE_URIS]
    return str(next(filter(None, uris), "")), warehouse


def catalog_namespace(metastores: str, warehouse: str) -> str:
    """Of the first metastore, `thrift://host:port,...`; else of the warehouse. Pure."""
    _, is_address, address = metastores.partition(",")[0].strip().partition("://")
    if is_address and address:
        return f"hive://{address.rstrip('/')}"
    if warehouse.startswith("/"):
        warehouse = f"file:{warehouse}"
    if warehouse.startswith("file:"):
        return "file:/" + warehouse[len("file:") :].strip("/")
    return one_path(warehouse).rstrip("/")
