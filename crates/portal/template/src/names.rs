//! Names in Backstage's ways of writing them: entities (`component:default/web`) and repositories
//! (`git.example.com?owner=team&repo=web`).

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

/// A reference to an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRef {
    /// Kind, as it was written.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl EntityRef {
    /// Reads `[kind:][namespace/]name`.
    pub fn parse(
        text: &str,
        default_kind: Option<&str>,
        default_namespace: Option<&str>,
    ) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a reference to an entity, such as component:default/web");
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (Some(kind), rest),
            None => (default_kind, text),
        };
        let (namespace, name) = match rest.split_once('/') {
            Some((namespace, name)) => (namespace, name),
            None => (default_namespace.unwrap_or("default"), rest),
        };
        let kind = kind.ok_or_else(|| format!("{text:?} does not say which kind of entity is meant"))?;
        Self::of(kind, namespace, name).ok_or_else(wrong)
    }

    /// One of these parts, if each of them can be one. Case is kept, as Backstage keeps it.
    pub fn of(kind: &str, namespace: &str, name: &str) -> Option<Self> {
        let is_part =
            |part: &str| !part.is_empty() && part.len() <= 253 && !part.contains([':', '/', ' ', '\n']);
        [kind, namespace, name].into_iter().all(is_part).then(|| Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    /// The same as catalogs look it up: case makes no difference in a kind and a namespace.
    #[must_use]
    pub fn folded(self) -> Self {
        Self {
            kind: self.kind.to_lowercase(),
            namespace: self.namespace.to_lowercase(),
            name: self.name,
        }
    }

    /// As expressions see it.
    pub fn to_json(&self) -> Value {
        json!({"kind": self.kind, "namespace": self.namespace, "name": self.name})
    }
}

impl std::fmt::Display for EntityRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}:{}/{}", self.kind, self.namespace, self.name);
        f.write_str(&text.to_lowercase())
    }
}

/// A repository as `RepoUrlPicker` writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepoUrl {
    /// Host.
    pub host: String,
    /// Who owns it.
    pub owner: Option<String>,
    /// Its name.
    pub repo: String,
    /// Other hosts' words.
    pub others: Vec<(String, String)>,
}

impl RepoUrl {
    /// Reads `host?owner=...&repo=...`, with or without a scheme.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("{text:?} is not the address of a repository ({why}): write HOST?owner=OWNER&repo=NAME")
        };
        let bare = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let (host, query) = bare
            .unwrap_or(text)
            .split_once('?')
            .ok_or_else(|| wrong("it has no question mark"))?;
        let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:_[]".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(wrong("it does not begin with a host"));
        }
        let mut url = Self {
            host: host.to_owned(),
            ..Self::default()
        };
        for pair in query.split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8();
            let value = value
                .map_err(|_| wrong("a part of it is not UTF-8"))?
                .into_owned();
            match key {
                "owner" if !value.is_empty() => url.owner = Some(value),
                "repo" => url.repo = value,
                _ if !value.is_empty() => url.others.push((key.to_owned(), value)),
                _ => {}
            }
        }
        match url.repo.is_empty() {
            true => Err(wrong("it has no repo")),
            false => Ok(url),
        }
    }

    /// `owner/repo`.
    pub fn slug(&self) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}/{}", self.repo),
            None => self.repo.clone(),
        }
    }

    /// As expressions see it.
    pub fn to_json(&self) -> Value {
        let mut json = json!({"repo": self.repo, "host": self.host});
        if let Some(owner) = &self.owner {
            json["owner"] = owner.as_str().into();
        }
        for (key, value) in &self.others {
            json[key] = value.as_str().into();
        }
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_named() {
        for (text, kind, expected) in [
            ("component:default/web", None, Some("component:default/web")),
            ("Group:Team", None, Some("group:default/team")),
            ("Group:My-Space/Team", None, Some("group:my-space/team")),
            ("web", Some("Component"), Some("component:default/web")),
            ("ns/web", Some("component"), Some("component:ns/web")),
            ("web", None, None),
            ("a:b:c", None, None),
            ("a:b/c/d", None, None),
            (":x", None, None),
            ("", Some("user"), None),
        ] {
            let read = EntityRef::parse(text, kind, None);
            assert_eq!(read.ok().map(|it| it.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn case_is_kept_until_somebody_looks_it_up() {
        let read = EntityRef::parse("Group:My-Space/Team", None, None).unwrap();
        let kept = json!({"kind": "Group", "namespace": "My-Space", "name": "Team"});
        assert_eq!(read.to_json(), kept);
        let looked_up = json!({"kind": "group", "namespace": "my-space", "name": "Team"});
        assert_eq!(read.folded().to_json(), looked_up);
    }

    #[test]
    fn repositories_are_named() {
        let url = RepoUrl::parse("git.fairway.localhost:7443?owner=root&repo=my-app&x=y").unwrap();
        assert_eq!(url.slug(), "root/my-app");
        assert_eq!(
            url.to_json(),
            json!({"repo": "my-app", "host": "git.fairway.localhost:7443", "owner": "root", "x": "y"})
        );
        for wrong in [
            "",
            "host",
            "host?owner=a",
            "?repo=a",
            "a b?repo=c",
            "h/../x?repo=c",
        ] {
            assert!(RepoUrl::parse(wrong).is_err(), "{wrong}");
        }
    }
}
