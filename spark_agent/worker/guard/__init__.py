"""The fences of a replay that every Python process has: what is not the replay's own is not changed."""
