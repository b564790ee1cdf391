"""HTTP over what lineage_service answers: the API (docs/api.md) and the page's files."""
