// The API's answers that this view reads, under names that clash with nothing here.

export type { Edge, Flow, Graph, Materialized, Trace, TracedNode, Record as TraceRecord, Values } from "../api";
