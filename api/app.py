"""The application: endpoints, problems and the page put together.

Holds no state but the questions that it was given; two of them may run in one process. Nobody is
authenticated yet, and other sites' pages can neither read answers (no CORS) nor start a write.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.gzip import GZipMiddleware

from api import problems
from api.endpoints import LookAtLag, Materialize, router
from api.models import TRACE_EXAMPLE
from api.page import add_page
from lineage_service.answers import Questions
from ui import static_folder

__all__ = ["VERSION", "Api", "create_app"]

#: Version of the API, not of the package: it changes when the shapes below /api do.
VERSION = "1.0.0"

_DESCRIPTION = """Which input rows made this output row? Where did this input row end up?

Errors are problem details (RFC 9457) everywhere. Node ids contain `#`: write `%23` in URLs."""


class Api(FastAPI):
    """FastAPI whose OpenAPI says the truth about errors: they are problem details, not plain JSON."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = super().openapi()
            schema["components"]["schemas"]["Trace"]["examples"] = [TRACE_EXAMPLE]
            for path in schema["paths"].values():
                for operation in path.values():
                    for status, response in operation["responses"].items():
                        if int(status) >= 400:
                            content = response["content"]
                            content[problems.MEDIA_TYPE] = content.pop("application/json")
        return super().openapi()


def create_app(
    questions: Questions,
    *,
    materialize: Materialize | None = None,
    lag: LookAtLag | None = None,
    metrics: CollectorRegistry | None = None,
) -> FastAPI:
    """The API over `questions`, with the page at `/` and the documentation at `/docs`.

    Without `materialize` there is no Neo4j: asking for it is a 503. So is asking for the lag without `lag`.
    Without `metrics` there is nothing at `/metrics`.
    """
    app = Api(
        title="Lineage Master",
        version=VERSION,
        description=_DESCRIPTION,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.questions = questions
    app.state.materialize = materialize
    app.state.lag = lag
    app.state.metrics = metrics
    app.add_middleware(GZipMiddleware, minimum_size=1000)
    problems.add_problem_handlers(app)
    app.include_router(router)
    add_page(app, static_folder())
    return app
