"""An hour of detectors: the concentration of each zone, the zones above a reference, and an index.

    spark-submit perf/workloads/air_quality.py HOUR OUTPUT [REFERENCE]

HOUR has lines like `17,3,46.1,40.9,43.7`: detector, zone, ozone, dust, dioxide, from 0 to 100. A
concentration is the product of the three. An ordinary Spark job: no lineage in it.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

SCHEMA = "detector INT, zone INT, ozone DOUBLE, dust DOUBLE, dioxide DOUBLE"
REFERENCE = 9.0


def main(hour: str, output: str, reference: float) -> None:
    spark = SparkSession.builder.appName("Air quality").getOrCreate()
    spark.read.schema(SCHEMA).csv(hour).createOrReplaceTempView("detectors")
    zones = spark.sql("SELECT zone, avg(ozone * dust * dioxide / 10000) AS mean FROM detectors GROUP BY zone")
    zones.createOrReplaceTempView("zones")
    above = f"if(mean > {reference}D, mean, 0D)"
    zones.write.mode("overwrite").csv(f"{output}/zones")
    spark.sql(f"SELECT zone, {above} FROM zones").write.mode("overwrite").csv(f"{output}/hotspots")
    index = spark.sql(f"SELECT count_if(mean > {reference}D) + avg(mean) FROM zones")
    index.write.mode("overwrite").csv(f"{output}/index")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: spark-submit air_quality.py HOUR OUTPUT [REFERENCE]")
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) == 4 else REFERENCE)
