"""Names of databases' tables, without a secret in them."""

from __future__ import annotations

import pytest

from spark_agent.delivery.database_names import address, table_name, without_secrets


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
    assert address(url) == named
    assert "Hush7" not in address(url)


@pytest.mark.parametrize(
    ("url", "table", "namespace", "name"),
    [
        (
            "jdbc:postgresql://Db/shop?user=app&password=Hush7",
            "sales.t",
            "postgres://db:5432",
            "shop.sales.t",
        ),
        ("jdbc:postgresql://app:Hush7@db:6000/shop", '"sales"."t"', "postgres://db:6000", "shop.sales.t"),
        ("jdbc:mysql://db1:3307,db2/shop?password=Hush7", "`orders`", "mysql://db1:3307", "shop.orders"),
        ("jdbc:mariadb://db/shop", "shop.orders", "mysql://db:3306", "shop.orders"),
        ("jdbc:oracle:thin:app/Hush7@db:1521:shop", "SALES.T", "oracle://db:1521", "shop.SALES.T"),
        ("jdbc:oracle:thin:@//db/shop", "ORDERS", "oracle://db:1521", "shop.ORDERS"),
        (
            "jdbc:sqlserver://db;databaseName=shop;password=Hush7",
            "[dbo].[t]",
            "mssql://db:1433",
            "shop.dbo.t",
        ),
        ("jdbc:sqlserver://db:99;password=Hush7", "dbo.orders", "mssql://db:99", "dbo.orders"),
        ("jdbc:db2://[::1]/shop:user=app;password=Hush7;", "orders", "db2://[::1]:50000", "shop.orders"),
        ("jdbc:teradata://db/USER=app,PASSWORD=Hush7,DATABASE=shop", "t", "teradata://db:1025", "shop.t"),
        ("jdbc:mysql://(host=db,user=app,password=Hush7)/shop", "orders", "jdbc:mysql", "orders"),
        ("jdbc:derby:memory:shop;user=app;password=Hush7", '"APP"."t"', "jdbc:derby:memory:shop", "APP.t"),
        ("jdbc:sqlite:/data/shop.db", "orders", "jdbc:sqlite:/data/shop.db", "orders"),
        ("Hush7", "orders", "jdbc", "orders"),
    ],
)
def test_a_table_is_named_as_openlineage_does(url: str, table: str, namespace: str, name: str) -> None:
    assert table_name(address(url), url, table) == (namespace, name)
    assert "Hush7" not in namespace + name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "No suitable driver found for jdbc:derby:memory:shop;user=app;password=Hush7",
            "No suitable driver found for jdbc:derby:memory:shop",
        ),
        (
            "Failed JDBC 'jdbc:postgresql://app:Hush7@db/shop?password=Hush7' on the operation: connect.",
            "Failed JDBC 'jdbc:postgresql://db/shop' on the operation: connect.",
        ),
        ("(jdbc:mysql://db/shop?user=a&password=Hush7)", "(jdbc:mysql://db/shop"),
        ("Login failed: user=app; password=Hush7; host=db", "Login failed: user=app; password=…; host=db"),
        ("it ended well", "it ended well"),
    ],
)
def test_a_text_that_quotes_an_address_keeps_no_secret(text: str, told: str) -> None:
    assert without_secrets(text) == told
    assert "Hush7" not in told
