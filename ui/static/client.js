// Asks the API. Every failure becomes a Problem with words for people.

export class Problem extends Error {
  constructor(title, detail, status) {
    super(detail);
    this.title = title;
    this.status = status;
  }
}

/** Address of an endpoint under /api/applications; relative, so the page works behind a path prefix. */
export function address(parts, parameters = {}) {
  const path = ["api", "applications", ...parts].map(encodeURIComponent).join("/");
  const query = new URLSearchParams(parameters);
  return `${path}${query.size > 0 ? `?${query}` : ""}`;
}

export async function ask(parts, parameters = {}, { signal, method = "GET" } = {}) {
  let response;
  try {
    response = await fetch(address(parts, parameters), { method, signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The service does not answer", "Is `lineage serve` still running?", 0);
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Problem(body?.title ?? "The service failed", body?.detail ?? response.statusText, response.status);
}
