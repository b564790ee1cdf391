"""Questions at a terminal: `lineage apps | graph | trace | show | values`.

Each command reads the flow store itself, so no server need run. `output` prints, `start` reads what people
type for an application and a record.
"""
