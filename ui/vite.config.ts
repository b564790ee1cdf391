// Builds the page into lineage_page/dist/: index.html, and beside it static/ with all that it loads, named by what is in it.

import { defineConfig } from "vite";

export default defineConfig({
  base: "./", // addresses are relative, so the page works behind a path prefix
  build: {
    outDir: "lineage_page/dist",
    emptyOutDir: true,
    assetsDir: "static",
    assetsInlineLimit: 0, // the Content-Security-Policy allows no data: addresses
    modulePreload: { polyfill: false },
    target: ["chrome123", "firefox120", "safari17.5"], // the first with light-dark() in CSS
    chunkSizeWarningLimit: 700, // kB: Cytoscape is one piece, and loaded only by the views that draw
  },
  worker: { format: "es" },
});
