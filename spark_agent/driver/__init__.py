"""What runs in the driver of a captured application: its graph, its events, its end."""
