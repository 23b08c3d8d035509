//! Repositories that follow others: looked at every so often, and at once when a webhook says so.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fairway_api::argoproj::SECRET_TYPE_LABEL;
use fairway_controller::{ObjectKey, Queue};
use fairway_gitops_git::{Fetched, Remote, Repository};
use fairway_gitops_sync::project::{is_below, normalize_url};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::Api;

use crate::USER;
use crate::access::Caller;
use crate::catalog::{Mirror, Wanted};
use crate::seams::{Push, Update};

/// Where the keys of SSH hosts are, beside the Secret.
const KNOWN_HOSTS: &str = "argocd-ssh-known-hosts-cm";
/// A mirror is not woken more often than this: anybody may call a webhook.
const REST: Duration = Duration::from_secs(2);

/// The mirrors that are known, and how to wake them.
#[derive(Debug, Default)]
pub struct Mirrors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The address that each follows, and when it was woken last.
    known: HashMap<ObjectKey, (String, Option<Instant>)>,
    queue: Option<Queue<ObjectKey>>,
}

impl Mirrors {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes through this queue from now on.
    pub(crate) fn use_queue(&self, queue: Queue<ObjectKey>) {
        self.state().queue = Some(queue);
    }

    /// Notes what an object follows, if it does.
    pub(crate) fn note(&self, key: &ObjectKey, mirror: Option<&Mirror>) {
        let mut state = self.state();
        match mirror {
            None => drop(state.known.remove(key)),
            Some(mirror) => {
                let url = canonical(&mirror.url);
                state.known.entry(key.clone()).or_default().0 = url;
            }
        }
    }

    /// The workspaces with mirrors that follow one of these addresses.
    pub(crate) fn followers(&self, urls: &[String]) -> BTreeSet<String> {
        let urls: Vec<String> = urls.iter().map(|url| canonical(url)).collect();
        let state = self.state();
        let known = state.known.iter().filter(|(_, (url, _))| urls.contains(url));
        known.map(|(key, _)| key.workspace.as_str().to_owned()).collect()
    }

    /// Wakes those of a workspace that follow one of these addresses; how many there are.
    pub(crate) fn wake(&self, workspace: &str, urls: &[String]) -> usize {
        let urls: Vec<String> = urls.iter().map(|url| canonical(url)).collect();
        let mut state = self.state();
        let State { known, queue } = &mut *state;
        let (now, mut count) = (Instant::now(), 0);
        let follows =
            |key: &ObjectKey, url: &String| key.workspace.as_str() == workspace && urls.contains(url);
        for (key, (_, last)) in known.iter_mut().filter(|(key, (url, _))| follows(key, url)) {
            count += 1;
            if last.is_none_or(|last| now.duration_since(last) > REST) {
                *last = Some(now);
                if let Some(queue) = queue {
                    queue.add(key.clone());
                }
            }
        }
        count
    }
}

/// An address as Argo CD compares them; a password in it makes no difference.
pub(crate) fn canonical(url: &str) -> String {
    normalize_url(&fairway_gitops_git::split_credentials(url.trim()).0)
}

/// What it takes to reach the other repository. Credentials are only used for the address that their Secret names.
pub(crate) async fn remote(client: Client, mirror: &Mirror) -> Result<Remote, String> {
    let mut remote = Remote::new(&mirror.url).map_err(|error| error.full())?;
    let Some((namespace, name)) = &mirror.secret else {
        return Ok(remote);
    };
    let secret = Api::<Secret>::namespaced(client.clone(), namespace)
        .get(name)
        .await;
    let secret = secret.map_err(|error| format!("the Secret {namespace}/{name} cannot be read: {error}"))?;
    let hosts = match remote.url.starts_with("http") {
        true => None,
        false => Api::<ConfigMap>::namespaced(client, namespace)
            .get_opt(KNOWN_HOSTS)
            .await
            .ok()
            .flatten()
            .and_then(|map| map.data?.get("ssh_known_hosts").cloned()),
    };
    remote.known_hosts = hosts;
    grant(&mut remote, &secret)
        .map_err(|why| format!("the Secret {namespace}/{name} cannot be used: {why}"))?;
    Ok(remote)
}

/// Takes over what a Secret in the form of Argo CD's repository Secrets says, if it is meant for this address.
fn grant(remote: &mut Remote, secret: &Secret) -> Result<(), String> {
    let kind = secret
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(SECRET_TYPE_LABEL));
    let text = |field: &str| -> Option<String> {
        let bytes = &secret.data.as_ref()?.get(field)?.0;
        String::from_utf8(bytes.clone())
            .ok()
            .filter(|text| !text.is_empty())
    };
    let named = canonical(&text("url").unwrap_or_default());
    let wanted = canonical(&remote.url);
    let is_meant = match kind.map(String::as_str) {
        Some("repository") => named == wanted,
        Some("repo-creds") => is_below(&wanted, &named),
        _ => {
            return Err(format!(
                "it lacks the label {SECRET_TYPE_LABEL}: repository or repo-creds"
            ));
        }
    };
    if !is_meant {
        return Err(format!("it is for {named}, not for {wanted}"));
    }
    remote.take_secret(text);
    Ok(())
}

/// What a mirror that has followed tells watchers.
pub(crate) fn news(
    wanted: &Arc<Wanted>,
    owner: &str,
    repository: &Repository,
    fetched: Fetched,
) -> Option<Push> {
    let moved = fetched.moved.into_iter();
    let updates: Vec<Update> = moved.map(|(name, old, new)| Update { name, old, new }).collect();
    if updates.is_empty() {
        return None;
    }
    let user = k8s_openapi::api::authentication::v1::UserInfo {
        username: Some(USER.to_owned()),
        ..Default::default()
    };
    Some(Push {
        wanted: Arc::clone(wanted),
        owner: owner.to_owned(),
        repository: repository.clone(),
        updates,
        pusher: Caller { user: Some(user) },
        options: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use fairway_gitops_git::Credentials;
    use k8s_openapi::ByteString;
    use kube::api::ObjectMeta;

    use super::*;

    #[test]
    fn addresses_are_compared_without_what_makes_no_difference() {
        let cases = [
            ("https://Example.com/a/b.git", "https://example.com/a/b"),
            ("https://u:p@example.com/a/b", "https://example.com/a/b"),
            ("git@example.com:a/b.git", "git@example.com/a/b"),
            ("ssh://git@example.com/a/b", "git@example.com/a/b"),
        ];
        for (url, expected) in cases {
            assert_eq!(canonical(url), expected, "{url}");
        }
    }

    fn secret(kind: &str, fields: &[(&str, &str)]) -> Secret {
        Secret {
            metadata: ObjectMeta {
                labels: Some([(SECRET_TYPE_LABEL.to_owned(), kind.to_owned())].into()),
                ..ObjectMeta::default()
            },
            data: Some(
                fields
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), ByteString(value.as_bytes().to_vec())))
                    .collect(),
            ),
            ..Secret::default()
        }
    }

    #[test]
    fn credentials_go_only_where_their_secret_says() {
        let basic = [("username", "u"), ("password", "p")];
        let cases: &[(&str, &str, &str, bool)] = &[
            (
                "repository",
                "https://example.com/a/b.git",
                "https://example.com/a/b",
                true,
            ),
            (
                "repository",
                "https://example.com/a",
                "https://example.com/a/b",
                false,
            ),
            (
                "repo-creds",
                "https://example.com/a",
                "https://example.com/a/b",
                true,
            ),
            (
                "repo-creds",
                "https://example.com/",
                "https://example.com/a/b",
                true,
            ),
            (
                "repo-creds",
                "https://example.com",
                "https://example.com.evil.org/a",
                false,
            ),
            (
                "repo-creds",
                "https://example.com/a",
                "https://example.com/ab",
                false,
            ),
            ("repo-creds", "", "https://evil.org/a", false),
            ("repository", "", "https://evil.org/a", false),
            (
                "other",
                "https://example.com/a/b",
                "https://example.com/a/b",
                false,
            ),
        ];
        for (kind, named, url, good) in cases {
            let mut remote = Remote::new(url).unwrap();
            let fields = [&basic[..], &[("url", *named)]].concat();
            let granted = grant(&mut remote, &secret(kind, &fields));
            assert_eq!(granted.is_ok(), *good, "{kind} {named} {url}: {granted:?}");
            assert_eq!(
                matches!(remote.credentials, Credentials::Basic { .. }),
                *good,
                "{url}"
            );
        }
    }

    #[test]
    fn mirrors_are_woken_in_their_workspace() {
        let mirrors = Mirrors::default();
        let key = ObjectKey {
            workspace: fairway_controller::WorkspaceId::root(),
            namespace: String::new(),
            name: "m".to_owned(),
        };
        let mirror = Mirror {
            url: "https://h/a/b".to_owned(),
            secret: None,
            interval: REST,
        };
        mirrors.note(&key, Some(&mirror));
        let (known, other) = (["https://h/a/b.git".to_owned()], ["https://h/other".to_owned()]);
        assert_eq!(mirrors.followers(&known), ["root".to_owned()].into());
        assert_eq!(mirrors.wake("root", &known), 1);
        assert_eq!(mirrors.wake("elsewhere", &known), 0);
        assert_eq!(mirrors.wake("root", &other), 0);
        mirrors.note(&key, None);
        assert!(mirrors.followers(&known).is_empty());
        assert_eq!(mirrors.wake("root", &known), 0);
    }
}
