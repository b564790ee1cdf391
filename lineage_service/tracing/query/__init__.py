"""The queries of the service, over the flow store."""
