import { expect, it } from "vitest";
import { ApiError, type KubernetesObject } from "../../api";
import { contentText } from "./contents";

const named = (name: string, namespace?: string): KubernetesObject => ({ metadata: { name, namespace } });

it.each([
    ["names are told, in order", { state: "live", items: [named("web", "b"), named("db", "a")] }, "a/db, b/web"],
    ["what every workspace has is not worth a word", { state: "live", items: [named("default"), named("kube-system"), named("shop")] }, "shop"],
    ["one whose namespace is called so is", { state: "live", items: [named("web", "default")] }, "default/web"],
    ["nothing is nothing", { state: "live", items: [] }, "none"],
    ["who may not look does not say that there is nothing", { state: "failed", items: [], error: new ApiError(403, "no right") }, "could not be read: no right"],
    ["nor who has not looked yet", { state: "loading", items: [] }, "still being counted"],
    ["many are counted", { state: "live", items: Array.from({ length: 10 }, (_, at) => named(`w${at}`)) }, "w0, w1, w2, w3, w4, w5, w6, w7 and 2 more"],
])("%s", (_why, content, expected) => expect(contentText(content)).toBe(expected));
