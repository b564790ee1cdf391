"""A catalogue of functions of a partition as people write them, each with the sources that its outputs have.

It needs nothing but Python and the agent's package, so that `python -m tests.support.generators` checks it in
any Python.
"""
