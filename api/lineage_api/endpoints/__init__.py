"""The endpoints: each turns a request into one query, and its result into a response.

Queries block, so the endpoints are plain functions, which FastAPI runs in threads. Large results become JSON
there, too, and not in the event loop. Knows nothing of the shape of errors (problems.py) or of where results
come from.
"""

from lineage_api.endpoints import anomalies, applications, datasets, jobs, service, traces

__all__ = ["ROUTERS"]

#: In the order of the OpenAPI document.
ROUTERS = tuple(part.router for part in (applications, traces, anomalies, datasets, service, jobs))
