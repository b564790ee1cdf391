// Links to the first page of a list and to the next one.

import { type Child, h } from "./dom";

/** `query` is that of the shown page, `next` the cursor of the one behind it; `words` are the texts of both links. */
export function pageLinks(
  query: URLSearchParams,
  next: string | null,
  hrefOf: (query: URLSearchParams) => string,
  words: { first: string; next: string },
): Child[] {
  const to = (cursor: string | null) => {
    const changed = new URLSearchParams(query);
    if (cursor === null) changed.delete("cursor");
    else changed.set("cursor", cursor);
    return hrefOf(changed);
  };
  return [
    query.has("cursor") && h("a", { href: to(null) }, words.first),
    next !== null && h("a", { href: to(next), rel: "next" }, words.next),
  ];
}
