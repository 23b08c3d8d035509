//! Who asks: names and passwords out of Docker's configuration, in the form in which Kubernetes keeps it in Secrets.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::Value;

use crate::Reference;

/// A name and a password. They are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: String,
    password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

impl Credentials {
    /// A name and a password.
    pub fn new(user: &str, password: &str) -> Self {
        Self {
            user: user.to_owned(),
            password: password.to_owned(),
        }
    }

    /// Those for an image, out of `.dockerconfigjson` or the older `.dockercfg`: of all entries for its registry the one that names
    /// most of its path. Nothing: the configuration says nothing of the registry.
    pub fn find(configuration: &[u8], reference: &Reference) -> Result<Option<Self>, String> {
        let all: Value = serde_json::from_slice(configuration)
            .map_err(|error| format!("the configuration of registries is not JSON: {error}"))?;
        let entries = match all.get("auths") {
            Some(auths) => auths,
            None => &all,
        };
        let Some(entries) = entries.as_object() else {
            return Err("the configuration of registries has no entries".to_owned());
        };
        let found = entries
            .iter()
            .filter_map(|(key, entry)| Some((covers(key, reference)?, entry)))
            .max_by_key(|(length, _)| *length);
        Ok(found.and_then(|(_, entry)| read(entry)))
    }

    /// As HTTP sends them.
    pub(crate) fn header(&self) -> String {
        format!(
            "Basic {}",
            STANDARD.encode(format!("{}:{}", self.user, self.password))
        )
    }
}

/// How much of an image's path an entry names; nothing if it is for something else.
fn covers(key: &str, reference: &Reference) -> Option<usize> {
    let key = key
        .strip_prefix("https://")
        .or_else(|| key.strip_prefix("http://"))
        .unwrap_or(key);
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    // What everybody calls it has three names.
    let docker = ["docker.io", "index.docker.io", "registry-1.docker.io"];
    let is_docker = reference.registry() == "docker.io" && docker.contains(&host);
    let is_host =
        is_docker || host.eq_ignore_ascii_case(reference.registry()) || fits(host, reference.registry());
    if !is_host {
        return None;
    }
    let path = path.trim_matches('/');
    // The path of Docker's own old registry says nothing.
    if path.is_empty() || matches!(path, "v1" | "v2") {
        return Some(0);
    }
    let rest = reference.repository().strip_prefix(path)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(path.len())
}

/// `*.example.com` fits one name before the rest.
fn fits(pattern: &str, host: &str) -> bool {
    let (Some(suffix), Some((first, rest))) = (pattern.strip_prefix("*."), host.split_once('.')) else {
        return false;
    };
    !first.is_empty() && rest.eq_ignore_ascii_case(suffix)
}

fn read(entry: &Value) -> Option<Credentials> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    if !text("username").is_empty() {
        return Some(Credentials::new(text("username"), text("password")));
    }
    let packed = text("auth").trim();
    let bytes = STANDARD
        .decode(packed)
        .or_else(|_| STANDARD_NO_PAD.decode(packed.trim_end_matches('=')))
        .ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Credentials::new(user, password))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_closest_entry_counts() {
        let configuration = json!({"auths": {
            "quay.io": {"username": "all", "password": "p"},
            "quay.io/team": {"username": "team", "password": "p"},
            "https://index.docker.io/v1/": {"auth": STANDARD.encode("hub:p:q")},
            "*.example.com": {"username": "star", "password": "p"},
            "127.0.0.1:5000": {"username": "local", "password": "p"},
        }})
        .to_string();
        for (image, user) in [
            ("quay.io/other/a", Some("all")),
            ("quay.io/team/a", Some("team")),
            ("quay.io/teams/a", Some("all")),
            ("fedora", Some("hub")),
            ("r.example.com/a", Some("star")),
            ("a.r.example.com/a", None),
            ("127.0.0.1:5000/a", Some("local")),
            ("127.0.0.1:5001/a", None),
            ("ghcr.io/a", None),
        ] {
            let reference = Reference::parse(image).unwrap();
            let found = Credentials::find(configuration.as_bytes(), &reference).unwrap();
            assert_eq!(found.as_ref().map(|it| it.user.as_str()), user, "{image}");
            if user == Some("hub") {
                assert_eq!(found.unwrap().password, "p:q");
            }
        }
        // The older form has the entries at its top.
        let old = json!({"quay.io": {"auth": "YTpi"}}).to_string();
        let reference = Reference::parse("quay.io/a").unwrap();
        assert!(Credentials::find(old.as_bytes(), &reference).unwrap().is_some());
        assert!(Credentials::find(b"{", &reference).is_err());
        assert!(!format!("{:?}", Credentials::new("a", "secret")).contains("secret"));
    }
}
