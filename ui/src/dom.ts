// Makes elements. All text goes in as text nodes, so no data can become markup.

export type Child = Node | string | number | null | undefined | false | Child[];
export type Attributes = {
  [name: string]: string | number | boolean | null | undefined | ((event: never) => void);
};

/**
 * An HTML element. An attribute whose value is a function is a listener of the event of its name; null, undefined and
 * false leave an attribute or a child out.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  fill(element, children);
  return element;
}

/** Puts these children in the place of all that the element had. */
export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  fill(element, children);
}

function fill(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) fill(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element. */
export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  fill(element, children);
  return element;
}
