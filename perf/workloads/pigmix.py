"""Queries of PigMix (L2, L3, L5, L6, L7, L11) over page views and users, with RDDs or in SQL.

    spark-submit perf/workloads/pigmix.py PAGE_VIEWS USERS POWER_USERS OUTPUT QUERY rdd|sql

| query | answer |
|---|---|
| L2 | the page views of power users: user, revenue |
| L3 | the sum of the revenue of each user who is known |
| L5 | the users of page views who are not known |
| L6 | the time spent by user, query term, address and second |
| L7 | the page views of each user in the morning and in the afternoon |
| L11 | all users, viewed or known, each once |

Saved as lines of comma-separated columns; a user, term or revenue that is missing is empty. An ordinary Spark
job: no lineage in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from operator import add
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

INPUT_PARTITIONS = 30
NOON = 43_200
USER, MINUTES, TERM, ADDRESS, SECOND, REVENUE = 0, 2, 3, 4, 5, 6

VIEWS_SCHEMA = (
    "user STRING, action INT, timespent INT, query_term STRING, ip_addr LONG, timestamp INT, "
    "estimated_revenue DOUBLE, page_info STRING, page_links STRING"
)
USERS_SCHEMA = "name STRING, phone STRING, address STRING, city STRING, state STRING, zip STRING"

QUERIES: Mapping[str, str] = {
    "L2": "SELECT /*+ BROADCAST(power_users) */ user, estimated_revenue FROM page_views "
    "JOIN power_users ON user = name",
    "L3": "SELECT user, sum(estimated_revenue) FROM page_views JOIN users ON user = name GROUP BY user",
    "L5": "SELECT DISTINCT coalesce(user, '') FROM page_views LEFT ANTI JOIN users ON user = name",
    "L6": "SELECT user, query_term, ip_addr, timestamp, sum(timespent) FROM page_views "
    "GROUP BY user, query_term, ip_addr, timestamp",
    "L7": f"SELECT user, count_if(timestamp < {NOON}), count_if(timestamp >= {NOON}) FROM page_views "
    "GROUP BY user",
    "L11": "SELECT coalesce(user, '') FROM page_views UNION SELECT name FROM users",
}


def fields(line: str) -> list[str]:
    return line.split("\t")


def name_of(line: str) -> str:
    return line.split("\t", 1)[0]


def l2(sc: SparkContext, views: Any, users: Any, power_users: Any) -> Any:
    powerful = sc.broadcast(frozenset(power_users.map(name_of).collect()))
    chosen = views.map(fields).filter(lambda view: view[USER] in powerful.value)
    return chosen.map(lambda view: f"{view[USER]},{view[REVENUE]}")


def l3(sc: SparkContext, views: Any, users: Any, power_users: Any) -> Any:
    revenues = views.map(fields).map(lambda view: (view[USER], float(view[REVENUE] or 0)))
    registered = users.map(lambda line: (name_of(line), True))
    joined = revenues.join(registered, INPUT_PARTITIONS).mapValues(lambda pair: pair[0])
    return joined.reduceByKey(add).map(lambda row: f"{row[0]},{row[1]}")


def l5(sc: SparkContext, views: Any, users: Any, power_users: Any) -> Any:
    viewed = views.map(lambda line: (name_of(line), True))
    registered = users.map(lambda line: (name_of(line), True))
    return viewed.subtractByKey(registered, INPUT_PARTITIONS).keys().distinct()


def l6(sc: SparkContext, views: Any, users: Any, power_users: Any) -> Any:
    def keyed(view: list[str]) -> tuple[tuple[str, ...], int]:
        return (view[USER], view[TERM], view[ADDRESS], view[SECOND]), int(view[MINUTES])

    sums = views.map(fields).map(keyed).reduceByKey(add)
    return sums.map(lambda row: f"{','.join(row[0])},{row[1]}")


def l7(sc: SparkContext, views: Any, users: Any, power_users: Any) -> Any:
    def halves(seconds: Any) -> tuple[int, int]:
        times = list(seconds)
        morning = sum(second < NOON for second in times)
        return morning, len(times) - morning

    seconds = views.map(fields).map(lambda view: (view[USER], int(view[SECOND])))
    counts = seconds.groupByKey(INPUT_PARTITIONS).mapValues(halves)
    return counts.map(lambda row: f"{row[0]},{row[1][0]},{row[1][1]}")


def l11(sc: SparkContext, views: Any, users: Any, power_users: Any) -> Any:
    return views.map(name_of).distinct().union(users.map(name_of).distinct()).distinct(INPUT_PARTITIONS)


RDDS: Mapping[str, Callable[..., Any]] = {"L2": l2, "L3": l3, "L5": l5, "L6": l6, "L7": l7, "L11": l11}


def with_rdds(views: str, users: str, power_users: str, output: str, query: str) -> None:
    with SparkContext(appName=f"PigMix {query}") as sc:
        answer = RDDS[query](
            sc, sc.textFile(views, INPUT_PARTITIONS), sc.textFile(users), sc.textFile(power_users)
        )
        answer.saveAsTextFile(output)


def in_sql(views: str, users: str, power_users: str, output: str, query: str) -> None:
    spark = SparkSession.builder.appName(f"PigMix {query} in SQL").getOrCreate()
    for name, path, schema in (
        ("page_views", views, VIEWS_SCHEMA),
        ("users", users, USERS_SCHEMA),
        ("power_users", power_users, USERS_SCHEMA),
    ):
        spark.read.schema(schema).option("sep", "\t").csv(path).createOrReplaceTempView(name)
    spark.sql(QUERIES[query]).write.csv(output)
    spark.stop()


FORMS = {"rdd": with_rdds, "sql": in_sql}

if __name__ == "__main__":
    if len(sys.argv) != 7 or sys.argv[5] not in QUERIES or sys.argv[6] not in FORMS:
        sys.exit(f"usage: spark-submit pigmix.py VIEWS USERS POWER_USERS OUTPUT {'|'.join(QUERIES)} rdd|sql")
    FORMS[sys.argv[6]](*sys.argv[1:6])
