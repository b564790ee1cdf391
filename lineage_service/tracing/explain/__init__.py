"""Why a record is there: the few records that are enough, instead of all that a trace leads to."""
