// Elements and words. All text goes in as text nodes, so no data can become markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An HTML element; an attribute whose value is a function is an event listener. */
export const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** An SVG element. */
export const s = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const NUMBER = new Intl.NumberFormat("en");

export const number = (value) => NUMBER.format(value);

/** "1 record", "2,000 records". */
export const count = (value, word, words = `${word}s`) => `${number(value)} ${value === 1 ? word : words}`;

export function time(milliseconds) {
  const when = new Date(milliseconds);
  const text = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" }).format(when);
  return h("time", { datetime: when.toISOString() }, text);
}

export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A sentence that the reader must not miss. */
export const notice = (kind, ...children) => h("p", { class: `notice ${kind}` }, ...children);

/** `NODE_ID` without its application. */
export const nodeNumber = (nodeId) => nodeId.slice(nodeId.lastIndexOf("#") + 1);

/** A hash route of this page; parts and parameters are encoded. */
export function route(parts, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const path = parts.map(encodeURIComponent).join("/");
  return `#/${path}${query.size > 0 ? `?${query}` : ""}`;
}
