import { describe, expect, it } from "vitest";
import type { EndpointSlice, Service } from "../../api";
import { conditionsOf, endpointsOf, explainCommand, isOfSystem, portsOf, pathOf, readHeaders, standing } from "./model";

describe("how something stands", () => {
    it.each([
        [undefined, "Pending", false],
        [[{ type: "Accepted", status: "True" }, { type: "Programmed", status: "True" }], "Programmed", true],
        [[{ type: "Accepted", status: "False", reason: "InvalidParameters" }, { type: "Programmed", status: "True" }], "InvalidParameters", false],
        [[{ type: "Accepted", status: "True" }], "Accepted", true],
        [[{ type: "Programmed", status: "Unknown" }], "NotProgrammed", false],
    ])("%j", (conditions, word, isGood) => {
        expect(standing(conditions, ["Accepted", "Programmed"])).toMatchObject({ word, isGood });
    });
});

describe("behind a Service", () => {
    it("are the endpoints of all its slices, those that answer first", () => {
        const slice = (...endpoints: unknown[]): EndpointSlice => ({ addressType: "IPv4", metadata: { namespace: "a" }, endpoints }) as unknown as EndpointSlice;
        const found = endpointsOf([
            slice({ addresses: ["10.0.0.3"], conditions: { ready: false } }, { addresses: ["10.0.0.2"], conditions: { ready: true }, targetRef: { kind: "VirtualMachineInstance", name: "web" } }),
            slice({ addresses: ["10.0.0.1"], nodeName: "n" }), { addressType: "IPv4", metadata: {} },
        ]);
        expect(found.map(it => [it.address, it.isReady, it.target?.namespace])).toEqual([["10.0.0.1", true, undefined], ["10.0.0.2", true, "a"], ["10.0.0.3", false, undefined]]);
    });
    it.each([
        [{ ports: [{ port: 80, targetPort: 8080, name: "http" }, { port: 53, protocol: "UDP", targetPort: 53 }] }, "http 80/TCP → 8080, 53/UDP"],
        [{}, ""],
    ])("ports are told: %j", (spec, expected) => {
        expect(portsOf({ spec } as unknown as Service)).toBe(expected);
    });
});

it.each([["kube-system", true], ["openshift-gitops", true], ["fairway-images", true], ["kubernetes", false], ["default", false], ["user-vms", false]])("%s is of the system: %s", (name, expected) => {
    expect(isOfSystem(name)).toBe(expected);
});

describe("headers", () => {
    it.each([
        ["Authorization: APIKEY a:b\n\nX-A: 1", { Authorization: "APIKEY a:b", "X-A": "1" }, undefined],
        ["", {}, undefined], ["no colon", {}, "no colon"], [": x", {}, ": x"], ["a b: c", {}, "a b: c"],
    ])("%j", (text, headers, wrong) => {
        expect(readHeaders(text)).toEqual(wrong === undefined ? { headers } : { headers, wrong });
    });
});

it("a request is explained in a terminal with everything that was written", () => {
    expect(explainCommand("GET", "https://a/?b=1&c=$(id)", { Authorization: "APIKEY x'y" })).toBe("fairway gateway explain GET 'https://a/?b=1&c=$(id)' --header 'Authorization: APIKEY x'\\''y'");
});

describe("pages of objects", () => {
    it.each([["Gateway", "a", "web", "/gateways/gateways/a/web"], ["AuthPolicy", "a", "x", "/gateways/authpolicies/a/x"], ["HTTPRoute", "a", "b/c", "/gateways/httproutes/a/b%2Fc"], ["TLSRoute", "a", "b", "/gateways/tlsroutes/a/b"], ["DNSPolicy", "a", "b", "/gateways/dnspolicies/a/b"]])("%s %s/%s", (kind, namespace, name, path) => {
        expect(pathOf(kind, namespace, name)).toBe(path);
    });
    it("show conditions of all who report some", () => {
        const one = [{ type: "Accepted", status: "True" }];
        expect(conditionsOf({ parents: [{ parentRef: { namespace: "a", name: "web", sectionName: "http" }, conditions: one }, { parentRef: { name: "silent" } }] })).toEqual([{ of: "a/web/http", conditions: one }]);
        expect(conditionsOf({ conditions: one, listeners: [{ name: "http", conditions: one }] }).map(it => it.of)).toEqual(["", "http"]);
        expect(conditionsOf(undefined)).toEqual([]);
    });
});
