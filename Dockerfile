# The service's image: `lineage consume` and `lineage serve`. Kafka and Neo4j are images of their own.
FROM node:20.19-bookworm-slim AS page
WORKDIR /page
COPY ui/package.json ui/package-lock.json ui/.npmrc ./
RUN npm ci
COPY ui ./
RUN npm run build

FROM python:3.11.13-slim-bookworm

WORKDIR /build
COPY pyproject.toml README.md ./
COPY spark_agent spark_agent
COPY lineage_service lineage_service
COPY cypher cypher
COPY api api
COPY ui/lineage_page/__init__.py ui/lineage_page/__init__.py
COPY --from=page /page/lineage_page/dist ui/lineage_page/dist
RUN pip install --no-cache-dir ".[service]" && rm -rf /build

# A named volume takes over this folder's owner, so the process may write there without being root.
RUN useradd --system --uid 10001 --home-dir /data lineage && install -d -o lineage -g lineage /data
USER lineage
WORKDIR /data
ENV LINEAGE_HOME=/data \
    PYTHONUNBUFFERED=1
VOLUME /data

ENTRYPOINT ["lineage"]
CMD ["--help"]
