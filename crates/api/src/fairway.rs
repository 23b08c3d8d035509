//! `fairway.dev`: what has no word upstream.

use crate::Kind;

/// The group.
pub const GROUP: &str = "fairway.dev";

/// A Git repository of the workspace's owner.
pub const REPOSITORY: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "Repository",
    plural: "repositories",
};

/// A place where the catalog reads entities.
pub const CATALOG_LOCATION: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "CatalogLocation",
    plural: "cataloglocations",
};

/// An entity of the catalog, in Backstage's form.
pub const CATALOG_ENTITY: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "CatalogEntity",
    plural: "catalogentities",
};

/// An object that was deleted and can be brought back for a while.
pub const TOMBSTONE: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "Tombstone",
    plural: "tombstones",
};

/// One run of a software template.
pub const VOYAGE: Kind = Kind {
    group: GROUP,
    version: "v1alpha1",
    kind: "Voyage",
    plural: "voyages",
};

/// The UID of the Voyage that made an object.
pub const VOYAGE_ANNOTATION: &str = "fairway.dev/voyage";

/// How the domain that owns a kind answers a dry run: what the change would do to what runs (`none`, `live change`, `migration`,
/// `restart`, `re-creation`, `data loss`). It is never stored.
pub const IMPACT_ANNOTATION: &str = "fairway.dev/impact";
/// Says why.
pub const IMPACT_REASON_ANNOTATION: &str = "fairway.dev/impact-reason";

/// Says of a CustomResourceDefinition for a kind that Fairway serves itself who serves it: `fairway` or `definition`.
pub const SERVED_BY_ANNOTATION: &str = "fairway.dev/served-by";
