//! The first administrator of a new installation: made once, and the password told once.
//!
//! The keys of root's realm are written last, and mark that it was done: whoever removes the administrator later does not get a new
//! one with the next start, and a start that broke off is done again.

use fairway_api::identity::{CREDENTIAL, USER};
use fairway_controller::{Clients, Failure};
pub use fairway_portal_realm::directory::ADMINISTRATOR;
use fairway_portal_realm::directory::{REALM_OBJECT, ROOT};
use fairway_portal_realm::password;
use serde_json::json;

use crate::objects::Objects;
use crate::realms::now;
use crate::{random, signer};

const BINDING: &str = "fairway:administrator";

/// Makes the administrator if the installation has none yet; the password. The clients are those of [`crate::FIRST_USER`].
pub async fn first_administrator(clients: Clients) -> Result<Option<String>, Failure> {
    let objects = Objects::new(clients);
    if objects.get(ROOT, CREDENTIAL, REALM_OBJECT).await?.is_some() {
        return Ok(None);
    }
    let chosen = random::bytes().map_err(|error| Failure::NotYet(error.to_string()))?;
    let chosen = password::generate(&chosen);
    let hashed = {
        let chosen = chosen.clone();
        tokio::task::spawn_blocking(move || crate::password::hash(&chosen)).await
    };
    let hash = match hashed {
        Ok(Ok(hash)) => hash,
        Ok(Err(error)) => return Err(Failure::NotYet(error.to_string())),
        Err(error) => return Err(Failure::NotYet(error.to_string())),
    };
    objects
        .create(
            ROOT,
            USER,
            ADMINISTRATOR,
            &json!({"displayName": "Administrator"}),
        )
        .await?;
    let secret = json!({"passwordHash": hash});
    let credential = format!("user.{ADMINISTRATOR}");
    if !objects.create(ROOT, CREDENTIAL, &credential, &secret).await? {
        // Left by a start that broke off before anybody was told the password.
        if let Some(read) = objects.get(ROOT, CREDENTIAL, &credential).await? {
            objects.change(ROOT, CREDENTIAL, &read, &secret).await?;
        }
    }
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": BINDING},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("{ROOT}/{ADMINISTRATOR}")}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    objects.requests(ROOT)?.create(bindings, &binding).await?;
    signer::make(&objects, ROOT, None, now()).await?;
    Ok(Some(chosen))
}
