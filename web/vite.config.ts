// The build: one chunk per page, hashed names under /assets, nothing inline, so that the server's Content-Security-Policy needs no exception.
//
// `npm run dev` serves the sources and sends everything else to a Fairway (FAIRWAY_PORTAL, default https://portal.fairway.localhost:7443).

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const portal = process.env.FAIRWAY_PORTAL ?? "https://portal.fairway.localhost:7443";
const forwarded = { target: portal, changeOrigin: true, secure: false, ws: true };

export default defineConfig({
    plugins: [react()],
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
