// Texts of the software catalog, in Backstage's words.

import { plurals, texts } from "./t";

export const counted = plurals("catalog", { entities: { one: "{n} entity", other: "{n} entities" } });

export const t = texts("catalog", {
    title: "Catalog",
    description: "Everything that is registered, who owns it, and what it depends on.",
    kind: "Kind",
    type: "Type",
    owner: "Owner",
    lifecycle: "Lifecycle",
    system: "System",
    name: "Name",
    tags: "Tags",
    descriptionColumn: "Description",
    all: "All",
    search: "Filter the catalog",
    empty: "The catalog is empty",
    emptyBody: "Put a catalog-info.yaml at the root of a repository, or create something from a template.",
    create: "Create",
    about: "About",
    links: "Links",
    noLinks: "No links.",
    relations: "Relations",
    noRelations: "No relations.",
    depth: "Depth",
    live: "What runs for it",
    why: "Why?",
    whyOf: "Why {kind} {name} is as it is",
    noLive: "No Application and no object belongs to it. The annotations argocd/app-name and backstage.io/kubernetes-id say which do.",
    liveHidden: "You may not list: {kinds}",
    sourceLocation: "Source",
    annotations: "Annotations",
    overview: "Overview",
    yaml: "YAML",
    definition: "Definition",
    cut: "Only {n} of {all} entities are read, by name; filters look at these alone. fairway catalog list has all of them.",
    graphLabel: "Relations of {name}",
    absent: "There is no entity {ref}. Its file may have been moved or deleted.",
    orphan: "This entity is an orphan: its file no longer has it.",
});
