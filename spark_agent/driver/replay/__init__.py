"""A replay on the driver's side: what its spec says of sources, sinks and the guard."""
