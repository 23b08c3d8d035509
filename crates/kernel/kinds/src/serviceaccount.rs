//! ServiceAccount: its references to secrets are names only.

use serde_json::{Value, json};

use crate::meta;
use crate::read;
use crate::strategy::{Profile, Strategy, WriteContext};

const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

pub(crate) struct ServiceAccount;

fn only_names(obj: &mut Value) {
    for secret in read::each_mut(obj, "secrets") {
        if secret.as_object().is_some_and(|s| s.keys().any(|k| k != "name")) {
            *secret = secret
                .get("name")
                .map_or_else(|| json!({}), |name| json!({"name": name}));
        }
    }
}

impl Strategy for ServiceAccount {
    fn profile(&self) -> &'static Profile {
        &Profile::NAMESPACED
    }

    fn prepare_create(&self, _ctx: &WriteContext<'_>, obj: &mut Value) {
        only_names(obj);
    }

    fn prepare_update(&self, _ctx: &WriteContext<'_>, obj: &mut Value, _old: &Value) {
        only_names(obj);
    }

    fn warnings(&self, _ctx: &WriteContext<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
        let had = old.is_some_and(|old| meta::annotation(old, ENFORCE_MOUNTABLE).is_some());
        if had || meta::annotation(obj, ENFORCE_MOUNTABLE).is_none() {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{ENFORCE_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        )]
    }
}
