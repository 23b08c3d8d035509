//! What is known of kinds: whether they live in namespaces, and how their lists merge.
//!
//! The original keeps this in globals of its process, which is why a kustomization's `openapi` field acts at a distance: a
//! schema of its own replaces the built-in one unless that has been looked at before. The state is a value here, one
//! per build, and goes through the same steps.

mod scope;
mod shapes;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use serde_json::Value;

pub(crate) use shapes::Schema;
use shapes::{Layers, Shapes};

use crate::error::{Error, Result};

/// The only version of Kubernetes whose schema the original has built in.
const BUILTIN_VERSION: &str = "v1.21.2";

/// Whether the built-in schema is among those that are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Builtin {
    NotRead,
    /// Asked for, but not needed yet.
    Delayed,
    Read,
}

/// The schemas of one build.
#[derive(Debug)]
pub(crate) struct OpenApi {
    version: RefCell<String>,
    custom: RefCell<Option<Arc<Shapes>>>,
    layers: RefCell<Layers>,
    up_to_date: Cell<bool>,
    builtin: Cell<Builtin>,
}

impl OpenApi {
    pub(crate) fn new() -> Self {
        Self {
            version: RefCell::default(),
            custom: RefCell::default(),
            layers: RefCell::default(),
            up_to_date: Cell::new(false),
            builtin: Cell::new(Builtin::NotRead),
        }
    }

    /// Takes note of a kustomization's `openapi`; the first one that says something counts.
    pub(crate) fn set(&self, version: Option<&str>, document: Option<&Value>) -> Result<()> {
        if !self.version.borrow().is_empty() || self.custom.borrow().is_some() {
            return Ok(());
        }
        if let Some(document) = document {
            if version.is_some() {
                return Err(Error::new(
                    "openapi: a built-in version and a schema file are given; use one of them",
                ));
            }
            *self.custom.borrow_mut() = Some(Arc::new(Shapes::from_openapi(document)));
            *self.version.borrow_mut() = "custom".to_owned();
            self.up_to_date.set(false);
            return Ok(());
        }
        match version {
            None | Some("") => Ok(()),
            Some(BUILTIN_VERSION) => {
                *self.version.borrow_mut() = BUILTIN_VERSION.to_owned();
                self.up_to_date.set(false);
                Ok(())
            }
            Some(other) => Err(Error::new(format!(
                "the specified OpenAPI version is not built in: {other}; {BUILTIN_VERSION} is"
            ))),
        }
    }

    fn bring_up_to_date(&self) {
        if self.up_to_date.replace(true) {
            return;
        }
        let mut shared = self.layers.borrow_mut();
        let layers = Arc::make_mut(&mut shared);
        match &*self.custom.borrow() {
            Some(custom) => layers.push(custom.clone()),
            None => {
                layers.push(shapes::builtin());
                self.builtin.set(Builtin::Read);
            }
        }
        if self.builtin.get() == Builtin::Delayed {
            layers.push(shapes::builtin());
            self.builtin.set(Builtin::Read);
        }
    }

    /// Whether resources of a kind are known to live in no namespace.
    pub(crate) fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        if let Some(namespaced) = scope::is_namespaced(api_version, kind) {
            return !namespaced;
        }
        if !self.up_to_date.get() {
            if self.custom.borrow().is_some() {
                self.bring_up_to_date();
            } else {
                if self.builtin.get() == Builtin::NotRead {
                    self.builtin.set(Builtin::Delayed);
                }
                return false;
            }
        }
        let layers = self.layers.borrow();
        let known = layers
            .iter()
            .rev()
            .find_map(|layer| layer.is_namespaced(api_version, kind));
        known == Some(false)
    }

    /// The schema of a kind.
    pub(crate) fn schema(&self, api_version: &str, kind: &str) -> Option<Schema> {
        self.bring_up_to_date();
        Schema::of_kind(&self.layers.borrow(), api_version, kind)
    }
}
