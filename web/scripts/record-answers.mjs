// Writes src/api/rest/recorded/*.json: answers of a running Fairway's REST APIs, which have no OpenAPI document, so that the types that are
// written by hand in src/api/rest are held against what the server really says (src/api/rest/rest.test.ts).
//
//     fairway new virtual-machine --set name=web ... -y       # with a branch `change` pushed to its repository, and default/blank a machine that runs
//     SESSION='__Host-fairway-session=...' node scripts/record-answers.mjs https://portal.fairway.localhost:7443
//
// SESSION is the cookie of somebody who is signed in; a site that the machine does not resolve is asked at 127.0.0.1.

import { mkdirSync, writeFileSync } from "node:fs";
import https from "node:https";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [portal = "https://portal.fairway.localhost:7443"] = process.argv.slice(2);
const cookie = process.env.SESSION ?? "";
const out = join(dirname(fileURLToPath(import.meta.url)), "../src/api/rest/recorded");
const lookup = (_host, options, done) => (options.all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4));

function ask(method, path, body, csrf = "") {
    const headers = { Accept: "application/json", Cookie: cookie, "X-Fairway-Workspace": "root", "X-Fairway-CSRF": csrf, "Content-Type": "application/json", Origin: portal };
    return new Promise((resolve, reject) => {
        const request = https.request(new URL(path, portal), { method, headers, lookup, rejectUnauthorized: false }, answer => {
            let text = "";
            answer.on("data", chunk => { text += chunk; });
            answer.on("end", () => {
                if (answer.statusCode < 300 && answer.headers["content-type"]?.includes("json")) resolve(JSON.parse(text));
                else reject(new Error(`${method} ${path} answered ${answer.statusCode}: ${text.slice(0, 300)}`));
            });
        });
        request.on("error", reject);
        request.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

/** A few of many are enough; long texts say nothing about types. */
function shortened(value) {
    if (typeof value === "string") return value.length > 800 ? `${value.slice(0, 800)}...` : value;
    if (Array.isArray(value)) return value.slice(0, 3).map(shortened);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, key === "csrf" ? "" : shortened(inner)]));
}

const session = await ask("GET", "/auth/session");
const post = (path, body) => ask("POST", path, body, session.csrf);
const repo = "/api/gitea/v1/repos/root/web";
const component = "/api/catalog/entities/by-name/component/default/web";
const gateway = "/k8s/clusters/root/apis/gateway.fairway.dev/v1alpha1";
const machines = "/k8s/clusters/root/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances";
const template = { templateRef: "template:default/virtual-machine", values: { name: "other", sshKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIL6yX6T0mYb5b8S7n2F3QJxqkZgZKb7o1xkYkq1o2r3 a@b", connectivity: true }, secrets: {} };

const open = await ask("GET", `${repo}/pulls?state=open`);
const pull = open[0] ?? (await post(`${repo}/pulls`, { title: "Write more", head: "change", base: "main", body: "" }));
await post(`${repo}/issues/${pull.number}/comments`, { body: "Looks good" });
const [newest] = await ask("GET", `${repo}/commits?limit=1&stat=false`);
const repoURL = encodeURIComponent((await ask("GET", repo)).clone_url);

const answers = {
    session,
    "catalog-page": await ask("GET", "/api/catalog/entities/by-query?limit=3"),
    "catalog-entity": await ask("GET", component),
    "catalog-live": await ask("GET", `${component}/live`),
    "scaffolder-schema": await ask("GET", "/api/scaffolder/v2/templates/default/template/virtual-machine/parameter-schema"),
    "scaffolder-dry-run": await post("/api/scaffolder/v2/dry-run", template),
    "gitea-repo": await ask("GET", repo),
    "gitea-branches": await ask("GET", `${repo}/branches`),
    "gitea-contents": await ask("GET", `${repo}/contents?ref=main`),
    "gitea-file": await ask("GET", `${repo}/contents/README.md?ref=main`),
    "gitea-commits": await ask("GET", `${repo}/commits?limit=2&stat=false`),
    "gitea-commit": await ask("GET", `${repo}/git/commits/${newest.sha}`),
    "gitea-pull": await ask("GET", `${repo}/pulls/${pull.number}`),
    "gitea-comments": await ask("GET", `${repo}/issues/${pull.number}/comments`),
    "gitea-statuses": await ask("GET", `${repo}/commits/${newest.sha}/statuses`),
    "argo-tree": await ask("GET", "/k8s/clusters/root/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications/web/tree"),
    "portal-activity": await ask("GET", "/api/fairway/activity?workspace=root&limit=20"),
    "portal-why": await ask("GET", "/api/fairway/why?workspace=root&kind=Application&namespace=openshift-gitops&name=web"),
    "portal-plan": await ask("GET", `/api/fairway/applications/plan?workspace=root&namespace=openshift-gitops&name=web&repoURL=${repoURL}&pull=${pull.number}`),
    "gateway-explanation": await post("/api/fairway/gateway/explain?workspace=root", { method: "GET", url: "https://web.apps.fairway.localhost/", headers: {} }),
    "gateway-rules": await ask("GET", `${gateway}/publishedrules`),
    "gateway-counters": await ask("GET", `${gateway}/counters`),
    "machines-history": await ask("GET", `${machines}/blank/guestosinfo/usage/history`),
};
mkdirSync(out, { recursive: true });
for (const [name, answer] of Object.entries(answers)) {
    writeFileSync(join(out, `${name}.json`), `${JSON.stringify(shortened(answer), null, 2)}\n`);
    console.log(name);
}
