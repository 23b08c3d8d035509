//! Whose an object is: by annotation, by label, or by both.
//!
//! The annotation names the object too, `<application>:<group>/<kind>:<namespace>/<name>`, so that a copy of it on
//! another object (a controller that copies annotations to its children) is not taken for ownership.

use serde_json::Value;
use thiserror::Error;

use crate::annotation::{self, INSTALLATION_ID, TRACKING_ID};
use crate::diff::ignore::Ignored;
use crate::key::{self, ResourceKey};

/// The label by which objects are tracked unless the configuration names another.
pub const DEFAULT_LABEL: &str = "app.kubernetes.io/instance";
/// The longest value of a label.
const MAX_LABEL: usize = 63;

/// How objects are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// By the annotation. Also what an unknown word means.
    #[default]
    Annotation,
    /// By the label alone.
    Label,
    /// By the annotation; the label is for people.
    AnnotationAndLabel,
}

impl Method {
    /// The method that a word in `application.resourceTrackingMethod` means.
    pub fn parse(word: &str) -> Self {
        match word {
            "label" => Self::Label,
            "annotation+label" => Self::AnnotationAndLabel,
            _ => Self::Annotation,
        }
    }
}

/// How one installation tracks its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracking {
    /// By what.
    pub method: Method,
    /// The label's key.
    pub label: String,
    /// Tells installations apart that share a cluster; empty if there is one.
    pub installation: String,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            method: Method::default(),
            label: DEFAULT_LABEL.to_owned(),
            installation: String::new(),
        }
    }
}

/// What the tracking annotation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackingId {
    /// The application: its name, or `<namespace>_<name>` where it lives outside the control plane's namespace.
    pub application: String,
    /// The object that it was written for.
    pub object: ResourceKey,
}

/// A text that is no tracking id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("wrong resource tracking format, should be <application-name>:<group>/<kind>:<namespace>/<name>")]
pub struct BadTrackingId;

impl std::str::FromStr for TrackingId {
    type Err = BadTrackingId;

    fn from_str(text: &str) -> Result<Self, BadTrackingId> {
        let mut parts = text.splitn(3, ':');
        let (Some(application), Some(kind), Some(place)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(BadTrackingId);
        };
        let pair = |text: &str| match text.split('/').collect::<Vec<_>>().as_slice() {
            [first, second] => Ok(((*first).to_owned(), (*second).to_owned())),
            _ => Err(BadTrackingId),
        };
        let ((group, kind), (namespace, name)) = (pair(kind)?, pair(place)?);
        Ok(Self {
            application: application.to_owned(),
            object: ResourceKey {
                group,
                kind,
                namespace,
                name,
            },
        })
    }
}

impl std::fmt::Display for TrackingId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ResourceKey {
            group,
            kind,
            namespace,
            name,
        } = &self.object;
        write!(f, "{}:{group}/{kind}:{namespace}/{name}", self.application)
    }
}

impl Tracking {
    /// Marks an object as an application's. `namespace` is where it goes if it does not say.
    pub fn mark(&self, object: &mut Value, application: &str, namespace: &str) {
        if self.method == Method::Label {
            // As it is: cutting it would name another application. The API refuses what is too long, and says so.
            annotation::set_label(object, &self.label, application);
            return;
        }
        let mut id = TrackingId {
            application: application.to_owned(),
            object: ResourceKey::of(object),
        };
        if id.object.namespace.is_empty() {
            namespace.clone_into(&mut id.object.namespace);
        }
        match self.installation.as_str() {
            "" => annotation::remove(object, INSTALLATION_ID),
            installation => annotation::set(object, INSTALLATION_ID, installation),
        }
        annotation::set(object, TRACKING_ID, &id.to_string());
        if self.method == Method::AnnotationAndLabel {
            annotation::set_label(object, &self.label, label_value(application));
        }
    }

    /// The tracking id of an object, if it has one of this installation.
    pub fn id(&self, object: &Value) -> Option<TrackingId> {
        if self.method == Method::Label || annotation::get(object, INSTALLATION_ID) != self.installation {
            return None;
        }
        annotation::get(object, TRACKING_ID).parse().ok()
    }

    /// The application that an object is marked with; none if it is nobody's.
    pub fn owner(&self, object: &Value) -> Option<String> {
        match self.method {
            Method::Label => {
                Some(annotation::label(object, &self.label).to_owned()).filter(|name| !name.is_empty())
            }
            _ => self
                .id(object)
                .map(|id| id.application)
                .filter(|name| !name.is_empty()),
        }
    }

    /// Whether the mark on a live object was written for it, and not copied from another. With the target the id that it
    /// should have is known, which matters while a kind moves to another group.
    pub fn is_self_referenced(&self, live: &Value, target: Option<&Value>) -> bool {
        let expected = match (self.method, target) {
            (Method::Label, _) => return true,
            (_, Some(target)) => ResourceKey::of(target),
            (_, None) => match self.id(live) {
                Some(id) => id.object,
                None => return true,
            },
        };
        let own = ResourceKey::of(live);
        // What lives in the cluster carries its application's namespace in its id.
        (own.namespace == expected.namespace || own.namespace.is_empty())
            && (own.name, own.group, own.kind) == (expected.name, expected.group, expected.kind)
    }

    /// Who else claims an object that an application is about to take: the condition's message, or none.
    pub fn conflict(&self, live: &Value, application: &str) -> Option<String> {
        let other = self.owner(live).filter(|owner| owner != application)?;
        let shown = |name: &str| name.replacen('_', "/", 1);
        Some(format!(
            "{}/{} is part of applications {} and {}",
            key::kind(live),
            key::name(live),
            shown(application),
            shown(&other)
        ))
    }

    /// Whether an application says that it does not mind whose mark an object carries: then sharing it is meant, and neither takes it
    /// from the other.
    pub fn is_shared_on_purpose(&self, target: &Value, live: &Value, ignored: &Ignored) -> bool {
        let (mut target, mut live) = (target.clone(), live.clone());
        let is_marked = self.owner(&live).is_some();
        ignored.apply(Some(&mut target), Some(&mut live));
        is_marked && self.owner(&live).is_none()
    }

    /// Takes the marks away that a change of method leaves behind, so that it does not make everything OutOfSync.
    pub fn normalize(&self, target: &Value, live: &mut Value) {
        if self.method == Method::Label
            || annotation::label(live, &self.label).is_empty()
            || key::is_definition(live)
        {
            return;
        }
        // An id that is there stays: if it is another one, the object has moved, and that is a difference.
        let wanted = annotation::get(target, TRACKING_ID);
        if annotation::get(live, TRACKING_ID).is_empty() && !wanted.is_empty() {
            annotation::set(live, TRACKING_ID, wanted);
        }
        if annotation::label(target, &self.label).is_empty() {
            annotation::remove_label(live, &self.label);
        }
    }

    /// Takes all marks away, for objects that outlive their application.
    pub fn unmark(&self, object: &mut Value) {
        if self.method != Method::Label {
            annotation::remove(object, TRACKING_ID);
            annotation::remove(object, INSTALLATION_ID);
        }
        if self.method != Method::Annotation {
            annotation::remove_label(object, &self.label);
        }
    }
}

/// As much of a name as a label can hold, ending in a letter or digit.
fn label_value(name: &str) -> &str {
    let mut end = name.len().min(MAX_LABEL);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    match name.len() <= MAX_LABEL {
        true => name,
        false => name[..end].trim_end_matches(|c: char| !c.is_ascii_alphanumeric()),
    }
}

#[cfg(test)]
mod tests;
