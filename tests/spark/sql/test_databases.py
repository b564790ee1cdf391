"""Tables of a database: their records are named by the primary key of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession, functions
from pyspark.sql.datasource import DataSource, DataSourceReader

from lineage_service.queries import RecordQuery
from tests.support.spark.application import Application, messages_of, run_application

SECRET = "Hush9-in-the-url"
DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
URL = f"jdbc:derby:memory:keys;create=true;user=app;password={SECRET}"
CATALOG = "spark_sql_catalog_db"
CONF: Any = {
    CATALOG: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    f"{CATALOG}_url": URL,
    f"{CATALOG}_driver": DRIVER,
}
PEOPLE = [(number, f"p{number}", number % 5) for number in range(0, 160, 2)]
PARTS = [(order, part, order * 10) for order in range(6) for part in ("a", "b,c", "d\\e", "é")]
STATEMENTS = (
    "create table people (id int primary key, name varchar(20), town int)",
    'create table parts ("order" int not null, part varchar(20) not null, amount int, '
    'primary key (part, "order"))',
    "create table log (id int, name varchar(20))",
    "create view men as select id, name from people",
    "create table copies (id int primary key, name varchar(20), note varchar(20) default 'none')",
    "create table emptied (name varchar(20), id int primary key)",
    "insert into emptied values ('gone', 1)",
    "create table made_anew (id int primary key, name varchar(20))",
    "create table numbered (id int generated always as identity primary key, name varchar(20))",
    'create table pairs (part varchar(20), "order" int, primary key ("order", part))',
    *(f"insert into people values ({number}, '{name}', {town})" for number, name, town in PEOPLE),
    *(f"insert into parts values ({order}, '{part}', {amount})" for order, part, amount in PARTS),
    "insert into log values (1, 'x'), (1, 'x')",
)
TOWNS = [0, 1, 2, 3]


class Numbers(DataSource):
    """A source of version 2 in Python."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "number int"

    def reader(self, schema: Any) -> DataSourceReader:
        return NumbersReader()


class NumbersReader(DataSourceReader):
    def read(self, partition: Any) -> Any:
        return iter([(1,), (2,)])


def job(context: SparkContext, folder: Path) -> list[str]:
    spark = SparkSession.builder.getOrCreate()
    jvm: Any = context._jvm
    connection = jvm.org.apache.derby.iapi.jdbc.AutoloadedDriver().connect(URL, jvm.java.util.Properties())
    statement = connection.createStatement()
    for text in STATEMENTS:
        statement.execute(text)
    connection.close()

    def table(name: str, **options: str) -> Any:
        return (
            spark.read.format("jdbc")
            .options(url=URL, driver=DRIVER, **options)
            .option("dbtable", name)
            .load()
        )

    bounds = {"partitionColumn": "ID", "lowerBound": "0", "upperBound": "160", "numPartitions": "3"}
    people = table("people", **bounds)
    towns = spark.createDataFrame([(town,) for town in TOWNS], "town int")
    people.where("id > 9").join(towns, "town").select("id", "name").write.csv(f"{folder}/joined")
    people.groupBy("town").agg(functions.max("id")).write.csv(f"{folder}/grouped")
    table('"APP"."PARTS"').selectExpr("`order`", "part", "amount").write.csv(f"{folder}/parts")
    people.select("name").write.csv(f"{folder}/unnamed")
    table("log").write.csv(f"{folder}/log")
    table("men").write.csv(f"{folder}/men")
    table("(select id from people where town = 1) of_town").write.csv(f"{folder}/of_query")
    spark.table("db.APP.PEOPLE").where("town = 2 and id > 30").write.csv(f"{folder}/of_catalog")
    spark.dataSource.register(Numbers)
    spark.read.format("numbers").load().write.csv(f"{folder}/of_python")
    write(people, table("parts"), spark)
    half = people.where("id < 80").select("id")
    half.union(table("people").where("id >= 80").select("id")).coalesce(1).write.csv(f"{folder}/united")
    return reasons(context)


def write(people: Any, parts: Any, spark: SparkSession) -> None:
    """Rows into tables of the database."""

    def save(rows: Any, name: str, mode: str = "append", **options: str) -> None:
        rows.write.format("jdbc").options(url=URL, driver=DRIVER, dbtable=name, **options).mode(mode).save()

    few = people.where("id < 30")
    save(few.selectExpr("name", "id"), "copies")
    few.where("id > 20").select("id", "name").write.mode("overwrite").option("truncate", "true").jdbc(
        URL, "emptied", properties={"driver": DRIVER}
    )
    save(few.select("id", "name"), "made_anew", "overwrite")
    save(few.select("name"), "numbered")
    save(parts.selectExpr("part", "`order`"), "pairs")
    people.where("id > 140").selectExpr("id ID", "name NAME", "'x' NOTE").writeTo("db.APP.COPIES").append()


def reasons(context: SparkContext) -> list[str]:
    """What is said of databases that cannot be asked, or not in time."""
    jvm: Any = context._jvm
    keys = jvm.lineagemaster.plan.TableKeys()
    no_options = getattr(jvm.scala.collection.immutable, "Map$").__getattr__("MODULE$").empty()
    options = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions
    missing = options(f"jdbc:derby:memory:nowhere;password={SECRET}", "people", no_options)
    connection = jvm.org.apache.derby.iapi.jdbc.AutoloadedDriver().connect(URL, jvm.java.util.Properties())
    connection.setAutoCommit(False)
    connection.createStatement().execute("alter table people add column waiting int")
    try:  # until that is committed, who asks for the keys of the table has to wait
        late = keys.of(options(URL, "people", no_options), 1_000)
    finally:
        connection.rollback()
        connection.close()
    return [keys.of(missing, 10_000), late]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("databases")


@pytest.fixture(scope="module")
def application(kafka: Any, folder: Path) -> Application:
    said, application = run_application(
        kafka.bootstrap_servers, folder / "store", lambda context: job(context, folder), **CONF
    )
    assert application is not None
    assert SECRET not in repr(said)
    assert "could not be asked for its primary key (SQLException)" in said[0]
    assert "did not say within 1 s" in said[1]
    assert application.gaps == ()
    return application


def rows(folder: Path) -> list[tuple[Path, int, list[str]]]:
    return [
        (path, row, line.split(","))
        for path in sorted(folder.glob("part-*.csv"))
        for row, line in enumerate(path.read_text().splitlines())
    ]


def keys_of(application: Application, path: Path, row: int) -> set[str | None]:
    """The keys of the records of databases that a row of an output is traced to."""
    trace = application.trace(direction="backward", path=str(path), row=row)
    assert trace.exact
    return {record.key for node in trace.nodes if node.name.endswith("jdbc") for record in node.records}


def source_of(application: Application, folder: Path, kind: str = "Scan jdbc") -> Any:
    """The node of the database that an output was made of."""
    path, row, _ = rows(folder)[0]
    trace = application.trace(direction="backward", path=str(path), row=row)
    graph = application.questions.graph(application.application_id)
    ids = {node.node_id for node in trace.nodes if node.kind == "source"}
    [source] = [
        node for node in graph.nodes if node.node_id in ids and kind in f"{node.name} {node.description}"
    ]
    return source


def test_a_row_is_traced_to_rows_of_a_table_by_their_primary_key(
    application: Application, folder: Path
) -> None:
    joined = rows(folder / "joined")
    assert sorted(int(columns[0]) for _, _, columns in joined) == [
        number for number, _, town in PEOPLE if number > 9 and town in TOWNS
    ]
    for path, row, (number, _) in joined[::7]:
        assert keys_of(application, path, row) == {f"ID={number}"}


def test_a_row_of_a_group_is_traced_to_all_rows_of_the_group(application: Application, folder: Path) -> None:
    for path, row, (town, _) in rows(folder / "grouped"):
        of_town = {f"ID={number}" for number, _, at in PEOPLE if at == int(town)}
        assert keys_of(application, path, row) == of_town


def test_a_key_of_several_columns_names_them_in_the_order_of_the_key(
    application: Application, folder: Path
) -> None:
    written = [
        line for path in sorted((folder / "parts").glob("part-*")) for line in path.read_text().splitlines()
    ]
    assert len(written) == len(PARTS)
    [source] = nodes_of(application, "PARTS")
    records = application.questions.records(application.application_id, records_of(source)).records
    assert sorted(str(record.key) for record in records) == sorted(
        "PART={},order={}".format(part.replace("\\", "\\\\").replace(",", "\\,"), order)
        for order, part, _ in PARTS
    )


def test_a_row_of_a_table_is_traced_forward_by_its_key(application: Application, folder: Path) -> None:
    [sink] = [one for one in application.sinks() if one.description == str(folder / "joined")]
    for number in (42, 44, 138):
        source = source_of(application, folder / "joined")
        trace = application.trace(direction="forward", node=source.node_id, key=f"ID={number}")
        reached = {
            (Path(record.source.path), record.source.row)
            for node in trace.nodes
            if node.node_id == sink.node_id
            for record in node.records
            if record.source is not None
        }
        expected = {
            (path, row) for path, row, columns in rows(folder / "joined") if columns[0] == str(number)
        }
        assert reached == expected


def test_rows_of_a_union_in_one_task_are_named_too(application: Application, folder: Path) -> None:
    united = rows(folder / "united")
    assert len(united) == len(PEOPLE)
    for path, row, (number,) in united[::11]:
        assert keys_of(application, path, row) == {f"ID={number}"}


def test_a_table_of_a_catalog_has_named_rows(application: Application, folder: Path) -> None:
    for path, row, columns in rows(folder / "of_catalog"):
        trace = application.trace(direction="backward", path=str(path), row=row)
        [source] = [node for node in trace.nodes if node.kind == "source"]
        assert [record.key for record in source.records] == [f"ID={columns[0]}"]


def written_to(application: Application, name: str, at: int = 0) -> Any:
    """The node of the rows that were written into a table, the `at`-th one."""
    nodes = [one for one in application.sinks() if one.description.upper().endswith(f" {name}".upper())]
    return sorted(nodes, key=lambda node: int(node.node_id.rpartition("#")[2]))[at]


def records_by_key(application: Application, node: Any) -> dict[str | None, Any]:
    records = application.questions.records(application.application_id, records_of(node)).records
    assert len({record.key for record in records}) == len(records)
    return {record.key: record for record in records}


def test_rows_that_are_written_have_the_primary_key_of_their_table(application: Application) -> None:
    few = [number for number, _, _ in PEOPLE if number < 30]
    assert records_by_key(application, written_to(application, "copies")).keys() == {
        f"ID={number}" for number in few
    }
    assert records_by_key(application, written_to(application, "emptied")).keys() == {
        f"ID={number}" for number in few if number > 20
    }
    pairs = records_by_key(application, written_to(application, "pairs"))
    assert pairs.keys() == {
        "order={},PART={}".format(order, part.replace("\\", "\\\\").replace(",", "\\,"))
        for order, part, _ in PARTS
    }


def test_a_row_that_was_written_is_traced_back_by_its_key(application: Application) -> None:
    for name, numbers in (("copies", (0, 28)), ("emptied", (22,))):
        for number in numbers:
            trace = application.trace(
                direction="backward", node=written_to(application, name).node_id, key=f"ID={number}"
            )
            assert trace.complete
            assert trace.exact
            [source] = [node for node in trace.nodes if node.kind == "source"]
            assert [record.key for record in source.records] == [f"ID={number}"]


def test_rows_that_a_table_of_a_catalog_gets_are_named_too(application: Application) -> None:
    records = records_by_key(application, written_to(application, "APP.COPIES"))
    assert records.keys() == {f"ID={number}" for number, _, _ in PEOPLE if number > 140}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("copies", "a query that reads the row is not linked with it"),
        ("made_anew", "known by their places in what was written: it is a table without a primary key"),
        ("numbered", "the query does not write the primary key (ID)"),
    ],
)
def test_what_names_rows_that_are_written_is_said(application: Application, name: str, reason: str) -> None:
    node = written_to(application, name)
    assert reason in node.reason
    assert node.exact
    if name != "copies":
        records = application.questions.records(application.application_id, records_of(node)).records
        assert {record.key for record in records} == {None}


@pytest.mark.parametrize(
    ("name", "reason", "is_exact"),
    [
        ("unnamed", "the query does not read the primary key (ID)", True),
        ("log", "a table without a primary key, or a view", True),
        ("men", "a table without a primary key, or a view", True),
        ("of_query", "computed by the database itself", False),
        ("joined", "which may have been changed since", True),
    ],
)
def test_what_names_records_is_said(
    application: Application, folder: Path, name: str, reason: str, is_exact: bool
) -> None:
    path, row, _ = rows(folder / name)[0]
    trace = application.trace(direction="backward", path=str(path), row=row)
    [source] = [node for node in trace.nodes if node.kind == "source" and node.name == "Scan jdbc"]
    assert reason in source.reason
    assert trace.exact is is_exact


def test_a_source_of_version_2_is_named(application: Application, folder: Path) -> None:
    source = source_of(application, folder / "of_python", kind="numbers")
    assert source.dataset.format == "datasource"
    assert "numbers" in source.dataset.name
    assert source.exact
    source = source_of(application, folder / "of_catalog", kind="PEOPLE")
    assert (source.dataset.format, source.dataset.name) == ("jdbc", "APP.PEOPLE")


def test_no_message_has_the_password(application: Application, kafka: Any) -> None:
    for topic in application.topics.values():
        assert not any(SECRET.encode() in one for one in messages_of(kafka.bootstrap_servers, topic))


def nodes_of(application: Application, text: str) -> list[Any]:
    graph = application.questions.graph(application.application_id)
    return [node for node in graph.nodes if node.kind == "source" and text in node.description]


def records_of(node: Any) -> Any:
    return RecordQuery(node=node.node_id, limit=1000)
