"""How the service reads topics: client, subscription, consumer group, dead letters."""
