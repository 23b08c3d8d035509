import { describe, expect, it } from "vitest";
import { masked, maskedTogether } from "./secrets";

const secret = (more: Record<string, unknown>) => ({ apiVersion: "v1", kind: "Secret", metadata: { name: "key" }, ...more });

describe("a Secret is shown without its values", () => {
    it.each([
        ["data", secret({ data: { a: "c2VjcmV0" } }), secret({ data: { a: "++++++++" } })],
        ["text", secret({ stringData: { a: "secret" } }), secret({ stringData: { a: "++++++++" } })],
        ["data that is none", secret({ data: "c2VjcmV0" }), secret({ data: "++++++++" })],
        ["no data", secret({ data: null }), secret({ data: null })],
        ["no version", { kind: "Secret", data: { a: "c2VjcmV0" } }, { kind: "Secret", data: { a: "++++++++" } }],
        [
            "what kubectl remembers", secret({ metadata: { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"a\":\"c2VjcmV0\"}}", b: "c" } } }),
            secret({ metadata: { annotations: { "kubectl.kubernetes.io/last-applied-configuration": "++++++++", b: "c" } } }),
        ],
        ["a ConfigMap", { apiVersion: "v1", kind: "ConfigMap", data: { a: "b" } }, { apiVersion: "v1", kind: "ConfigMap", data: { a: "b" } }],
        ["a Secret of somebody else's", { apiVersion: "example.com/v1", kind: "Secret", data: { a: "b" } }, { apiVersion: "example.com/v1", kind: "Secret", data: { a: "b" } }],
        ["nothing", undefined, undefined],
    ])("%s", (_what, object, expected) => {
        expect(masked<unknown>(object)).toEqual(expected);
    });
    it("and a difference still shows, in whichever field it is written", () => {
        const [live, target] = maskedTogether([secret({ data: { a: "b25l", b: "b25l" } }), secret({ stringData: { a: "one", b: "two" } })]) as { data?: unknown; stringData?: unknown }[];
        expect(live?.data).toEqual({ a: "++++++++", b: "++++++++" });
        expect(target?.stringData).toEqual({ a: "++++++++", b: "+++++++++" });
    });
    it("and the object itself stays what it is", () => {
        const object = secret({ data: { a: "c2VjcmV0" } });
        masked(object);
        expect(object).toEqual(secret({ data: { a: "c2VjcmV0" } }));
    });
});
