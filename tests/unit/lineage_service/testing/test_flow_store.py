from __future__ import annotations

import pytest

from lineage_service.store.flow_store import FlowStore
from lineage_service.testing.flow_store import MemoryFlowStore
from tests.support.flow_store_suite import FlowStoreSuite


class TestMemoryFlowStore(FlowStoreSuite):
    @pytest.fixture
    def store(self) -> FlowStore:
        return MemoryFlowStore()
