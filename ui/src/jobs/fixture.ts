// Answers about a job, for tests.

import type { Trigger } from "../api";

export const wave = (name: string, changes: Partial<Trigger> = {}): Trigger => ({
  job: "nightly",
  wave: name,
  decision: "run",
  reason: "changed",
  why: "an input has changed",
  phase: "certain",
  bound: null,
  confidence: null,
  probability: null,
  threshold: null,
  error: null,
  compliance: null,
  compliance_lower: null,
  compliance_waves: null,
  is_audit: null,
  seconds: null,
  asked: 1_795_000_000_000,
  application_id: "app-1",
  repeated: false,
  refused: false,
  ...changes,
});
