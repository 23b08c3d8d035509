// The build: one chunk per page, hashed names under /assets, nothing inline, so that the server's Content-Security-Policy needs no exception.
//
// `npm run dev` serves the sources and sends everything else to a Fairway (FAIRWAY_PORTAL, default https://portal.fairway.localhost:7443).

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const portal = process.env.FAIRWAY_PORTAL ?? "https://portal.fairway.localhost:7443";
const forwarded = { target: portal, changeOrigin: true, secure: false, ws: true };

const EARLY = "/src/shell/early.js";

/** The script that is run before the first paint is no module, which Vite leaves alone: it gets a name with a hash here. */
function early(): Plugin {
    const source = readFileSync(new URL(`.${EARLY}`, import.meta.url), "utf8");
    const fileName = `assets/early-${createHash("sha256").update(source).digest("base64url").slice(0, 8)}.js`;
    return {
        name: "early",
        apply: "build",
        buildStart() {
            this.emitFile({ type: "asset", fileName, source });
        },
        transformIndexHtml: html => html.replace(EARLY, `/${fileName}`),
    };
}

export default defineConfig({
    plugins: [react(), early()],
    build: {
        target: "es2022",
        // Inlined files would be data: addresses, which the policy refuses for scripts and fonts.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        sourcemap: false,
        reportCompressedSize: true,
    },
    test: { setupFiles: ["scripts/test-setup.mjs"] },
    server: { proxy: { "/api": forwarded, "/auth": forwarded, "/k8s": forwarded } },
});
