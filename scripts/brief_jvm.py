"""How Spark's JVMs run where they see many small queries, each once: in tests of ours and of Spark's."""

#: The second compiler takes half of the CPU and its code is never used. The first alone has 48 MB for its
#: code, which some hundred queries fill: it then compiles the same again.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
