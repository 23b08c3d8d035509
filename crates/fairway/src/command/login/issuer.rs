//! Who is asked to sign somebody in: the realm of an organisation, or an issuer that is not Fairway's own, such as a Keycloak.

use std::path::Path;

use anyhow::{Context, bail};
use fairway_portal_realm::client;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

use super::flow::Provider;
use super::wire::Http;
use crate::cli::identity::External;
use crate::cli::workspace::Where;
use crate::command::running::Running;
use crate::data_dir::DataDir;

/// What our own realms are asked for.
const OWN_SCOPE: &str = "openid profile groups offline_access";
/// What another issuer is asked for, as far as it says that it knows it: some refuse what they do not know. Not for offline access:
/// Keycloak refuses it to whoever lacks a role, and renews tokens without it.
const WANTED: [&str; 4] = ["openid", "profile", "email", "groups"];

/// An issuer of tokens.
pub(super) struct Issuer {
    pub(super) url: String,
    /// What it knows this program as.
    pub(super) client_id: String,
    /// Whether it is a realm of a Fairway.
    pub(super) is_own: bool,
}

impl Issuer {
    /// The one that the command line means.
    pub(super) fn find(
        org: &str,
        external: &External,
        sign_in_url: Option<&str>,
        place: &Where,
    ) -> anyhow::Result<Self> {
        if !client::is_name(org) {
            bail!("{org:?} cannot be the name of an organisation");
        }
        match (&external.issuer, &external.client_id) {
            (Some(url), Some(client_id)) => Ok(Self {
                url: url.clone(),
                client_id: client_id.clone(),
                is_own: false,
            }),
            _ => Ok(Self {
                url: realm(org, sign_in_url, place)?,
                client_id: client::COMMAND_LINE.to_owned(),
                is_own: true,
            }),
        }
    }

    /// What it says of itself, and what it will be asked for.
    pub(super) async fn ask(&self, http: &Http, scope: Option<&str>) -> anyhow::Result<Provider> {
        let url = self.url.trim_end_matches('/');
        let metadata = http
            .json(&format!("{url}/.well-known/openid-configuration"))
            .await?;
        if metadata["issuer"] != self.url.as_str() {
            bail!(
                "{} says that it is {}, so it is not believed",
                self.url,
                metadata["issuer"]
            );
        }
        let scope = match (scope, self.is_own) {
            (Some(scope), _) => scope.to_owned(),
            (None, true) => OWN_SCOPE.to_owned(),
            (None, false) => scope_for(&metadata),
        };
        Ok(Provider {
            metadata,
            client_id: self.client_id.clone(),
            scope,
        })
    }

    /// The context of the kubeconfig. That of the realm stays beside that of another issuer.
    pub(super) fn context(&self, org: &str) -> String {
        match self.is_own {
            true => format!("fairway-{org}"),
            false => format!("fairway-{org}-oidc"),
        }
    }
}

/// Where the people of a realm sign in.
fn realm(org: &str, given: Option<&str>, place: &Where) -> anyhow::Result<String> {
    let base = match given {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let data = DataDir::find(place.data.dir.as_deref())?;
            let running = Running::find(&data)?;
            running.and_then(|it| it.sign_in()).with_context(|| {
                format!(
                    "no Fairway runs on {}; start one with `fairway up`, or name another with --sign-in-url",
                    data.path().display()
                )
            })?
        }
    };
    Ok(format!("{base}/realms/{org}"))
}

fn scope_for(metadata: &Value) -> String {
    let known = metadata["scopes_supported"].as_array();
    let is_known = |scope: &str| match known {
        Some(all) => all.iter().any(|it| it == scope),
        // Everybody knows the first, and what else it knows it does not say.
        None => false,
    };
    let asked = WANTED
        .into_iter()
        .filter(|scope| *scope == "openid" || is_known(scope));
    asked.collect::<Vec<_>>().join(" ")
}

/// The certificates of a file.
pub(super) fn certificates(file: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let pem = std::fs::read(file).with_context(|| format!("{} could not be read", file.display()))?;
    let found: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(&pem)
        .map(|it| it.map(|certificate| certificate.to_vec()))
        .collect::<Result<_, _>>()
        .with_context(|| format!("{} is not PEM", file.display()))?;
    if found.is_empty() {
        bail!("{} has no certificate", file.display());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::scope_for;

    #[test]
    fn others_are_asked_for_what_they_know() {
        for (known, asked) in [
            (
                json!(["openid", "roles", "offline_access", "email"]),
                "openid email",
            ),
            (json!(["groups"]), "openid groups"),
            (json!(null), "openid"),
        ] {
            assert_eq!(scope_for(&json!({"scopes_supported": known})), asked, "{known}");
        }
    }
}
