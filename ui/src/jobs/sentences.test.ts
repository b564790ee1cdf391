import { expect, test } from "vitest";
import { wave } from "./fixture";
import {
  chargeRest,
  chargeText,
  complianceRest,
  complianceText,
  drawingText,
  errorText,
  isBelow,
  isBeyond,
  isMissed,
  knownCompliance,
  percent,
  phaseOf,
  probabilityText,
  savedRest,
  signedDuration,
  spentRest,
  wavesText,
} from "./sentences";

test("shares are said as precisely as they mean something", () => {
  expect([0.978, 0.05, 0.0004, 0, 1, 0.4567].map(percent)).toEqual([
    "97.8 %",
    "5 %",
    "0.04 %",
    "0 %",
    "100 %",
    "45.7 %",
  ]);
});

test("what costs more than it saves has a sign", () => {
  expect([7200, -12.4, 0].map(signedDuration)).toEqual(["2 h 0 min", "−12 s", "0.0 s"]);
});

test("waves are counted", () => {
  expect(wavesText({ waves: 1, runs: 1, skips: 0 })).toBe("1 wave: 1 run, 0 skipped");
  expect(wavesText({ waves: 0, runs: 0, skips: 0 })).toBe("none: it was never asked about");
});

test("what is not in a sum is said", () => {
  expect(savedRest({ saved_unknown: 0 })).toBe("");
  expect(savedRest({ saved_unknown: 2 })).toBe("without 2 skips: how long the execution before took is not known");
  expect(spentRest({ spent_unknown: 1 })).toBe("without 1 answer whose time was not kept");
});

test("compliance is that of the last answer that has it, under the bound of the last answer", () => {
  const tested = { compliance: 0.978, compliance_lower: 0.961, compliance_waves: 400, confidence: 0.95, bound: 0.05 };
  const old = wave("w1", { ...tested, bound: 0.1, compliance: 0.5 });
  const known = knownCompliance([wave("w3", { bound: 0.05 }), wave("w2", tested), old]);
  expect(known?.wave).toBe("w2");
  expect(complianceText(tested)).toBe("97.8 % of 400 waves");
  expect(complianceRest(tested)).toBe("within 5 %, 95 % lower bound 96.1 %, wanted 95 %");
  expect(knownCompliance([wave("w4"), old])).toBeNull();
  expect(knownCompliance([])).toBeNull();
  expect(complianceText(wave("w5"))).toBe("not known");
});

test("what came of a model is said with how little that may be", () => {
  const model = { waves: 100, skips: 60, audits: 4, broken: 1, compliance: 0.85, compliance_lower: 0.55 };
  expect(chargeText(model)).toBe("85 %, 1 of 4 audits above it");
  expect(chargeRest(model)).toBe("100 waves decided, 60 skipped, 95 % lower bound 55 %");
  expect(chargeText({ ...model, audits: 0, broken: 0, compliance: null })).toBe("not known: no audit yet");
  expect(chargeText({ ...model, waves: 0, compliance: null })).toBe("no wave yet");
  expect([isBelow(model, 0.95), isBelow(model, 0.8), isBelow(null, 0.95), isBelow(model, null)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

test("the phase is that of the last answer of a model, since certain answers stand between", () => {
  const certain = wave("w3", { bound: 0.05 });
  expect(phaseOf([certain, wave("w2", { bound: 0.05, phase: "application" })])).toContain("in charge");
  expect(phaseOf([certain, wave("w2", { bound: 0.05, phase: "training" })])).toContain("training");
  expect(phaseOf([wave("w3"), wave("w2", { bound: 0.05, phase: "application" })])).toContain("certain answers");
});

test("values stand beside what they are compared with", () => {
  expect(probabilityText({ probability: 0.04, threshold: 0.19 })).toBe("4 % < 19 %");
  expect(probabilityText({ probability: 0.19, threshold: 0.19 })).toBe("19 % ≥ 19 %");
  expect(probabilityText({ probability: null, threshold: 0.19 })).toBe("");
  expect(errorText({ error: 0.051, bound: 0.05 })).toBe("0.051 > 0.05");
  expect(errorText({ error: 0, bound: 0.05 })).toBe("0 ≤ 0.05");
  expect([0.05, 0.051, null].map((error) => isBeyond({ error, bound: 0.05 }))).toEqual([false, true, false]);
});

test("an error beyond the bound was missed only where the model would have skipped", () => {
  const beyond = { error: 0.2, bound: 0.05 };
  const waves = [wave("w1", beyond), wave("w2", { ...beyond, is_audit: true }), wave("w3", { is_audit: true })];
  expect(waves.map(isMissed)).toEqual([false, true, false]);
  expect(drawingText(waves)).toContain("2 of 2 measured errors beyond the bound; 1 of them in audits");
});

test("the drawing is said in a sentence", () => {
  const waves = [wave("w2", { decision: "skip" }), wave("w1", { error: 0.2, bound: 0.05 }), wave("w0")];
  expect(drawingText(waves)).toBe(
    "3 waves over time, the oldest left: 2 run, 1 skipped; 1 of 1 measured error beyond the bound",
  );
});
