"""The topics between agents and consumers: their names, and how many partitions they are made with."""

from __future__ import annotations

NODE_TOPIC = "lineage-node"
FLOW_TOPIC = "lineage-flow"
DEAD_LETTER_TOPIC = "lineage-dead-letter"
NODE_PARTITIONS = 3
FLOW_PARTITIONS = 30
