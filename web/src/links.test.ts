import { describe, expect, it } from "vitest";
import { HOMES, pageAt, pageOf, thingAt } from "./links";
import { EXPLAINED } from "./widgets/Why";

describe("objects have pages", () => {
    it.each([
        [{ group: "kubevirt.io", kind: "VirtualMachine", namespace: "a", name: "web" }, "/machines/a/web"],
        [{ group: "kubevirt.io", kind: "VirtualMachineInstance", namespace: "a", name: "web" }, "/machines/a/web"],
        [{ kind: "Service", namespace: "a", name: "web" }, "/gateways/services/a/web"],
        [{ group: "serving.knative.dev", kind: "Service", namespace: "a", name: "web" }, undefined],
        [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", namespace: "a", name: "b/c" }, "/gateways/httproutes/a/b%2Fc"],
        [{ group: "fairway.dev", kind: "Repository", name: "web" }, "/repositories/root/web"],
        [{ kind: "ConfigMap", namespace: "a", name: "web" }, undefined],
    ])("%j: %s", (object, expected) => {
        expect(pageOf(object)).toBe(expected);
    });
    it("whatever the group is, if that is not known", () => {
        expect(pageOf({ kind: "Application", namespace: "a", name: "web" }, false)).toBe("/applications/a/web");
    });
    it.each([
        [{ group: "subresources.kubevirt.io", plural: "virtualmachines", namespace: "a", name: "web" }, "/machines/a/web"],
        [{ group: "kuadrant.io", plural: "authpolicies", namespace: "a", name: "web" }, "/gateways/authpolicies/a/web"],
        [{ group: "", plural: "services", namespace: "a", name: "web" }, "/gateways/services/a/web"],
        [{ group: "fairway.dev", plural: "repositories", name: "web" }, "/repositories/root/web"],
        [{ group: "", plural: "configmaps", namespace: "a", name: "web" }, undefined],
    ])("by the word in paths: %j", (object, expected) => {
        expect(pageAt(object)).toBe(expected);
    });
    it.each([
        ["/apis/argoproj.io/v1alpha1/namespaces/openshift-gitops/applications/web", "/applications/openshift-gitops/web"],
        ["/apis/fairway.dev/v1alpha1/repositories/web", "/repositories/root/web"],
        ["/api/v1/namespaces/a/services/web", "/gateways/services/a/web"],
        ["/api/v1/namespaces/a", undefined],
        ["/apis/argoproj.io/v1alpha1/namespaces/a/appprojects/web", undefined],
        ["", undefined],
    ])("by path: %s", (path, expected) => {
        expect(thingAt(path)?.to).toBe(expected);
    });
    it("and every one of them can be asked why", () => {
        expect(HOMES.filter(it => !EXPLAINED.has(it.kind)).map(it => it.kind)).toEqual([]);
    });
});
