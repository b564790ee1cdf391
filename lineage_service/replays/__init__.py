"""Replays: an application's unmodified command, run again on some of its input rows, in a sandbox."""
