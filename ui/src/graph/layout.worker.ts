// Lays graphs out beside the page, one after the other.

import { type LayoutRequest, layered } from "./layered";

addEventListener("message", ({ data }: MessageEvent<LayoutRequest>) => {
  try {
    postMessage({ placed: layered(data) });
  } catch (error) {
    postMessage({ failed: String(error) });
  }
});
