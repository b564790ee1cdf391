// Draws the waves of a job: decisions at the bottom, probabilities and measured errors above, each with its limit.

import type { Trigger } from "../api";
import { type Child, h, s } from "../dom";
import { count, number, time } from "../format";
import { drawingText, errorText, isMissed, percent, probabilityText } from "./sentences";
import { type Band, roomFor, timelineOf } from "./timeline";

const MOST_WIDTH = 1200;
const LEAST_WIDTH = 280;

/** `room` is the width in pixels that there is. */
export function waveDrawing(waves: readonly Trigger[], room: number): Child {
  const width = Math.max(LEAST_WIDTH, Math.min(MOST_WIDTH, room));
  const drawn = waves.slice(0, roomFor(width));
  const [newest, oldest] = [drawn.at(0), drawn.at(-1)];
  if (newest === undefined || oldest === undefined) return null;
  const { bands, bars, width: used, height } = timelineOf(drawn, width);
  return h(
    "figure",
    { class: "waves" },
    s(
      "svg",
      {
        width: used,
        height,
        viewBox: `0 0 ${rounded(used)} ${height}`,
        role: "img",
        "aria-label": drawingText(drawn),
      },
      bands.map((band) => bandOf(band, used)),
      bars.map(({ wave, ...box }) =>
        s(
          "rect",
          { class: wave.decision, ...Object.fromEntries(Object.entries(box).map(([name, at]) => [name, rounded(at)])) },
          s("title", {}, titleOf(wave)),
        ),
      ),
    ),
    h(
      "figcaption",
      { class: "soft small" },
      legendOf(bands, drawn),
      drawn.length > 1 && ` From ${time(oldest.asked)} to ${time(newest.asked)}.`,
      drawn.length < waves.length && ` The latest ${count(drawn.length, "wave")}.`,
    ),
  );
}

const rounded = (value: number): number => Math.round(value * 10) / 10;

const bandOf = ({ name, top, bottom, points, limits }: Band, width: number): SVGElement =>
  s(
    "g",
    { class: name },
    s("line", { class: "floor", x1: 0, x2: rounded(width), y1: bottom, y2: bottom }),
    limits.map(({ from, to, y }) =>
      s("line", { class: "limit", x1: rounded(from), x2: rounded(to), y1: rounded(y), y2: rounded(y) }),
    ),
    points.map(({ x, y, wave, ...point }) =>
      s(
        "circle",
        {
          class: point.isMissed ? "missed" : point.isBeyond ? "beyond" : null,
          cx: rounded(x),
          cy: rounded(Math.max(y, top)),
          r: point.isBeyond && name === "error" ? 4 : 2.5,
        },
        s("title", {}, titleOf(wave)),
      ),
    ),
  );

const titleOf = (wave: Trigger): string =>
  [
    `${wave.wave}: ${wave.decision}, ${wave.reason}`,
    wave.probability !== null && `probability ${probabilityText(wave)}`,
    wave.error !== null && `error if skipped ${errorText(wave)}`,
    wave.is_audit === true && "an audit",
  ]
    .filter((part) => part !== false)
    .join(" · ");

function legendOf(bands: readonly Band[], waves: readonly Trigger[]): string {
  const most = (name: Band["name"]) => bands.find((band) => band.name === name)?.most ?? null;
  const [probability, error] = [most("probability"), most("error")];
  return [
    probability !== null &&
      `Above: the probability of a change beyond the bound, up to ${percent(probability)}; dashed: from where on it is run.`,
    error !== null &&
      `${probability === null ? "Above" : "Below it"}: the error if it is skipped, as measured, up to ${number(error)}; dashed: the bound; large: beyond it.`,
    waves.some(isMissed) && "Red: an audit, which would have been skipped.",
    waves.some(({ decision }) => decision === "skip")
      ? "Bars at the bottom: tall is run, low is skipped."
      : "Bars at the bottom: each wave was run.",
  ]
    .filter((part) => part !== false)
    .join(" ");
}
