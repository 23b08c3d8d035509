//! Server-side apply with one field manager for each controller, so that an object tells who owns which field.

use std::fmt::Debug;

use kube::Error;
use kube::api::{Api, Patch, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Applies objects in the name of one controller.
#[derive(Clone, Copy, Debug)]
pub struct Applier {
    manager: &'static str,
}

impl Applier {
    /// `manager` is the name of the controller; it never changes, or its fields would be orphaned.
    pub const fn new(manager: &'static str) -> Self {
        Self { manager }
    }

    fn params(self) -> PatchParams {
        // A controller is the authority on the fields that it writes.
        PatchParams::apply(self.manager).force()
    }

    /// Applies everything but the status.
    pub async fn apply<K, P>(self, api: &Api<K>, name: &str, desired: &P) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + Debug,
        P: Serialize + Debug,
    {
        api.patch(name, &self.params(), &Patch::Apply(desired)).await
    }

    /// Applies the status.
    pub async fn apply_status<K, P>(self, api: &Api<K>, name: &str, desired: &P) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + Debug,
        P: Serialize + Debug,
    {
        api.patch_status(name, &self.params(), &Patch::Apply(desired))
            .await
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::Api;
    use serde_json::json;

    use super::Applier;
    use crate::fake::Script;

    #[tokio::test]
    async fn fields_are_applied_in_the_name_of_the_controller() {
        let desired =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let script = Script::new()
            .expect(
                "PATCH",
                "/api/v1/namespaces/n/configmaps/a?&force=true&fieldManager=test",
                200,
                desired.clone(),
            )
            .expect(
                "PATCH",
                "/api/v1/namespaces/n/configmaps/a/status?&force=true&fieldManager=test",
                200,
                desired.clone(),
            );
        let api: Api<ConfigMap> = Api::namespaced(script.client(), "n");
        let applier = Applier::new("test");
        assert!(applier.apply(&api, "a", &desired).await.is_ok());
        assert!(applier.apply_status(&api, "a", &desired).await.is_ok());
        let calls = script.finish();
        assert_eq!(calls[0].content_type, "application/apply-patch+yaml");
        assert_eq!(calls[0].body, desired);
    }
}
