import { expect, it } from "vitest";
import type { CatalogEntity } from "../api/kinds";
import { objectNameOf } from "./live";

const kept = (name: string, entity: unknown): CatalogEntity => ({ metadata: { name }, spec: { entity } }) as CatalogEntity;
const OBJECTS = [
    kept("odd", {}), kept("none", undefined),
    kept("component.default.shop", { kind: "Component", metadata: { name: "shop" } }),
    kept("component.team.my-api.x-0123456789abcdef", { kind: "Component", metadata: { name: "My_API", namespace: "team" } }),
];

it.each([
    ["component:default/shop", "component.default.shop"],
    ["component:team/my_api", "component.team.my-api.x-0123456789abcdef"],
    ["Component:team/My_API", "component.team.my-api.x-0123456789abcdef"],
    ["component:team/shop", undefined],
])("the object of %s is %s", (ref, name) => expect(objectNameOf(OBJECTS, ref)).toBe(name));
