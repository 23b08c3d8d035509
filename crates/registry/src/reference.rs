//! What people write to name an image.

use std::fmt;

use ring::digest::{SHA256, digest};

/// Where images are that name no registry.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Where that one really is.
const DEFAULT_HOST: &str = "registry-1.docker.io";
const MAX_REPOSITORY: usize = 255;
const MAX_TAG: usize = 128;

/// SHA-256 of something, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// Reads `sha256:HEX`.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let is_hex = hex.len() == 64
            && hex
                .bytes()
                .all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
        is_hex.then(|| Self(hex.to_owned()))
    }

    /// That of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(
            digest(&SHA256, bytes)
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    /// Without the word before it.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Which of the images of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// Whatever has this tag now.
    Tag(String),
    /// This one.
    Digest(Digest),
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

/// An image of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    registry: String,
    /// The path of the repository.
    repository: String,
    version: Version,
}

impl Reference {
    /// Reads `[REGISTRY/]PATH[:TAG][@DIGEST]`; else what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, digest) = match text.split_once('@') {
            None => (text, None),
            Some((name, digest)) => match Digest::parse(digest) {
                Some(digest) => (name, Some(digest)),
                None => return Err("its digest is not of the form sha256:HEX".to_owned()),
            },
        };
        // A colon before the last slash is a port's.
        let path_start = name.rfind('/').map_or(0, |at| at + 1);
        let (name, tag) = match name[path_start..].find(':') {
            Some(at) => (&name[..path_start + at], Some(&name[path_start + at + 1..])),
            None => (name, None),
        };
        if let Some(tag) = tag
            && !is_tag(tag)
        {
            return Err(format!("{tag:?} is no tag"));
        }
        let (registry, path) = match name.split_once('/') {
            Some((first, rest)) if is_host(first) => (first.to_owned(), rest.to_owned()),
            Some(_) => (DEFAULT_REGISTRY.to_owned(), name.to_owned()),
            None => (DEFAULT_REGISTRY.to_owned(), format!("library/{name}")),
        };
        if !is_authority(&registry) {
            return Err(format!("{registry:?} is no registry"));
        }
        if path.is_empty() || path.len() > MAX_REPOSITORY || !path.split('/').all(is_part) {
            return Err(
                "names in registries are lower case letters, digits, dots, dashes and underscores".to_owned(),
            );
        }
        Ok(Self {
            registry,
            repository: path,
            version: match (digest, tag) {
                (Some(digest), _) => Version::Digest(digest),
                (None, Some(tag)) => Version::Tag(tag.to_owned()),
                (None, None) => Version::Tag("latest".to_owned()),
            },
        })
    }

    /// The registry, as people call it.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The path of the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Which of its images.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Host and port to ask.
    pub(crate) fn host(&self) -> &str {
        match self.registry.as_str() {
            DEFAULT_REGISTRY => DEFAULT_HOST,
            other => other,
        }
    }

    /// Whether the registry is on this machine, where nobody listens in.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = match self.registry.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(rest),
            None => self.registry.split(':').next().unwrap_or(&self.registry),
        };
        host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = match self.version {
            Version::Tag(_) => ':',
            Version::Digest(_) => '@',
        };
        write!(
            f,
            "{}/{}{separator}{}",
            self.registry, self.repository, self.version
        )
    }
}

/// Docker's rule: the first part is a registry if it could not be a repository's.
fn is_host(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.bytes().any(|it| it.is_ascii_uppercase())
}

fn is_authority(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_host = |host: &str| match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && !host.starts_with(['-', '.'])
                && host
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || it == b'.' || it == b'-')
        }
    };
    is_host(host) && port.is_none_or(is_port)
}

fn is_part(part: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let ends = |it: Option<u8>| it.is_some_and(is_letter);
    ends(part.bytes().next())
        && ends(part.bytes().last())
        && part.bytes().all(|it| is_letter(it) || b"._-".contains(&it))
}

fn is_tag(tag: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    (1..=MAX_TAG).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_letter)
        && tag.bytes().all(|it| is_letter(it) || b".-".contains(&it))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_are_read_as_docker_reads_them() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (text, registry, repository, version) in [
            ("fedora", "docker.io", "library/fedora", "latest"),
            ("kubevirt/cirros:v1", "docker.io", "kubevirt/cirros", "v1"),
            (
                "quay.io/containerdisks/fedora:40",
                "quay.io",
                "containerdisks/fedora",
                "40",
            ),
            ("localhost/a", "localhost", "a", "latest"),
            ("127.0.0.1:5000/a/b", "127.0.0.1:5000", "a/b", "latest"),
            ("[::1]:5000/a", "[::1]:5000", "a", "latest"),
            (&format!("quay.io/a@{digest}"), "quay.io", "a", &digest),
            (&format!("quay.io/a:1@{digest}"), "quay.io", "a", &digest),
        ] {
            let it = Reference::parse(text).unwrap();
            assert_eq!(
                (it.registry(), it.repository(), it.version().to_string().as_str()),
                (registry, repository, version),
                "{text}"
            );
        }
        assert_eq!(Reference::parse("fedora").unwrap().host(), "registry-1.docker.io");
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "",
            "/a",
            "a//b",
            "quay.io/",
            "quay.io/A",
            "quay.io/../etc",
            "quay.io/a:",
            "quay.io/a:-x",
            "quay.io/a@sha256:00",
            "quay.io/a@md5:00",
            "user:secret@quay.io/a",
            "quay.io:0/a",
            "quay.io:99999/a",
            "http://quay.io/a",
            "quay.io/a b",
        ] {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn this_machine_is_known() {
        for (text, expected) in [
            ("localhost:5000/a", true),
            ("127.0.0.1/a", true),
            ("[::1]:5000/a", true),
            ("localhost.example.com/a", false),
            ("10.0.0.1/a", false),
            ("a", false),
        ] {
            assert_eq!(Reference::parse(text).unwrap().is_loopback(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn strange_texts_do_no_harm(text in "\\PC{0,80}") {
            if let Ok(it) = Reference::parse(&text) {
                // What is understood is written so that it is understood again, and stays below its path.
                prop_assert_eq!(Reference::parse(&it.to_string()), Ok(it.clone()));
                prop_assert!(!it.repository().contains(".."));
                prop_assert!(!it.repository().starts_with('/'));
            }
        }
    }
}
