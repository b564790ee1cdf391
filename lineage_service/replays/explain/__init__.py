"""Explanations that are proved: rows on which the command gives an output row again."""
