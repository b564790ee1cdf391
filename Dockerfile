# The service's image: `lineage consume` and `lineage serve`. Kafka and Neo4j are images of their own.
# The wheel that it installs is in /usr/share/lineage-master, for the drivers of jobs.
FROM eclipse-temurin:17.0.15_6-jdk-jammy AS jdk

FROM node:20.19-bookworm-slim AS node

FROM python:3.11.13-slim-bookworm AS wheel
COPY --from=jdk /opt/java/openjdk /opt/jdk
COPY --from=node /usr/local /opt/node
ENV JAVA_HOME=/opt/jdk \
    PATH=/opt/node/bin:$PATH
WORKDIR /build
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.11.13-slim-bookworm
COPY --from=wheel /wheel /usr/share/lineage-master
RUN pip install --no-cache-dir "$(echo /usr/share/lineage-master/*.whl)[service]"

# A named volume takes over this folder's owner, so the process may write there without being root.
RUN useradd --system --uid 10001 --home-dir /data lineage && install -d -o lineage -g lineage /data
USER lineage
WORKDIR /data
ENV LINEAGE_HOME=/data \
    PYTHONUNBUFFERED=1
VOLUME /data

ENTRYPOINT ["lineage"]
CMD ["--help"]
