"""The HTTP API over the queries of lineage_service (docs/api.md), and the page's files."""
