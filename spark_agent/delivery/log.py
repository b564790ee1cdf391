"""The logger of the agent. It has no handler of its own: a job's output stays the job's."""

from __future__ import annotations

import logging

logger = logging.getLogger("spark_agent")
logger.addHandler(logging.NullHandler())
