"""The local stack: a real Kafka and a real Neo4j on this machine, without a container engine.

`lineage up`, `down` and `status` are `up.py`, `down.py` and `status.py`; `state.resolve` tells the other
commands where the stack is. Everything lives in one home folder and listens on 127.0.0.1 only. Not for
production: one broker, no passwords.
"""
