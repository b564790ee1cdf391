// Asks the API. Every failure becomes a Problem with words for people. The service's token, where it asks for one, is kept for as
// long as the tab is open and goes nowhere but into the header.

const KEPT = "lineage-token";

export class Problem extends Error {
  constructor(title, detail, status) {
    super(detail);
    this.title = title;
    this.status = status;
  }
}

function headers() {
  const token = sessionStorage.getItem(KEPT);
  return { Accept: "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
}

/** From now on every question carries this token. */
export const keepToken = (token) => sessionStorage.setItem(KEPT, token);

/** Address of an endpoint under /api/applications; relative, so the page works behind a path prefix. */
export function address(parts, parameters = {}) {
  const path = ["api", "applications", ...parts].map(encodeURIComponent).join("/");
  const query = new URLSearchParams(parameters);
  return `${path}${query.size > 0 ? `?${query}` : ""}`;
}

export async function ask(parts, parameters = {}, { signal, method = "GET" } = {}) {
  let response;
  try {
    response = await fetch(address(parts, parameters), { method, signal, headers: headers() });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The service does not answer", "Is `lineage serve` still running?", 0);
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  throw new Problem(body?.title ?? "The service failed", body?.detail ?? response.statusText, response.status);
}
