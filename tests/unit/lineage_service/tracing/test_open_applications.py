"""What stays as it was when an application was opened."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from lineage_service.store.errors import StoreUnavailableError
from lineage_service.tracing.model.summaries import Receipts
from lineage_service.tracing.query import open_applications
from lineage_service.tracing.query.open_applications import OpenApplications
from spark_agent import contract
from tests.support.id_applications import FileStore
from tests.support.lineage_messages import APP, event


def test_garbage_is_collected_again_when_an_application_was_opened_and_when_it_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, was_enabled = FileStore(tmp_path), list[bool]()
    store.tell([event(contract.APPLICATION_STARTED, name="etl")], [])
    opened = open_applications.open_application

    def noted(*arguments: Any, **options: Any) -> Any:
        was_enabled.append(gc.isenabled())
        if len(was_enabled) > 1:
            raise StoreUnavailableError("gone")
        return opened(*arguments, **options)

    monkeypatch.setattr(open_applications, "open_application", noted)
    OpenApplications(store, Receipts()).open(APP)
    assert gc.isenabled()
    with pytest.raises(StoreUnavailableError):
        OpenApplications(store, Receipts()).open(APP)
    assert gc.isenabled()
    assert was_enabled == [False, False]
