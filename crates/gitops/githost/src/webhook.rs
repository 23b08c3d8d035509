//! What others tell us: that a repository elsewhere was pushed to, or that something happened to its pull requests. Events of Gitea, GitHub, GitLab and Bitbucket are
//! understood, and checked as Argo CD checks them, with the secrets in `argocd-secret`.
//!
//! Nobody is believed: an event is a reason to look, and those who look see for themselves. Each workspace judges by its own
//! secrets. One that has none looks for anybody, seldom enough to be harmless.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ring::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};
use serde_json::Value;

/// The most addresses of an event.
const MAX_ADDRESSES: usize = 16;
/// The Secret with what senders must know.
pub(crate) const SECRET: &str = "argocd-secret";
/// Where it may be.
pub(crate) const NAMESPACES: [&str; 2] = ["argocd", "openshift-gitops"];

/// Who sends an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Gitea, Forgejo, Gogs, another Fairway.
    Gitea,
    GitHub,
    GitLab,
    Bitbucket,
    BitbucketServer,
    AzureDevOps,
}

impl Sender {
    /// Known by the headers of his requests. Gitea's have those of GitHub, too, so it comes first.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let has = |name: &str| headers.get(name).is_some_and(|value| !value.is_empty());
        match () {
            () if has("x-vss-activityid") => Some(Self::AzureDevOps),
            () if has("x-gitea-event") || has("x-gogs-event") => Some(Self::Gitea),
            () if has("x-github-event") => Some(Self::GitHub),
            () if has("x-gitlab-event") => Some(Self::GitLab),
            () if has("x-hook-uuid") => Some(Self::Bitbucket),
            () if has("x-event-key") => Some(Self::BitbucketServer),
            () => None,
        }
    }

    /// Under what names the secret may be kept; the first that is there counts.
    fn fields(self) -> &'static [&'static str] {
        match self {
            // Argo CD knows Gitea by the name of what it came from.
            Self::Gitea => &["webhook.gitea.secret", "webhook.gogs.secret"],
            Self::GitHub => &["webhook.github.secret"],
            Self::GitLab => &["webhook.gitlab.secret"],
            Self::Bitbucket => &["webhook.bitbucket.uuid"],
            Self::BitbucketServer => &["webhook.bitbucketserver.secret"],
            Self::AzureDevOps => &["webhook.azuredevops.password"],
        }
    }
}

/// Whether an event tells of a push, of a pull request, or of something that may follow from one.
pub(crate) fn is_news(sender: Sender, headers: &HeaderMap, event: &Value) -> bool {
    let of = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    };
    match sender {
        Sender::Gitea => {
            let named = if of("x-gitea-event").is_empty() {
                of("x-gogs-event")
            } else {
                of("x-gitea-event")
            };
            matches!(named, "push" | "create" | "delete") || named.starts_with("pull_request")
        }
        Sender::GitHub => matches!(
            of("x-github-event"),
            "push" | "create" | "delete" | "pull_request"
        ),
        Sender::GitLab => matches!(
            of("x-gitlab-event"),
            "Push Hook" | "Tag Push Hook" | "System Hook" | "Merge Request Hook"
        ),
        Sender::Bitbucket => {
            let named = of("x-event-key");
            named == "repo:push" || named.starts_with("pullrequest:")
        }
        Sender::BitbucketServer => {
            let named = of("x-event-key");
            named == "repo:refs_changed" || named.starts_with("pr:")
        }
        Sender::AzureDevOps => {
            let named = event["eventType"].as_str().unwrap_or_default();
            named == "git.push" || named.starts_with("git.pullrequest.")
        }
    }
}

/// The addresses of the repository that an event is about.
pub(crate) fn addresses(sender: Sender, event: &Value) -> Vec<String> {
    let mut found: Vec<&Value> = Vec::new();
    let names: &[&str] = match sender {
        Sender::Gitea | Sender::GitHub => &[
            "/repository/clone_url",
            "/repository/html_url",
            "/repository/ssh_url",
            "/repository/git_url",
        ],
        Sender::GitLab => &[
            "/project/web_url",
            "/project/git_http_url",
            "/project/git_ssh_url",
            "/repository/git_http_url",
        ],
        Sender::Bitbucket => &["/repository/links/html/href"],
        Sender::AzureDevOps => &["/resource/repository/remoteUrl"],
        Sender::BitbucketServer => &[],
    };
    found.extend(names.iter().filter_map(|name| event.pointer(name)));
    if sender == Sender::BitbucketServer {
        let links = event.pointer("/repository/links/clone").and_then(Value::as_array);
        found.extend(links.into_iter().flatten().map(|link| &link["href"]));
    }
    let texts = found.into_iter().filter_map(Value::as_str);
    let mut all: Vec<String> = texts.filter(|url| !url.is_empty()).map(str::to_owned).collect();
    all.dedup();
    all.truncate(MAX_ADDRESSES);
    all
}

/// Whether an event may be acted on in a workspace, by what its Secret says. `field` reads the Secret.
pub(crate) fn is_believed(
    sender: Sender,
    headers: &HeaderMap,
    body: &[u8],
    field: impl Fn(&str) -> Option<Vec<u8>>,
) -> bool {
    let secret = sender
        .fields()
        .iter()
        .find_map(|name| field(name).filter(|text| !text.is_empty()));
    let Some(secret) = secret else { return true };
    let of = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    };
    let signed = |header: &str, prefix: &str, algorithm| {
        let given = of(header).strip_prefix(prefix).and_then(bytes);
        given.is_some_and(|given| hmac::verify(&hmac::Key::new(algorithm, &secret), body, &given).is_ok())
    };
    match sender {
        Sender::Gitea => {
            signed("x-gitea-signature", "", HMAC_SHA256)
                || signed("x-gogs-signature", "", HMAC_SHA256)
                || signed("x-hub-signature-256", "sha256=", HMAC_SHA256)
        }
        Sender::GitHub => signed("x-hub-signature-256", "sha256=", HMAC_SHA256),
        Sender::BitbucketServer => {
            signed("x-hub-signature", "sha256=", HMAC_SHA256)
                || signed("x-hub-signature", "sha1=", HMAC_SHA1_FOR_LEGACY_USE_ONLY)
        }
        // These send the secret itself.
        Sender::GitLab => is_same(of("x-gitlab-token").as_bytes(), &secret),
        Sender::Bitbucket => is_same(of("x-hook-uuid").as_bytes(), &secret),
        Sender::AzureDevOps => {
            let decoded = of("authorization")
                .strip_prefix("Basic ")
                .and_then(|text| STANDARD.decode(text).ok());
            let user = field("webhook.azuredevops.username").unwrap_or_default();
            let expected = [&user[..], b":", &secret[..]].concat();
            decoded.is_some_and(|given| is_same(&given, &expected))
        }
    }
}

/// Compares without telling by its time where two texts differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let digest = |bytes: &[u8]| ring::digest::digest(&ring::digest::SHA256, bytes);
    digest(one).as_ref() == digest(other).as_ref()
}

/// Reads hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn senders_are_known_by_their_headers() {
        for (pairs, expected) in [
            (
                &[("x-gitea-event", "push"), ("x-github-event", "push")][..],
                Some(Sender::Gitea),
            ),
            (
                &[("x-gogs-event", "push"), ("x-github-event", "push")],
                Some(Sender::Gitea),
            ),
            (&[("x-github-event", "push")], Some(Sender::GitHub)),
            (&[("x-gitlab-event", "Push Hook")], Some(Sender::GitLab)),
            (
                &[("x-hook-uuid", "u"), ("x-event-key", "repo:push")],
                Some(Sender::Bitbucket),
            ),
            (
                &[("x-event-key", "repo:refs_changed")],
                Some(Sender::BitbucketServer),
            ),
            (&[("x-vss-activityid", "u")], Some(Sender::AzureDevOps)),
            (&[], None),
        ] {
            assert_eq!(Sender::of(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn events_name_repositories() {
        let gitea = json!({"repository": {"clone_url": "https://h/a/b.git", "ssh_url": "git@h:a/b.git", "html_url": ""}});
        assert_eq!(
            addresses(Sender::Gitea, &gitea),
            ["https://h/a/b.git", "git@h:a/b.git"]
        );
        let gitlab = json!({"project": {"web_url": "https://l/a/b"}});
        assert_eq!(addresses(Sender::GitLab, &gitlab), ["https://l/a/b"]);
        let bitbucket = json!({"repository": {"links": {"html": {"href": "https://bitbucket.org/a/b"}}}});
        assert_eq!(
            addresses(Sender::Bitbucket, &bitbucket),
            ["https://bitbucket.org/a/b"]
        );
        let server = json!({"repository": {"links": {"clone": [{"href": "https://s/scm/a/b.git"}, {"href": "ssh://git@s/a/b.git"}]}}});
        assert_eq!(addresses(Sender::BitbucketServer, &server).len(), 2);
        let azure = json!({"resource": {"repository": {"remoteUrl": "https://dev.azure.com/o/p/_git/r"}}});
        assert_eq!(addresses(Sender::AzureDevOps, &azure).len(), 1);
        assert!(addresses(Sender::GitHub, &json!([1])).is_empty());
        let tag = headers(&[("x-gitlab-event", "Tag Push Hook")]);
        assert!(is_news(Sender::GitLab, &tag, &Value::Null));
        for (name, sender, event, expected) in [
            ("x-github-event", Sender::GitHub, "star", false),
            ("x-github-event", Sender::GitHub, "pull_request", true),
            ("x-gitea-event", Sender::Gitea, "pull_request", true),
            ("x-gitea-event", Sender::Gitea, "pull_request_sync", true),
            ("x-gitea-event", Sender::Gitea, "issues", false),
            ("x-gitlab-event", Sender::GitLab, "Merge Request Hook", true),
            ("x-event-key", Sender::Bitbucket, "pullrequest:created", true),
            ("x-event-key", Sender::BitbucketServer, "pr:opened", true),
        ] {
            let found = is_news(sender, &headers(&[(name, event)]), &Value::Null);
            assert_eq!(found, expected, "{event}");
        }
    }

    #[test]
    fn signatures_are_checked_where_there_is_a_secret() {
        let body = b"The quick brown fox jumps over the lazy dog";
        let strong = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
        let (hub, weak) = (
            format!("sha256={strong}"),
            "sha1=de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9",
        );
        let basic = format!("Basic {}", STANDARD.encode("me:key"));
        // sender, the field of the Secret, headers -> believed
        type Case<'a> = (Sender, &'a str, &'a [(&'static str, &'a str)], bool);
        let cases: &[Case<'_>] = &[
            (
                Sender::Gitea,
                "webhook.gitea.secret",
                &[("x-gitea-signature", strong)],
                true,
            ),
            (
                Sender::Gitea,
                "webhook.gogs.secret",
                &[("x-gogs-signature", strong)],
                true,
            ),
            (
                Sender::Gitea,
                "webhook.gogs.secret",
                &[("x-hub-signature-256", &hub)],
                true,
            ),
            (
                Sender::Gitea,
                "webhook.gitea.secret",
                &[("x-gitea-signature", "00")],
                false,
            ),
            (
                Sender::Gitea,
                "webhook.gitea.secret",
                &[("x-gitea-signature", "")],
                false,
            ),
            (Sender::Gitea, "webhook.gitea.secret", &[], false),
            (Sender::Gitea, "webhook.github.secret", &[], true),
            (
                Sender::GitHub,
                "webhook.github.secret",
                &[("x-hub-signature-256", &hub)],
                true,
            ),
            (
                Sender::GitHub,
                "webhook.github.secret",
                &[("x-hub-signature-256", strong)],
                false,
            ),
            (
                Sender::GitHub,
                "webhook.github.secret",
                &[("x-hub-signature", weak)],
                false,
            ),
            (
                Sender::BitbucketServer,
                "webhook.bitbucketserver.secret",
                &[("x-hub-signature", &hub)],
                true,
            ),
            (
                Sender::BitbucketServer,
                "webhook.bitbucketserver.secret",
                &[("x-hub-signature", weak)],
                true,
            ),
            (
                Sender::GitLab,
                "webhook.gitlab.secret",
                &[("x-gitlab-token", "key")],
                true,
            ),
            (
                Sender::GitLab,
                "webhook.gitlab.secret",
                &[("x-gitlab-token", "kex")],
                false,
            ),
            (
                Sender::Bitbucket,
                "webhook.bitbucket.uuid",
                &[("x-hook-uuid", "key")],
                true,
            ),
            (
                Sender::Bitbucket,
                "webhook.bitbucket.uuid",
                &[("x-hook-uuid", "other")],
                false,
            ),
            (
                Sender::AzureDevOps,
                "webhook.azuredevops.password",
                &[("authorization", &basic)],
                true,
            ),
            (Sender::AzureDevOps, "webhook.azuredevops.password", &[], false),
        ];
        for (sender, field, pairs, expected) in cases {
            let read = |name: &str| match name {
                "webhook.azuredevops.username" => Some(b"me".to_vec()),
                _ => (name == *field).then(|| b"key".to_vec()),
            };
            assert_eq!(
                is_believed(*sender, &headers(pairs), body, read),
                *expected,
                "{sender:?} {field} {pairs:?}"
            );
        }
        let changed = is_believed(
            Sender::Gitea,
            &headers(&[("x-gitea-signature", strong)]),
            b"other",
            |_| Some(b"key".to_vec()),
        );
        assert!(!changed);
    }
}
