//! Registries of the Open Container Initiative, as far as charts and manifests are kept in them: names, tags, and what of
//! an image is the chart.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{Unusable, Url};

/// The types of manifests that are asked for.
pub const ACCEPT: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
/// The largest manifest; that of registries.
pub const MAX_MANIFEST: usize = 4 << 20;
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const OLD_CHART: &str = "application/tar+gzip";
/// The layers that Argo CD takes manifests from.
const CONTENT: [&str; 3] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    CHART,
];
/// More than that has no image of manifests.
const MAX_LAYERS: usize = 10;

/// A repository of a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repository {
    /// Host and port.
    pub registry: String,
    /// The path of the repository there.
    pub name: String,
}

impl Repository {
    /// Reads `[oci://]HOST[:PORT]/PATH`, with a chart below it if one is named and the path does not end in it.
    pub fn parse(url: &str, chart: &str) -> Result<Self, Unusable> {
        let refuse = |why: &str| Err(Unusable(format!("{url:?} is no repository of a registry: {why}")));
        let trimmed = url.trim().trim_end_matches('/');
        let plain = ["oci://", "https://"]
            .iter()
            .find_map(|scheme| trimmed.strip_prefix(scheme))
            .unwrap_or(trimmed);
        if plain.contains("://") {
            return refuse("its scheme is not oci");
        }
        let (registry, path) = plain.split_once('/').unwrap_or((plain, ""));
        let chart = chart.trim_matches('/');
        let is_there = path == chart || path.ends_with(&format!("/{chart}"));
        let name = match (path, chart) {
            (path, "") => path.to_owned(),
            ("", chart) => chart.to_owned(),
            (path, _) if is_there && url.starts_with("oci://") => path.to_owned(),
            (path, chart) => format!("{path}/{chart}"),
        };
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_'))
        };
        if name.len() > 255 || !name.split('/').all(is_part) {
            return refuse(
                "names in registries are lower case letters, digits, dots, dashes and underscores",
            );
        }
        let registry = match registry {
            "" => return refuse("it names no registry"),
            // What everybody calls it is not where it is.
            "docker.io" => "registry-1.docker.io",
            registry => registry,
        };
        Ok(Self {
            registry: registry.to_owned(),
            name,
        })
    }

    /// Where the registry is.
    pub fn base(&self, is_plain: bool) -> Result<Url, Unusable> {
        Url::parse(&format!(
            "{}://{}",
            if is_plain { "http" } else { "https" },
            self.registry
        ))
    }

    /// Where a manifest is, by its tag or digest.
    pub fn manifest(&self, base: &Url, reference: &str) -> Url {
        base.with_path(&format!("/v2/{}/manifests/{reference}", self.name))
    }

    /// Where something is that a manifest names.
    pub fn blob(&self, base: &Url, digest: &Digest) -> Url {
        base.with_path(&format!("/v2/{}/blobs/{digest}", self.name))
    }

    /// Where the list of its tags begins.
    pub fn tags(&self, base: &Url) -> Url {
        base.with_path(&format!("/v2/{}/tags/list", self.name))
    }

    /// What a token is asked for.
    pub fn scope(&self) -> String {
        format!("repository:{}:pull", self.name)
    }
}

/// The tag of a version, in which no plus may be.
pub fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

/// The version of a tag.
pub fn version_of(tag: &str) -> String {
    tag.replace('_', "+")
}

/// Whether a text may be a tag.
pub fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128 && text.starts_with(is_word) && text.chars().all(|c| is_word(c) || c == '.' || c == '-')
}

/// The tags in an answer, as versions.
pub fn tags_in(answer: &[u8]) -> Result<Vec<String>, Unusable> {
    let answer: Value = serde_json::from_slice(answer)
        .map_err(|error| Unusable(format!("the registry's list of tags is not JSON: {error}")))?;
    let tags = answer["tags"].as_array().into_iter().flatten();
    Ok(tags.filter_map(Value::as_str).map(version_of).collect())
}

/// Where a list goes on, of which `header` is the `Link`.
pub fn next_page(at: &Url, header: &str) -> Option<Url> {
    let (link, parameters) = header.trim().strip_prefix('<')?.split_once('>')?;
    if !parameters.contains("next") {
        return None;
    }
    let next = at.follow(link).ok()?;
    // A list that goes on elsewhere is not this registry's.
    next.is_same_origin(at).then_some(next)
}

/// The SHA-256 of something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest(String);

impl Digest {
    /// Reads `sha256:` and 64 digits; or the digits alone, as indices of charts have them.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        match digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            true => Ok(Self(digits.to_ascii_lowercase())),
            false => Err(Unusable(format!("{text:?} is not the SHA-256 of anything"))),
        }
    }

    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The digits.
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// Whether these bytes are what was meant.
    pub fn check(&self, what: &str, bytes: &[u8]) -> Result<(), Unusable> {
        let found = Self::of(bytes);
        match found == *self {
            true => Ok(()),
            false => Err(Unusable(format!(
                "{what} has the digest {found} and should have {self}: it was changed on the way, or after it was published"
            ))),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Something that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Its type.
    pub media_type: String,
    /// What it is.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
}

impl Descriptor {
    fn read(value: &Value) -> Result<Self, Unusable> {
        Ok(Self {
            media_type: value["mediaType"].as_str().unwrap_or_default().to_owned(),
            digest: Digest::parse(value["digest"].as_str().unwrap_or_default())?,
            size: value["size"].as_u64().unwrap_or_default(),
        })
    }

    /// Whether it is compressed.
    pub fn is_gzipped(&self) -> bool {
        self.media_type.ends_with("gzip")
    }

    /// Whether it is a chart, whose files lie in a directory of its name.
    pub fn is_chart(&self) -> bool {
        self.media_type == CHART || self.media_type == OLD_CHART
    }
}

/// A manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    config: String,
    layers: Vec<Descriptor>,
}

impl Manifest {
    /// Reads a manifest.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| Unusable(format!("the manifest is not JSON: {error}")))?;
        if value["manifests"].is_array() {
            return Err(Unusable::new("it is an index of several images, not one image"));
        }
        let Some(layers) = value["layers"].as_array() else {
            return Err(Unusable::new("the manifest has no layers"));
        };
        if layers.len() > MAX_LAYERS {
            return Err(Unusable(format!(
                "expected no more than {MAX_LAYERS} oci layers, got {}",
                layers.len()
            )));
        }
        Ok(Self {
            config: value["config"]["mediaType"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            layers: layers.iter().map(Descriptor::read).collect::<Result<_, _>>()?,
        })
    }

    /// The layer that is the chart, by Helm's rules.
    pub fn chart(&self) -> Result<&Descriptor, Unusable> {
        if self.config != CHART_CONFIG {
            return Err(Unusable(format!(
                "could not load config with mediatype {CHART_CONFIG}"
            )));
        }
        let found = self.layers.iter().rfind(|layer| layer.is_chart());
        found.ok_or_else(|| {
            Unusable(format!(
                "manifest does not contain a layer with mediatype {CHART}"
            ))
        })
    }

    /// The layer that the manifests are in, by Argo CD's rules: the only one that is an archive.
    pub fn content(&self) -> Result<&Descriptor, Unusable> {
        let is_archive = |layer: &&Descriptor| {
            let kind = layer.media_type.as_str();
            ["tar+gzip", "tar.gzip", "tar"]
                .iter()
                .any(|ending| kind.ends_with(ending))
        };
        let archives: Vec<&Descriptor> = self.layers.iter().filter(is_archive).collect();
        if let Some(other) = archives
            .iter()
            .find(|layer| !CONTENT.contains(&layer.media_type.as_str()))
        {
            return Err(Unusable(format!(
                "oci layer media type {} is not in the list of allowed media types",
                other.media_type
            )));
        }
        match archives.as_slice() {
            [only] => Ok(only),
            several => Err(Unusable(format!(
                "expected only a single oci content layer, got {}",
                several.len()
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
