// The API's results that this view reads, under names that do not clash with others.

export type {
  Edge,
  Flow,
  Graph,
  Materialized,
  Remark,
  Trace,
  TracedNode,
  Record as TraceRecord,
  TraceStart,
  Values,
} from "../api";
