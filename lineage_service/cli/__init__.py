"""The command line `lineage`: a module for each command."""
