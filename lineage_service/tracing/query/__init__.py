"""The queries of the service, answered from the flow store."""
