"""Answers that need no model: unchanged inputs, changed code, a last run that failed."""
