"""Tables of databases as what a plan reads or writes, without a secret in them."""

from __future__ import annotations

from spark_agent.sql import tables


def test_a_table_of_a_database_says_where_it_is() -> None:
    place = tables.of_database("jdbc:postgresql://app:Hush7@db/shop?password=Hush7", "sales.orders")
    assert place.dataset == {"namespace": "postgres://db:5432", "name": "shop.sales.orders", "format": "jdbc"}
    assert place.description == "jdbc:postgresql://db/shop sales.orders"


def test_the_text_of_a_query_is_not_repeated() -> None:
    place = tables.of_database("jdbc:derby:memory:shop", "(SELECT * FROM t WHERE token = 'Hush7') x")
    assert place.dataset == {"namespace": "jdbc:derby:memory:shop", "name": "a query", "format": "jdbc"}
    assert "Hush7" not in place.description
    assert tables.of_database("jdbc:derby:memory:shop", "app.people").description.endswith(" app.people")
