// What is said of a job and of its waves. Pure.

import type { Job, ModelInCharge, Trigger } from "../api";
import { count, duration, number } from "../format";

/** "4.2 %". At most three places, so that 0.04 % is not said to be none. */
export function percent(share: number): string {
  const value = share * 100;
  return `${number(Math.abs(value) < 1 ? Number(value.toPrecision(2)) : Number(value.toFixed(1)))} %`;
}

/** With its sign, if it is below nothing: "-12 s". */
export const signedDuration = (seconds: number): string => (seconds < 0 ? `−${duration(-seconds)}` : duration(seconds));

/** What was asked about: "120 waves: 71 run, 49 skipped". */
export function wavesText({ waves, runs, skips }: Pick<Job, "waves" | "runs" | "skips">): string {
  if (waves === 0) return "none: it was never asked about";
  return `${count(waves, "wave")}: ${number(runs)} run, ${number(skips)} skipped`;
}

/** What is not in the sum of the seconds that skips saved; empty if all is. */
export function savedRest({ saved_unknown: unknown }: Pick<Job, "saved_unknown">): string {
  return unknown === 0 ? "" : `without ${count(unknown, "skip")}: how long the execution before took is not known`;
}

/** What is not in the sum of the seconds that answers took; empty if all is. */
export function spentRest({ spent_unknown: unknown }: Pick<Job, "spent_unknown">): string {
  return unknown === 0 ? "" : `without ${count(unknown, "answer")} whose time was not kept`;
}

type Compliance = Pick<Trigger, "compliance" | "compliance_lower" | "compliance_waves" | "confidence" | "bound">;

/** The answers under the bound of the last one, which may rest on a model. Answers come with the latest first. */
function underLastBound<T extends Pick<Trigger, "bound">>(waves: readonly T[]): readonly T[] {
  const bound = waves[0]?.bound ?? null;
  return bound === null ? [] : waves.filter((wave) => wave.bound === bound);
}

/** The latest answer that knows how many waves kept the bound. */
export const knownCompliance = <T extends Compliance>(waves: readonly T[]): T | null =>
  underLastBound(waves).find(({ compliance }) => compliance !== null) ?? null;

/** "97.8 % of 400 waves". */
export const complianceText = ({ compliance, compliance_waves: waves }: Compliance): string =>
  compliance === null ? "not known" : `${percent(compliance)}${waves === null ? "" : ` of ${count(waves, "wave")}`}`;

/** What stands behind the share: its lower bound, and what is wanted. */
export function complianceRest({ compliance_lower: lower, confidence, bound }: Compliance): string {
  return [
    bound !== null && `within ${percent(bound)}`,
    lower !== null && `95 % lower bound ${percent(lower)}`,
    confidence !== null && `wanted ${percent(confidence)}`,
  ]
    .filter((part) => part !== false)
    .join(", ");
}

/** "96 %, 1 of 9 audits above it": what has come of a model's decisions. */
export function chargeText({ compliance, audits, broken, waves }: ModelInCharge): string {
  if (waves === 0) return "no wave yet";
  if (compliance === null) return "not known: no audit yet";
  return audits === 0
    ? percent(compliance)
    : `${percent(compliance)}, ${number(broken)} of ${count(audits, "audit")} above it`;
}

/** How sure that is, and of how much. */
export const chargeRest = ({ compliance_lower: lower, waves, skips }: ModelInCharge): string =>
  [
    waves > 0 && `${count(waves, "wave")} decided, ${number(skips)} skipped`,
    lower !== null && `95 % lower bound ${percent(lower)}`,
  ]
    .filter((part) => part !== false)
    .join(", ");

/** Does it keep the bound less often than is wanted, by what was seen? */
export const isBelow = (model: ModelInCharge | null, wanted: number | null): boolean =>
  model !== null && model.compliance !== null && wanted !== null && model.compliance < wanted;

/** What answers rest on. Certain ones stand between those of a model. */
export function phaseOf(waves: readonly Pick<Trigger, "phase" | "bound">[]): string {
  const phase = underLastBound(waves).find((wave) => wave.phase !== "certain")?.phase;
  if (phase === "training") return "training: it runs until a model has passed its test";
  if (phase === "application") return "a model is in charge";
  return "certain answers, which need no model";
}

/** "4 % < 19 %": how likely the output changes by more than the bound, against what is run. */
export function probabilityText({ probability, threshold }: Pick<Trigger, "probability" | "threshold">): string {
  if (probability === null) return "";
  if (threshold === null) return percent(probability);
  return `${percent(probability)} ${probability < threshold ? "<" : "≥"} ${percent(threshold)}`;
}

/** "3 % ≤ 5 %": the measured error against the bound. */
export function errorText({ error, bound }: Pick<Trigger, "error" | "bound">): string {
  if (error === null) return "";
  if (bound === null) return number(error);
  return `${number(error)} ${error > bound ? ">" : "≤"} ${number(bound)}`;
}

/** Would the output be further off than is tolerated without this execution? Then it was right to run. */
export const isBeyond = ({ error, bound }: Pick<Trigger, "error" | "bound">): boolean =>
  error !== null && bound !== null && error > bound;

/** Beyond the bound, where the model said that it would not be: an audit shows what skips hide. */
export const isMissed = (wave: Pick<Trigger, "error" | "bound" | "is_audit" | "decision">): boolean =>
  isBeyond(wave) && (wave.is_audit === true || wave.decision === "skip");

/** The drawing in a sentence, for those who cannot see it. The table below has the same. */
export function drawingText(waves: readonly Trigger[]): string {
  const skips = waves.filter(({ decision }) => decision === "skip").length;
  const [beyond, missed] = [waves.filter(isBeyond).length, waves.filter(isMissed).length];
  const measured = waves.filter(({ error }) => error !== null).length;
  return [
    `${count(waves.length, "wave")} over time, the oldest left: ${number(waves.length - skips)} run, ${number(skips)} skipped`,
    measured > 0 && `${number(beyond)} of ${count(measured, "measured error")} beyond the bound`,
    missed > 0 && `${number(missed)} of them in audits, which would have been skipped`,
  ]
    .filter((part) => part !== false)
    .join("; ");
}
