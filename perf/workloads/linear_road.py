"""Reports of cars on an expressway: positions, traffic, accidents, tolls and classes of areas at the last of
them.

    spark-submit perf/workloads/linear_road.py REPORTS OUTPUT

REPORTS has the lines of the Linear Road benchmark (Arasu et al., VLDB 2004), of the last five minutes at
least. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

SEGMENTS, DIRECTIONS, AREA = 50, 2, 5
SCHEMA = (
    "type INT, time INT, car INT, speed INT, xway INT, lane INT, direction INT, segment INT, position INT, "
    "query INT, start INT, end INT, day INT, minute INT, date INT"
)
STEPS = {
    "positions": "SELECT car, segment + 1 AS mile FROM now",
    "traffic": """
        SELECT place, ifnull(speed, 60D) AS speed, ifnull(cars, 0) AS cars FROM
            (SELECT explode(sequence(0, {places} - 1)) AS place)
            LEFT JOIN (SELECT place, avg(speed) AS speed FROM recent WHERE time > last - 300 GROUP BY place)
                USING (place)
            LEFT JOIN (SELECT place, count(*) AS cars FROM now GROUP BY place) USING (place)
    """,
    "accidents": """
        SELECT place, sum(cars) AS cars FROM (
            SELECT place, position, count(*) AS cars FROM (
                SELECT car, place, position FROM recent WHERE time > last - 120
                GROUP BY car, place, position HAVING count(*) = 4
            ) GROUP BY place, position HAVING count(*) > 1
        ) GROUP BY place
    """,
    "tolls": """
        SELECT place, 2 * (cars - 50) * (cars - 50) AS toll FROM traffic
        WHERE cars > 50 AND speed < 40 AND NOT EXISTS (
            SELECT 1 FROM accidents
            WHERE accidents.place BETWEEN traffic.place AND traffic.place + 5
                AND accidents.place div {segments} = traffic.place div {segments}
        )
    """,
    "areas": """
        SELECT area, CASE WHEN mean < 1 THEN 1 WHEN mean < 100 THEN 2 WHEN mean < 400 THEN 3 ELSE 4 END
        FROM (
            SELECT traffic.place div {area} AS area, sum(ifnull(toll, 0)) / {area} AS mean
            FROM traffic LEFT JOIN tolls USING (place) GROUP BY traffic.place div {area}
        )
    """,
}


def main(reports: str, output: str) -> None:
    spark = SparkSession.builder.appName("Linear Road").getOrCreate()
    lines = spark.read.schema(SCHEMA).csv(reports).where("type = 0")
    lines.createOrReplaceTempView("lines")
    recent = spark.sql(
        f"SELECT *, direction * {SEGMENTS} + segment AS place, (SELECT max(time) FROM lines) AS last "
        "FROM lines"
    )
    recent.createOrReplaceTempView("recent")
    recent.where("time = last").createOrReplaceTempView("now")
    for name, query in STEPS.items():
        step = spark.sql(query.format(places=SEGMENTS * DIRECTIONS, segments=SEGMENTS, area=AREA))
        step.createOrReplaceTempView(name)
        step.write.mode("overwrite").csv(f"{output}/{name}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spark-submit linear_road.py REPORTS OUTPUT")
    main(*sys.argv[1:])
