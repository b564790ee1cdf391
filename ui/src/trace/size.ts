// How large records are drawn: the fewer layers a trace has, the wider, so that a laptop shows all of it. Pure.

/** Width of a drawing that a laptop shows at its own size, beside the panel. */
const VISIBLE_WIDTH = 840;
const WIDTH = { least: 132, most: 290 } as const;
/** Of a character of the font of records. */
const CHARACTER = 6.65;

export const HEIGHT = 40;
/** Around the records of an operation. */
export const PAD = 7;
export const BETWEEN_LAYERS = 46;

/** Width of a record, where so many layers are side by side. */
export function widthOf(layers: number): number {
  const room = (VISIBLE_WIDTH + BETWEEN_LAYERS) / Math.max(1, layers) - BETWEEN_LAYERS - 2 * PAD;
  return Math.max(WIDTH.least, Math.min(WIDTH.most, Math.floor(room)));
}

/** Characters of a record's text that fit. */
export const charactersIn = (width: number): number => Math.floor((width - 8) / CHARACTER);
