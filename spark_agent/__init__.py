"""The agent that runs inside a Spark application and captures the flow of every record.

Importing this package costs nothing: each part is imported where it is used. `LineageApi` is for programs
without Spark that report their own lineage, `trace` and `explain` are for sessions that ask about theirs.
"""

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing in every Python start
if TYPE_CHECKING:
    from spark_agent.client.explanation import Explanation as Explanation
    from spark_agent.client.explanation import explain as explain
    from spark_agent.client.trace import LineageRecords as LineageRecords
    from spark_agent.client.trace import TraceError as TraceError
    from spark_agent.client.trace import trace as trace
    from spark_agent.emitter.lineage_api import LineageApi as LineageApi


def __getattr__(name: str) -> object:
    if name == "LineageApi":
        from spark_agent.emitter.lineage_api import LineageApi

        return LineageApi
    if name in ("LineageRecords", "TraceError", "trace"):
        from spark_agent.client import trace

        return getattr(trace, name)
    if name in ("Explanation", "explain"):
        from spark_agent.client import explanation

        return getattr(explanation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
