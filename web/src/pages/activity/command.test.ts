import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { auditCommand } from "./command";

const line = (name: string, requestURI: string, more = {}): object => ({
    stage: "ResponseComplete", stageTimestamp: "t", verb: "create", user: { username: "u" }, requestURI, objectRef: { resource: "pods", namespace: "n", name }, responseStatus: { code: 201 }, ...more,
});
const LOG = [
    line("plain", "/api/v1/pods"), line("named", "/clusters/root/api/v1/pods"), line("other", "/clusters/root:acme/api/v1/pods"), line("read", "/api/v1/pods", { verb: "list" }),
    line("begun", "/api/v1/pods", { stage: "RequestReceived" }), line("refused", "/api/v1/pods", { responseStatus: { code: 403 } }), { ...line("health", "/healthz"), objectRef: undefined },
].map(one => JSON.stringify(one)).join("\n");

const hasJq = spawnSync("jq", ["--version"]).status === 0;

it.each([["root", false, ["plain", "named", "refused"]], ["root", true, ["refused"]], ["root:acme", false, ["other"]]])("the command finds in the log of %s, refused only: %s", (workspace, isRefusedOnly, names) => {
    const command = auditCommand(workspace, isRefusedOnly);
    expect(command).toMatch(/^jq -r '.*' DIR\/audit\.log$/);
    // What it finds is jq's to say, where there is one.
    if (!hasJq) return;
    const { stdout, stderr } = spawnSync("sh", ["-c", command.replace(" DIR/audit.log", "")], { input: LOG, encoding: "utf8" });
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n").map(row => row.split("\t")[5])).toEqual(names);
});
