// The buttons of a drawing: nearer, farther, all of it; and to save it as a picture.

import { type Child, h } from "./dom";
import type { Format } from "./svg";

export interface Drawn {
  zoom(by: number): void;
  fit(): void;
  /** Saves it as a file of this name, without an ending. */
  save(name: string, format: Format): Promise<void>;
}

const STEP = 1.25;

/** `drawing` is asked when a button is pressed: it may not be there before. */
export function drawingTools(drawing: () => Drawn | null, name: () => string): Child {
  const button = (text: string, title: string, click: () => void) =>
    h("button", { type: "button", title, "aria-label": title, click }, text);
  const picture = (format: Format) =>
    button(
      format.toUpperCase(),
      `Save the drawing as ${format.toUpperCase()}`,
      () => void drawing()?.save(name(), format),
    );
  return h(
    "span",
    { class: "drawing-tools", role: "group", "aria-label": "Drawing" },
    button("+", "Zoom in", () => drawing()?.zoom(STEP)),
    button("−", "Zoom out", () => drawing()?.zoom(1 / STEP)),
    button("Show all", "Show all of the drawing", () => drawing()?.fit()),
    picture("svg"),
    picture("png"),
  );
}
