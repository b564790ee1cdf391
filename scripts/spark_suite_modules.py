"""Which tests of Apache Spark and of Delta Lake run on the installed PySpark: modules of a checkout,
and examples.

Pure, but for looking which of the modules a checkout has. Left out: test_install_spark, which downloads
Spark; Connect, ML and the pandas API, which are programs over what is tested here; streaming; Delta Lake's
tests of its own packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Tests of one half of PySpark, or of a package beside it, from a checkout of `project`.

    `packages` are the folders of `package` that may hold a module; `needed` are folders by which a checkout
    is known. `needs_delta`: the tests want Delta Lake in their sessions.
    """

    of: str
    project: str = "Apache Spark"
    package: str = "pyspark"
    needed: tuple[str, ...] = ("python/pyspark/testing", "python/test_support")
    needs_delta: bool = False
    page: str  # where its last result is
    packages: tuple[str, ...]
    modules: tuple[str, ...]
    examples: tuple[str, ...]  # modules of the installed PySpark whose docstrings Spark runs as tests, too

    @property
    def command(self) -> str:
        """What runs it."""
        if self.needs_delta:
            return "python -m scripts.spark_suite <a checkout of Delta Lake> --suite delta --report"
        return f"make test-spark-suite SPARK_SRC=<a checkout of {self.project}>"


SUITES = {
    "rdd": Suite(
        of="RDDs",
        page="docs/spark-suite.md",
        packages=("tests", "core/tests"),
        modules=(
            "test_appsubmit", "test_broadcast", "test_conf", "test_context", "test_daemon", "test_join",
            "test_memory_profiler", "test_pin_thread", "test_profiler", "test_rdd", "test_rddbarrier",
            "test_rddsampler", "test_readwrite", "test_serializers", "test_shuffle", "test_stage_sched",
            "test_statcounter", "test_taskcontext", "test_util", "test_worker",
        ),
        examples=(
            "pyspark.accumulators", "pyspark.conf", "pyspark.core.broadcast", "pyspark.core.context",
            "pyspark.core.files", "pyspark.core.rdd", "pyspark.profiler", "pyspark.serializers",
            "pyspark.shuffle", "pyspark.taskcontext", "pyspark.util",
        ),
    ),
    "sql": Suite(
        of="DataFrames and SQL",
        page="docs/spark-suite-sql.md",
        packages=("sql/tests", "sql/tests/pandas", "sql/tests/arrow"),
        modules=(
            "test_dataframe", "test_functions", "test_udf", "test_group", "test_readwriter", "test_sql",
            "test_catalog",
            "test_pandas_cogrouped_map", "test_pandas_grouped_map", "test_pandas_map", "test_pandas_udf",
            "test_pandas_udf_grouped_agg", "test_pandas_udf_scalar", "test_pandas_udf_typehints",
            "test_pandas_udf_typehints_with_future_annotations", "test_pandas_udf_window", "test_converter",
            "test_pandas_sqlmetrics",
            "test_arrow", "test_arrow_cogrouped_map", "test_arrow_grouped_map", "test_arrow_map",
            "test_arrow_python_udf",
            "test_column", "test_collection", "test_conf", "test_context", "test_creation",
            "test_dataframe_query_context", "test_datasources", "test_errors", "test_job_cancellation",
            "test_listener", "test_observation", "test_python_datasource", "test_repartition",
            "test_resources", "test_serde", "test_session", "test_stat", "test_subquery", "test_tvf",
            "test_types", "test_udf_profiler", "test_udtf", "test_utils",
        ),
        examples=(
            "pyspark.sql.dataframe", "pyspark.sql.functions.builtin", "pyspark.sql.readwriter",
            "pyspark.sql.group", "pyspark.sql.catalog", "pyspark.sql.session", "pyspark.sql.column",
            "pyspark.sql.conf", "pyspark.sql.merge", "pyspark.sql.observation",
            "pyspark.sql.pandas.conversion", "pyspark.sql.pandas.group_ops", "pyspark.sql.pandas.map_ops",
            "pyspark.sql.tvf", "pyspark.sql.types", "pyspark.sql.udf", "pyspark.sql.udtf",
            "pyspark.sql.window",
        ),
    ),
    "delta": Suite(
        of="Delta Lake",
        project="Delta Lake",
        package="delta",
        needed=("python/delta/testing",),
        needs_delta=True,
        page="docs/spark-suite-delta.md",
        packages=("tests",),
        modules=("test_deltatable", "test_sql", "test_exceptions", "test_exceptions_init"),
        examples=(),
    ),
}  # fmt: skip
#: Folders of `pyspark` in a checkout that the wheel does not have, or has in another version.
THEIRS = ("testing", "tests", "core/tests", "sql/tests")


def modules_in(source: Path, suite: Suite) -> list[str]:
    """Dotted names of the modules of tests that a checkout has, in the order of the suite."""
    return [
        f"{suite.package}.{folder.replace('/', '.')}.{module}"
        for module in suite.modules
        for folder in suite.packages
        if (source / "python" / suite.package / folder / f"{module}.py").is_file()
    ]
