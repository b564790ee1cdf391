"""What operators of a query do with one row, computed again from the expressions that the agent has sent.

Promises that what is computed is what Spark computed: whatever is not surely the same is `Unknown`.
"""
