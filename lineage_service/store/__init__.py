"""The flow store: four Delta tables of what came off the topics."""
