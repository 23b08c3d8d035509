//! `scaffolder.backstage.io`: software templates.

use crate::Kind;

/// The group.
pub const GROUP: &str = "scaffolder.backstage.io";

/// A software template. As an object it has no `metadata.title`, `tags` or `links`, which Kubernetes does not know: they are in the
/// annotations below.
pub const TEMPLATE: Kind = Kind {
    group: GROUP,
    version: "v1beta3",
    kind: "Template",
    plural: "templates",
};

/// `metadata.title` of a Template.
pub const TITLE_ANNOTATION: &str = "fairway.dev/title";
/// `metadata.description` of a Template.
pub const DESCRIPTION_ANNOTATION: &str = "fairway.dev/description";
/// `metadata.tags` of a Template, separated by commas.
pub const TAGS_ANNOTATION: &str = "fairway.dev/tags";
