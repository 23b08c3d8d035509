//! How a repository elsewhere is reached: by Argo CD's Secrets and ConfigMaps in the workspace that asks.
//!
//! A Secret of the repository itself counts first; what it lacks of credentials comes from the template (`repo-creds`) with the
//! longest beginning of its address. Certificates and keys of hosts hold for everybody who goes there.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fairway_api::argoproj::{CONTROL_PLANES, REPOSITORY_SECRETS, REPOSITORY_TEMPLATES};
use fairway_controller::{Clients, Requests, WorkspaceId};
use fairway_gitops_sync::project::{is_below, normalize_url};
use serde_json::Value;

use super::{Repository, SourceError, web};

/// Fields that are credentials.
const CREDENTIALS: [&str; 5] = [
    "username",
    "password",
    "bearerToken",
    "sshPrivateKey",
    "tlsClientCertData",
];
/// Credentials by which others than us get a token; those are not asked.
const ELSEWHERE: [&str; 3] = [
    "githubAppPrivateKey",
    "gcpServiceAccountKey",
    "useAzureWorkloadIdentity",
];

/// The fields of a Secret.
type Fields = BTreeMap<String, String>;

/// What is known of a repository beside its address.
#[derive(Clone, Default)]
pub(super) struct Grant {
    fields: Fields,
    /// Certificates to trust there.
    pub(super) ca: Option<String>,
    /// Keys of SSH hosts.
    pub(super) known_hosts: Option<String>,
}

impl Grant {
    /// A field, if it says something.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let text = self.fields.get(name).map(String::as_str);
        text.filter(|text| !text.is_empty())
    }

    /// A field that is a switch.
    pub(super) fn is(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// Name and password; either may be empty.
    pub(super) fn basic(&self) -> Option<(&str, &str)> {
        let (name, password) = (self.text("username"), self.text("password"));
        (name.is_some() || password.is_some())
            .then(|| (name.unwrap_or_default(), password.unwrap_or_default()))
    }

    /// The way over HTTP.
    pub(super) fn way(&self) -> web::Way {
        let owned = |name: &str| self.text(name).map(str::to_owned);
        web::Way {
            ca: self.ca.clone(),
            client_certificate: owned("tlsClientCertData").zip(owned("tlsClientCertKey")),
            is_insecure: self.is("insecure"),
            proxy: owned("proxy"),
            no_proxy: owned("noProxy"),
        }
    }
}

/// The Secrets of a workspace's control planes.
#[derive(Default)]
pub(super) struct Secrets {
    own: Vec<Fields>,
    templates: Vec<Fields>,
}

impl Secrets {
    pub(super) async fn read(clients: &Clients, workspace: &WorkspaceId) -> Result<Self, SourceError> {
        let requests = Requests::new(clients.of(workspace));
        let mut secrets = Self::default();
        for namespace in CONTROL_PLANES {
            let path = format!("/api/v1/namespaces/{namespace}/secrets");
            for (selector, list) in [
                (REPOSITORY_SECRETS, &mut secrets.own),
                (REPOSITORY_TEMPLATES, &mut secrets.templates),
            ] {
                let found = requests.list_selected(&path, selector).await;
                let found = found.map_err(|failure| SourceError::Unreachable(failure.sentence()))?;
                list.extend(found.iter().map(fields));
            }
        }
        Ok(secrets)
    }

    /// The addresses of repositories of charts that have a name.
    pub(super) fn names(&self, project: &str) -> BTreeMap<String, String> {
        let mut names = BTreeMap::new();
        for secret in self.own.iter().filter(|secret| is_for(secret, project)) {
            if let (Some(name), Some(url)) = (secret.get("name"), secret.get("url"))
                && !name.is_empty()
            {
                names.insert(name.clone(), url.clone());
            }
        }
        names
    }

    /// What they say of a repository. `by_registry` takes the credentials of another repository of the same registry, too.
    fn choose(&self, url: &str, project: &str, by_registry: bool) -> Fields {
        let wanted = address(url);
        let url_of = |secret: &Fields| address(secret.get("url").map_or("", String::as_str));
        let own = self
            .own
            .iter()
            .rev()
            .filter(|secret| is_for(secret, project) && url_of(secret) == wanted)
            .max_by_key(|secret| secret.get("project").map_or(0, String::len));
        let mut fields = own.cloned().unwrap_or_default();
        let is_set = |fields: &Fields, name: &str| fields.get(name).is_some_and(|text| !text.is_empty());
        if CREDENTIALS
            .iter()
            .chain(&ELSEWHERE)
            .any(|name| is_set(&fields, name))
        {
            return fields;
        }
        let template = self
            .templates
            .iter()
            .rev()
            .filter(|secret| is_for(secret, project) && is_below(&wanted, &url_of(secret)))
            .max_by_key(|secret| url_of(secret).len());
        let registry = || {
            let mut own = self.own.iter().filter(|secret| is_for(secret, project));
            own.find(|secret| {
                let named = url_of(secret);
                let is_registry = secret.get("enableOCI").is_some_and(|text| text == "true")
                    || secret.get("type").is_some_and(|text| text == "oci");
                is_registry && (is_below(&wanted, &named) || is_below(&named, &wanted))
            })
        };
        let lent = template.or_else(|| by_registry.then(registry).flatten());
        for (name, value) in lent.into_iter().flatten() {
            if !is_set(&fields, name) {
                fields.insert(name.clone(), value.clone());
            }
        }
        fields
    }
}

fn is_for(secret: &Fields, project: &str) -> bool {
    let named = secret.get("project").map_or("", String::as_str);
    named.is_empty() || named == project
}

/// An address as it is compared. Whether a registry's begins with `oci://` makes no difference.
fn address(url: &str) -> String {
    let normal = normalize_url(url);
    normal.strip_prefix("oci://").unwrap_or(&normal).to_owned()
}

fn fields(secret: &Value) -> Fields {
    let data = secret["data"].as_object().into_iter().flatten();
    data.filter_map(|(name, value)| {
        let bytes = BASE64.decode(value.as_str()?).ok()?;
        Some((name.clone(), String::from_utf8(bytes).ok()?))
    })
    .collect()
}

/// What a workspace knows of a repository.
pub(super) async fn grant(clients: &Clients, repository: &Repository) -> Result<Grant, SourceError> {
    let secrets = Secrets::read(clients, &repository.workspace).await?;
    let fields = secrets.choose(&repository.url, &repository.project, false);
    refuse_elsewhere(&repository.url, &fields)?;
    with_hosts(clients, repository, fields).await
}

/// What a workspace knows of a repository that only a chart names. Without leave of the project, no credentials.
pub(super) async fn grant_dependency(
    clients: &Clients,
    repository: &Repository,
    is_permitted: bool,
) -> Result<Grant, SourceError> {
    let fields = match is_permitted {
        true => {
            let secrets = Secrets::read(clients, &repository.workspace).await?;
            secrets.choose(&repository.url, &repository.project, true)
        }
        false => Fields::new(),
    };
    refuse_elsewhere(&repository.url, &fields)?;
    with_hosts(clients, repository, fields).await
}

fn refuse_elsewhere(url: &str, fields: &Fields) -> Result<(), SourceError> {
    let has_own = ["password", "bearerToken", "sshPrivateKey"]
        .iter()
        .any(|name| fields.get(*name).is_some_and(|text| !text.is_empty()));
    let foreign = ELSEWHERE.iter().find(|name| {
        fields
            .get(**name)
            .is_some_and(|text| !text.is_empty() && text != "false")
    });
    match foreign.filter(|_| !has_own) {
        Some(name) => Err(SourceError::Missing(format!(
            "the Secret of {} has {name}, which is not supported: give it a username and a password or token",
            fairway_gitops_git::split_credentials(url).0
        ))),
        None => Ok(()),
    }
}

async fn with_hosts(
    clients: &Clients,
    repository: &Repository,
    fields: Fields,
) -> Result<Grant, SourceError> {
    let requests = Requests::new(clients.of(&repository.workspace));
    let mut grant = Grant {
        fields,
        ..Grant::default()
    };
    let host = host(&repository.url);
    for namespace in CONTROL_PLANES {
        let map = async |name: &str| -> Result<Value, SourceError> {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
            let found = requests.get(&path).await;
            let found = found.map_err(|failure| SourceError::Unreachable(failure.sentence()))?;
            Ok(found.unwrap_or_default())
        };
        if grant.known_hosts.is_none() {
            let config = map("argocd-ssh-known-hosts-cm").await?;
            grant.known_hosts = config["data"]["ssh_known_hosts"].as_str().map(str::to_owned);
        }
        if grant.ca.is_none() {
            let config = map("argocd-tls-certs-cm").await?;
            let pem = host.as_deref().and_then(|host| config["data"][host].as_str());
            grant.ca = pem.filter(|pem| !pem.trim().is_empty()).map(str::to_owned);
        }
    }
    Ok(grant)
}

/// The host of an address, by which its certificates are found: without a port.
fn host(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let host = match place.strip_prefix('[') {
        Some(numbered) => numbered.split(']').next()?,
        None => place.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, given: &[(&str, &str)]) -> Fields {
        let mut fields: Fields = given
            .iter()
            .map(|(field, text)| ((*field).to_owned(), (*text).to_owned()))
            .collect();
        fields.insert("it".to_owned(), name.to_owned());
        fields
    }

    #[test]
    fn the_nearest_secret_counts() {
        let secrets = Secrets {
            own: vec![
                secret("any", &[("url", "https://h/team/a"), ("password", "1")]),
                secret(
                    "shop",
                    &[
                        ("url", "https://h/team/a.git"),
                        ("password", "2"),
                        ("project", "shop"),
                    ],
                ),
                secret("open", &[("url", "https://h/team/b"), ("insecure", "true")]),
                secret(
                    "chart",
                    &[("url", "r.h/charts"), ("password", "5"), ("enableOCI", "true")],
                ),
            ],
            templates: vec![
                secret("host", &[("url", "https://h"), ("password", "3")]),
                secret("team", &[("url", "https://h/team"), ("password", "4")]),
            ],
        };
        for (url, project, expected, password) in [
            ("https://h/team/a.git", "default", "any", "1"),
            ("https://h/team/a", "shop", "shop", "2"),
            ("https://h/team/b", "default", "open", "4"),
            ("https://h/team-other/b", "default", "host", "3"),
            ("https://h/x", "default", "host", "3"),
            ("https://host.evil.example/x", "default", "", ""),
            ("oci://r.h/charts", "default", "chart", "5"),
            ("oci://r.h/charts/web", "default", "", ""),
        ] {
            let found = secrets.choose(url, project, false);
            let text = |name: &str| found.get(name).map_or("", String::as_str);
            assert_eq!(
                (text("it"), text("password")),
                (expected, password),
                "{url} {project}"
            );
        }
        let own = secrets.choose("https://h/team/b", "default", false);
        assert_eq!(
            own["insecure"], "true",
            "what the repository's own Secret says stays"
        );
        for (url, password) in [
            ("oci://r.h/charts/web", Some("5")),
            ("oci://r.h/char", None),
            ("oci://r.h", Some("5")),
        ] {
            let found = secrets.choose(url, "default", true);
            assert_eq!(found.get("password").map(String::as_str), password, "{url}");
        }
    }

    #[test]
    fn hosts_are_found_in_addresses() {
        for (url, expected) in [
            ("https://u:p@Git.H:8443/a", Some("git.h")),
            ("ssh://git@h:22/a", Some("h")),
            ("git@h:a/b", Some("h")),
            ("r.h:5000/charts", Some("r.h")),
            ("oci://r.h/charts", Some("r.h")),
            ("https://[::1]:1/a", Some("::1")),
            ("", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn credentials_of_other_kinds_are_refused_by_name() {
        let app = secret("x", &[("githubAppPrivateKey", "k")]);
        let why = refuse_elsewhere("https://u:secret@h/a", &app)
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("githubAppPrivateKey") && !why.contains("secret@"),
            "{why}"
        );
        let both = secret("x", &[("githubAppPrivateKey", "k"), ("password", "p")]);
        assert!(refuse_elsewhere("https://h/a", &both).is_ok());
        let off = secret("x", &[("useAzureWorkloadIdentity", "false")]);
        assert!(refuse_elsewhere("https://h/a", &off).is_ok());
    }
}
