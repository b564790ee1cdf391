"""The graph that people explore, in Neo4j."""
