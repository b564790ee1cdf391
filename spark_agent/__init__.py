"""The agent that runs inside a Spark application and captures the flow of every record.

Importing this package costs nothing: each part is imported where it is used.
"""
