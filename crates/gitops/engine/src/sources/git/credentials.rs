//! How a repository elsewhere is reached: by Argo CD's Secrets of the workspace that asks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use fairway_api::argoproj::{CONTROL_PLANES, REPOSITORY_SECRETS, REPOSITORY_TEMPLATES};
use fairway_controller::{Clients, Requests};
use fairway_gitops_git::{Credentials, Remote};
use fairway_gitops_sync::project::normalize_url;
use serde_json::Value;

use super::super::{Repository, SourceError};

/// The remote of a repository, with what its Secrets say.
pub(super) async fn remote(clients: &Clients, repository: &Repository) -> Result<Remote, SourceError> {
    let mut remote = Remote::new(&repository.url).map_err(|error| SourceError::Missing(error.full()))?;
    let requests = Requests::new(clients.of(&repository.workspace));
    for namespace in CONTROL_PLANES {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        let own = secrets(&requests, &path, REPOSITORY_SECRETS).await?;
        let templates = secrets(&requests, &path, REPOSITORY_TEMPLATES).await?;
        let Some(secret) = choose(&own, &templates, repository) else {
            continue;
        };
        fill(&mut remote, secret);
        let hosts = format!("/api/v1/namespaces/{namespace}/configmaps/argocd-ssh-known-hosts-cm");
        if let Ok(Some(config)) = requests.get(&hosts).await {
            remote.known_hosts = config["data"]["ssh_known_hosts"].as_str().map(str::to_owned);
        }
        let trusted = format!("/api/v1/namespaces/{namespace}/configmaps/argocd-tls-certs-cm");
        if let Ok(Some(config)) = requests.get(&trusted).await {
            remote.ca = host(&repository.url)
                .and_then(|host| config["data"][host].as_str())
                .map(str::to_owned);
        }
        break;
    }
    Ok(remote)
}

async fn secrets(requests: &Requests, path: &str, selector: &str) -> Result<Vec<Value>, SourceError> {
    let listed = requests.list_selected(path, selector).await;
    listed.map_err(|failure| SourceError::Unreachable(failure.sentence()))
}

fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':']).next()?;
    Some(host.rsplit('@').next().unwrap_or(host))
}

fn text(secret: &Value, field: &str) -> Option<String> {
    let bytes = BASE64.decode(secret["data"][field].as_str()?).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// The Secret for a repository: one of its own, of its project before one of nobody's; or the template with the longest
/// beginning of its address.
fn choose<'a>(own: &'a [Value], templates: &'a [Value], repository: &Repository) -> Option<&'a Value> {
    let wanted = normalize_url(&repository.url);
    let project = |secret: &Value| text(secret, "project").unwrap_or_default();
    let fits = |secret: &&Value| {
        let same = text(secret, "url").is_some_and(|url| normalize_url(&url) == wanted);
        let project = project(secret);
        same && (project.is_empty() || project == repository.project)
    };
    if let Some(found) = own.iter().filter(fits).max_by_key(|secret| project(secret).len()) {
        let has_credentials = ["password", "bearerToken", "sshPrivateKey", "tlsClientCertData"]
            .iter()
            .any(|field| text(found, field).is_some());
        if has_credentials {
            return Some(found);
        }
    }
    let begins = |secret: &&Value| {
        let project = project(secret);
        text(secret, "url").is_some_and(|url| is_below(&wanted, &normalize_url(&url)))
            && (project.is_empty() || project == repository.project)
    };
    let length = |secret: &&Value| text(secret, "url").map_or(0, |url| url.len());
    templates.iter().filter(begins).max_by_key(length)
}

/// Whether an address is within another. `https://host/team` is not a beginning of `https://host/team-other`, and must not
/// hand its password to it.
fn is_below(url: &str, beginning: &str) -> bool {
    url.strip_prefix(beginning)
        .is_some_and(|rest| rest.is_empty() || beginning.ends_with('/') || rest.starts_with('/'))
}

fn fill(remote: &mut Remote, secret: &Value) {
    let field = |name: &str| text(secret, name);
    remote.credentials = match (field("sshPrivateKey"), field("bearerToken"), field("password")) {
        (Some(key), _, _) => Credentials::Ssh(key),
        (None, Some(token), _) => Credentials::Bearer(token),
        (None, None, Some(password)) => Credentials::Basic {
            username: field("username").unwrap_or_else(|| "git".to_owned()),
            password,
        },
        _ => std::mem::take(&mut remote.credentials),
    };
    let on = |name: &str| field(name).is_some_and(|text| text == "true");
    remote.is_insecure = on("insecure") || on("insecureIgnoreHostKey");
    remote.proxy = field("proxy");
    remote.client_certificate = field("tlsClientCertData").zip(field("tlsClientCertKey"));
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;
    use serde_json::json;

    use super::*;

    fn secret(name: &str, fields: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> = fields
            .iter()
            .map(|(field, text)| ((*field).to_owned(), BASE64.encode(text).into()))
            .collect();
        json!({"metadata": {"name": name}, "data": data})
    }

    #[test]
    fn the_nearest_secret_counts() {
        let at = |url: &str, project: &str| Repository {
            workspace: WorkspaceId::root(),
            project: project.to_owned(),
            url: url.to_owned(),
            chart: String::new(),
        };
        let own = [
            secret("any", &[("url", "https://h/team/a"), ("password", "1")]),
            secret(
                "shop",
                &[
                    ("url", "https://h/team/a.git"),
                    ("password", "2"),
                    ("project", "shop"),
                ],
            ),
            secret("open", &[("url", "https://h/team/b")]),
        ];
        let templates = [
            secret("host", &[("url", "https://h"), ("password", "3")]),
            secret("team", &[("url", "https://h/team"), ("password", "4")]),
        ];
        for (url, project, expected) in [
            ("https://h/team/a.git", "default", Some("any")),
            ("https://h/team/a", "shop", Some("shop")),
            ("https://h/team/b", "default", Some("team")),
            ("https://h/team-other/b", "default", Some("host")),
            ("https://h/x", "default", Some("host")),
            ("https://host.evil.example/x", "default", None),
        ] {
            let found = choose(&own, &templates, &at(url, project));
            let name = found.and_then(|secret| secret["metadata"]["name"].as_str());
            assert_eq!(name, expected, "{url} {project}");
        }
    }
}
