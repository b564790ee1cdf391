from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_agent.sql.database_keys import DatabaseKeys

OPTIONS = SimpleNamespace(url=lambda: "jdbc:h2:mem:", tableOrQuery=lambda: "t")


class Database:
    """What a database says of its table, one answer after the other; the last one for ever."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), 0

    def of(self, options: Any, within_ms: int) -> str:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


class Columns:
    """A Catalyst whose expressions are the names of columns."""

    def __init__(self, *, is_case_sensitive: bool = False) -> None:
        self.is_case_sensitive = is_case_sensitive

    def conf(self, plan: Any, name: str, default: str) -> str:
        return str(self.is_case_sensitive).lower() if name == "spark.sql.caseSensitive" else default

    def names(self, columns: list[str]) -> list[str]:
        return columns

    items = names

    def types(self, columns: list[str]) -> list[str]:
        return ["string" for _ in columns]

    def text(self, column: str, time_zone: str | None = None) -> str:
        return column


def keys(database: Database, columns: Columns | None = None, *, is_on: bool = True) -> DatabaseKeys:
    catalyst: Any = columns or Columns()
    jvm: Any = SimpleNamespace(table_keys=database)
    return DatabaseKeys(catalyst, jvm, is_on=is_on)


def query(*columns: str) -> Any:
    return SimpleNamespace(output=lambda: list(columns))


def test_no_database_is_asked_where_keys_are_off() -> None:
    database = Database('{"columns": ["id"]}')
    assert keys(database, is_on=False).names_of_written(OPTIONS, query("id")) is None
    assert database.asked == 0


def test_a_table_that_was_made_anew_is_asked_again() -> None:
    database = Database('{"columns": ["id"]}', '{"reason": "it is a table without a primary key, or a view"}')
    asked = keys(database)
    first, second = (asked.names_of_written(OPTIONS, query("id", "name")) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.columns, first.texts) == (["id"], ["id"])
    assert not second.texts
    assert "without a primary key" in second.reason


def test_what_goes_wrong_costs_the_names_alone() -> None:
    assert keys(Database("no JSON")).names_of_written(OPTIONS, query("id")) is None


@given(
    st.lists(st.sampled_from(["id", "ID", "Id", "part", "PART", "name"]), unique=True),
    st.lists(st.sampled_from(["id", "ID", "part"]), min_size=1, max_size=2, unique=True),
    st.booleans(),
)
def test_each_column_of_a_key_is_the_one_column_of_its_name(
    written: list[str], key: list[str], is_case_sensitive: bool
) -> None:
    answer = '{"columns": [' + ", ".join(f'"{name}"' for name in key) + "]}"
    columns = Columns(is_case_sensitive=is_case_sensitive)
    names = keys(Database(answer), columns).names_of_written(OPTIONS, query(*written))
    assert names is not None

    def is_of(column: str, name: str) -> bool:
        return column == name if is_case_sensitive else column.lower() == name.lower()

    fitting = [[column for column in written if is_of(column, name)] for name in key]
    expected = [of_name[0] for of_name in fitting] if all(len(of_name) == 1 for of_name in fitting) else []
    assert list(names.texts) == expected
