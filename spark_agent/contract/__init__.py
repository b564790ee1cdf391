"""The wire contract between agents and consumers: topics, events and blocks, through one door.

Promises that every message names its version, that a decoder needs nothing but this package, and that nothing
here ever unpickles. Knows nothing of Spark, of Kafka clients or of stores. It is the one package that agent
and service share; `docs/contract.md` says the same for people and other languages.

Two topics. `lineage-node` carries JSON events (applications, nodes, links, partitions, committed runs), keyed
by application. `lineage-flow` carries blocks: columns of positions, one stream for each operator.

Words: a *run* is one execution of one pipelined chain of operators over one partition by one task attempt. It
is the unit that is accepted or not: its blocks count only once its commit manifest (`run_committed`) has
arrived. `run` is a random number below 2**53, so that JSON readers keep it whole.
"""

from spark_agent.contract.blocks import *
from spark_agent.contract.errors import *
from spark_agent.contract.events import *
from spark_agent.contract.ids import *
from spark_agent.contract.limits import *
from spark_agent.contract.texts import *
from spark_agent.contract.topics import *
from spark_agent.contract.version import *
