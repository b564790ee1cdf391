"""A job that counts rows of a table, which Delta Lake answers from its log: `python delta_counts.py FOLDER`.

It reads FOLDER/table, which `delta_counts.py FOLDER write` makes of FOLDER/rows.csv, (id, p). Each query goes
into a folder of its name below FOLDER/out.
"""

import sys

from pyspark.sql import SparkSession

folder, is_writer = sys.argv[1], sys.argv[2:] == ["write"]
session = SparkSession.builder.appName("counts").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
table = f"delta.`{folder}/table`"
if is_writer:
    session.read.schema("id INT, p INT").csv(f"{folder}/rows.csv").write.format("delta").save(
        f"{folder}/table"
    )
else:
    listed = session.createDataFrame([(7, "a")], "id INT, name STRING")
    for name, query in {
        "count": session.sql(f"SELECT count(*) AS n FROM {table}"),
        "bounds": session.sql(f"SELECT min(id) AS low, max(id) AS high FROM {table}"),
        "subquery": session.sql(f"SELECT id, (SELECT count(*) FROM {table}) AS n FROM {table} WHERE id = 1"),
        "listed": listed,
        "values": session.sql("SELECT a + 1 AS b FROM VALUES (1) AS t (a)"),
        "united": session.sql(
            f"SELECT * FROM VALUES (50) AS v (id) UNION ALL SELECT id FROM {table} WHERE id = 2"
        ),
        "halved": session.sql(
            "SELECT l.name FROM VALUES (3, 'x', 'A') AS l (id, code, name) "
            f"LEFT SEMI JOIN {table} t ON l.id = t.id"
        ),
        "named": session.sql(
            f"WITH c AS (SELECT count(*) AS n FROM {table}) "
            f"SELECT t.id, x.total FROM {table} t CROSS JOIN (SELECT n AS total FROM c) x WHERE t.id = 4"
        ),
        "grouped": session.sql(f"SELECT p, count(*) AS n FROM {table} WHERE p = 1 GROUP BY p"),
        "persisted": session.sql(f"SELECT count(*) AS n, min(p) AS m FROM {table}").cache(),
    }.items():
        query.coalesce(1).write.csv(f"{folder}/out/{name}")
    print(session.table(table).count())
session.stop()
