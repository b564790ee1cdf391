"""Names of databases' tables, without a secret in them."""

from __future__ import annotations

import pytest

from spark_agent.sql import tables


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("jdbc:derby:memory:shop;create=true;user=app;password=Hush7", "jdbc:derby:memory:shop"),
        ("jdbc:postgresql://db:5432/shop?user=app&password=Hush7", "jdbc:postgresql://db:5432/shop"),
        ("jdbc:postgresql://app:Hush7@db:5432/shop", "jdbc:postgresql://db:5432/shop"),
        ("jdbc:mysql://app:Hush7@db1:3306,app:Hush7@db2/shop", "jdbc:mysql://db2/shop"),
        ("jdbc:mysql://(host=db,user=app,password=Hush7)/shop", "jdbc:mysql"),
        ("jdbc:oracle:thin:app/Hush7@//db:1521/shop", "jdbc:oracle://db:1521/shop"),
        ("jdbc:oracle:thin:app/Hush7@db:1521:shop", "jdbc:oracle://db:1521:shop"),
        ("jdbc:db2://db:50000/shop:user=app;password=Hush7;", "jdbc:db2://db:50000/shop"),
        ("jdbc:teradata://db/USER=app,PASSWORD=Hush7", "jdbc:teradata://db"),
        ("jdbc:sqlserver://db:1433;databaseName=shop;password=Hush7", "jdbc:sqlserver://db:1433"),
        ("jdbc:postgresql://app:Hu?sh7@db/shop", "jdbc:postgresql://db/shop"),
        ("jdbc:postgresql://app:Hu/sh7@db/shop", "jdbc:postgresql"),
        ("jdbc:postgresql://db/shop?user=a@b&password=Hush7", "jdbc:postgresql://db/shop"),
        ("jdbc:sqlite:/data/shop.db", "jdbc:sqlite:/data/shop.db"),
        ("Hush7", "jdbc"),
    ],
)
def test_the_address_of_a_database_has_no_secret(url: str, named: str) -> None:
    assert tables.address(url) == named
    assert "Hush7" not in tables.address(url)


def test_the_text_of_a_query_is_not_repeated() -> None:
    place = tables.of_database("jdbc:derby:memory:shop", "(SELECT * FROM t WHERE token = 'Hush7') x")
    assert place.dataset == {"namespace": "jdbc:derby:memory:shop", "name": "a query", "format": "jdbc"}
    assert "Hush7" not in place.description
    assert tables.of_database("jdbc:derby:memory:shop", "app.people").description.endswith(" app.people")
