//! What a resource is called: group, version, kind, name and namespace.

use std::borrow::Cow;

use crate::decode::Fields;
use crate::error::Result;

/// The namespace of what has none, so that it never equals one.
pub(crate) const NOT_A_NAMESPACE: &str = "_non_namespaceable_";
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// Group, version and kind; in a selector, empty means any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl Gvk {
    pub(crate) fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            group: fields.string("group")?,
            version: fields.string("version")?,
            kind: fields.string("kind")?,
        })
    }

    /// Whether a selector's non-empty parts are these.
    pub(crate) fn is_selected(&self, selector: &Self) -> bool {
        selects(selector, &self.group, &self.version, &self.kind)
    }

    fn is_empty(&self) -> bool {
        self.group.is_empty() && self.version.is_empty() && self.kind.is_empty()
    }
}

/// Whether the non-empty parts of a selector are these.
pub(crate) fn selects(selector: &Gvk, group: &str, version: &str, kind: &str) -> bool {
    let fits = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
    fits(&selector.kind, kind) && fits(&selector.group, group) && fits(&selector.version, version)
}

impl std::fmt::Display for Gvk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or = |text: &str, otherwise: &str| match text.is_empty() {
            true => otherwise.to_owned(),
            false => text.to_owned(),
        };
        write!(
            f,
            "{}.{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]")
        )
    }
}

/// Group and version of an `apiVersion`.
pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The name of a resource; in a selector, empty parts mean any.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ResId {
    pub(crate) gvk: Gvk,
    pub(crate) name: String,
    /// As written, or [`NOT_A_NAMESPACE`].
    pub(crate) namespace: String,
}

impl ResId {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self> {
        Ok(Self {
            gvk: Gvk::decode(fields)?,
            name: fields.string("name")?,
            namespace: fields.string("namespace")?,
        })
    }

    pub(crate) fn effective_namespace(&self) -> &str {
        effective(&self.namespace)
    }

    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty() || selector.effective_namespace() == self.effective_namespace())
            && self.gvk.is_selected(&selector.gvk)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gvk.is_empty() && self.name.is_empty() && self.namespace.is_empty()
    }

    /// What makes two resources the same.
    pub(crate) fn into_key(mut self) -> Self {
        if self.namespace.is_empty() {
            self.namespace = DEFAULT_NAMESPACE.to_owned();
        }
        self
    }
}

/// The namespace that an empty one means.
pub(crate) fn effective(namespace: &str) -> &str {
    match namespace {
        "" => DEFAULT_NAMESPACE,
        other => other,
    }
}

impl std::fmt::Display for ResId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name: Cow<'_, str> = match self.name.is_empty() {
            true => "[noName]".into(),
            false => self.name.as_str().into(),
        };
        let namespace = match self.namespace.as_str() {
            "" | NOT_A_NAMESPACE => "[noNs]",
            other => other,
        };
        write!(f, "{}/{name}.{namespace}", self.gvk)
    }
}
