from __future__ import annotations

import json
from typing import Any

import pytest

from spark_agent.sql.runtime.planned_query import PlanningCall
from spark_agent.sql.table_formats.table_work import TableWork, Transaction


def entry(method: str, *classes: str, **more: Any) -> str:
    return "SparkSession.sql@7|" + json.dumps({"method": method, "classes": classes, **more})


def test_what_a_library_reads_of_its_own_log_is_not_captured() -> None:
    call = PlanningCall.parse(entry("$anonfun$cacheDS$1", "StateCache", "Snapshot", "UpdateCommand"))
    assert not call.is_captured
    assert (call.method, call.thread) == ("SparkSession.sql", 7)


@pytest.mark.parametrize("method", ["writeFiles", "$anonfun$writeFiles$1"])
def test_what_a_statement_writes_is_captured_under_its_name(method: str) -> None:
    call = PlanningCall.parse(entry(method, "TransactionalWrite", "OptimisticTransaction", "UpdateCommand"))
    assert call.is_captured
    assert call.work is not None
    assert call.work.is_writing
    assert call.work.statement == "UPDATE"


def test_a_save_keeps_the_name_of_the_users_action() -> None:
    call = PlanningCall.parse(entry("writeFiles", "TransactionalWrite", "WriteIntoDelta"))
    assert call.work is not None
    assert call.work.statement is None


def test_the_source_of_a_merge_is_kept_for_later_steps() -> None:
    call = PlanningCall.parse(entry("prepareMergeSource", "MergeIntoMaterializeSource", "MergeIntoCommand"))
    assert call.is_captured
    assert call.is_kept
    assert call.gives_no_result


@pytest.mark.parametrize(
    ("library", "is_captured"),
    [
        (("doRewrite", "SparkBinPackFileRewriteRunner", "RewriteDataFilesSparkAction"), True),
        (("doRewrite", "SparkSortDataRewriter"), True),
        (("doRewrite", "SparkRewritePositionDeleteRunner"), False),
        (("doExecute", "ExpireSnapshotsSparkAction"), False),
    ],
)
def test_of_iceberg_only_the_rewrite_of_data_files_is_captured(
    library: tuple[str, ...], is_captured: bool
) -> None:
    call = PlanningCall.parse(entry(*library))
    assert call.work is not None
    assert call.is_captured == is_captured
    assert call.work.statement == ("rewrite_data_files" if is_captured else None)


@pytest.mark.parametrize(("command", "is_captured"), [("DeleteCommand", True), ("UpdateCommand", False)])
def test_rows_of_deletion_vectors_are_captured_where_nothing_else_reads_them(
    command: str, is_captured: bool
) -> None:
    call = PlanningCall.parse(entry("computeResult", "DeletionVectorBitmapGenerator", command))
    assert call.is_captured == is_captured
    assert call.work is not None
    assert call.work.is_deleting == is_captured
    assert not call.work.may_leave_out


@pytest.mark.parametrize(
    ("classes", "may_leave_out"),
    [
        (("MergeIntoCommand", "ClassicMergeExecutor"), True),
        (("MergeIntoCommand", "InsertOnlyMergeExecutor"), False),
        (("DeleteCommand",), True),
        (("UpdateCommand",), False),
    ],
)
def test_a_statement_that_may_delete_rows_leaves_them_out_of_what_it_writes(
    classes: tuple[str, ...], may_leave_out: bool
) -> None:
    call = PlanningCall.parse(entry("writeFiles", "TransactionalWrite", *classes))
    assert call.work is not None
    assert call.work.may_leave_out == may_leave_out


def test_a_query_without_a_library_is_captured() -> None:
    call = PlanningCall.parse("cached:Dataset.count@3#12")
    assert (call.is_captured, call.is_cache, call.taker, call.work) == (True, True, 12, None)


def test_a_transaction_is_known_by_its_id_its_table_and_the_version_that_it_reads() -> None:
    said = {"method": "writeFiles", "classes": ["TransactionalWrite"]}
    of_transaction = {
        "transaction": "f00",
        "table": "file:/t",
        "version": 3,
        "partitions": ["a|b"],
        "names_in_log": ["col-1"],
        "catalog": ["spark_catalog.default.t"],
    }
    work = TableWork.parse(json.dumps(said | of_transaction))
    assert work.transaction == Transaction(
        "f00", "file:/t", 3, ("a|b",), "spark_catalog.default.t", names_in_log=("col-1",)
    )
