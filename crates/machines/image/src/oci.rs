//! The disk in a container image that lies on disk: KubeVirt's `containerDisk` is an image with one file under `/disk`.
//!
//! Three forms are read: a directory in OCI's image layout, the same as a tar file (`podman save --format oci-archive`), and
//! a tar file as `docker save` writes it. Layers are looked at from the last to the first, as later ones cover earlier
//! ones. Content is compared with the digest that names it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256, digest};
use serde_json::Value;

use crate::cache::hex;
use crate::{Cache, Image, ImageError, failed, import, unpack};

/// The largest manifest or index.
const MAX_JSON: u64 = 4 << 20;
/// More layers has no image of a disk.
const MAX_LAYERS: usize = 128;
/// Indexes may refer to indexes, but not for ever.
const MAX_DEPTH: usize = 4;
/// Where the disk is, unless somebody says otherwise.
const DISK: &str = "disk/";

/// Imports the disk of a container image. `inner` is the path within it; without one it is the only file under `/disk`.
pub fn import(
    cache: &Cache,
    path: &Path,
    inner: Option<&str>,
    request: &import::Request,
    progress: impl FnMut(u64),
) -> Result<Image, ImageError> {
    let source = Source::open(path)?;
    let layers = source.layers()?;
    let refuse = |why: String| unusable(path, why);
    let wanted = inner.map(|inner| inner.trim_start_matches('/'));
    for layer in layers.iter().rev() {
        let mut found = source.find(layer, wanted)?;
        match found.len() {
            0 => continue,
            1 => {}
            _ => return Err(ambiguous(&path.display().to_string(), &found)),
        }
        let name = found.remove(0);
        return source.import(cache, layer, &name, request, progress);
    }
    Err(refuse(match inner {
        Some(inner) => format!("there is no {inner} in it"),
        None => "there is no file under /disk in it: it is no container disk".to_owned(),
    }))
}

/// Whether a file or directory is a container image.
pub fn is_image(path: &Path) -> bool {
    Source::open(path).is_ok()
}

enum Source {
    Directory(PathBuf),
    /// Names in a tar file, with where their content begins and how long it is.
    Archive(PathBuf, BTreeMap<String, (u64, u64)>),
}

/// A layer: where it is in the source, and what its digest should be.
struct Layer {
    name: String,
    digest: Option<String>,
}

fn unusable(path: &Path, why: impl Into<String>) -> ImageError {
    ImageError::Unusable {
        what: path.display().to_string(),
        why: why.into(),
    }
}

impl Source {
    fn open(path: &Path) -> Result<Self, ImageError> {
        if path.is_dir() {
            return match path.join("index.json").is_file() {
                true => Ok(Self::Directory(path.to_owned())),
                false => Err(unusable(
                    path,
                    "it has no index.json: it is no image in OCI's layout",
                )),
            };
        }
        let file = File::open(path).map_err(failed("reading", path))?;
        let mut archive = tar::Archive::new(BufReader::new(file));
        let damaged =
            |error: std::io::Error| unusable(path, format!("it is no tar archive of an image: {error}"));
        let mut entries = BTreeMap::new();
        for entry in archive.entries_with_seek().map_err(damaged)? {
            let entry = entry.map_err(damaged)?;
            if entry.header().entry_type().is_file() {
                let name = entry.path().map_err(damaged)?.to_string_lossy().into_owned();
                let name = name.trim_start_matches("./").to_owned();
                entries.insert(name, (entry.raw_file_position(), entry.size()));
            }
        }
        match entries.contains_key("index.json") || entries.contains_key("manifest.json") {
            true => Ok(Self::Archive(path.to_owned(), entries)),
            false => Err(unusable(
                path,
                "it has neither index.json nor manifest.json: it is no container image",
            )),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Directory(path) | Self::Archive(path, _) => path,
        }
    }

    /// Content by its name in the source.
    fn content(&self, name: &str) -> Result<Box<dyn Read>, ImageError> {
        match self {
            Self::Directory(directory) => {
                // Names are made of digests that were checked, so that they stay within the directory.
                let path = directory.join(name);
                let file = File::open(&path).map_err(failed("reading", &path))?;
                Ok(Box::new(file))
            }
            Self::Archive(path, entries) => {
                let (start, length) = *entries
                    .get(name)
                    .ok_or_else(|| unusable(path, format!("{name} is missing in it")))?;
                let mut file = File::open(path).map_err(failed("reading", path))?;
                file.seek(SeekFrom::Start(start))
                    .map_err(failed("reading", path))?;
                Ok(Box::new(file.take(length)))
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::Directory(directory) => directory.join(name).is_file(),
            Self::Archive(_, entries) => entries.contains_key(name),
        }
    }

    fn json(&self, name: &str, expected: Option<&str>) -> Result<Value, ImageError> {
        let mut text = Vec::new();
        let mut content = self.content(name)?.take(MAX_JSON);
        content
            .read_to_end(&mut text)
            .map_err(failed("reading", self.path()))?;
        let found = format!("sha256:{}", hex(digest(&SHA256, &text).as_ref()));
        if let Some(expected) = expected.filter(|expected| **expected != found) {
            return Err(ImageError::Checksum {
                what: format!("{} in {}", name, self.path().display()),
                found,
                expected: expected.to_owned(),
            });
        }
        serde_json::from_slice(&text).map_err(|error| unusable(self.path(), format!("{name}: {error}")))
    }

    /// The layers of the image, the lowest first.
    fn layers(&self) -> Result<Vec<Layer>, ImageError> {
        let layers = match self.has("index.json") {
            true => self.layers_of(&self.json("index.json", None)?, 0)?,
            false => self.docker_layers(&self.json("manifest.json", None)?)?,
        };
        match layers.len() {
            0 => Err(unusable(self.path(), "it has no layers")),
            count if count > MAX_LAYERS => Err(unusable(self.path(), "it has too many layers")),
            _ => Ok(layers),
        }
    }

    fn layers_of(&self, document: &Value, depth: usize) -> Result<Vec<Layer>, ImageError> {
        if let Some(layers) = document["layers"].as_array() {
            return layers
                .iter()
                .map(|layer| {
                    let digest = layer["digest"].as_str().unwrap_or_default();
                    Ok(Layer {
                        name: self.blob(digest)?,
                        digest: Some(digest.to_owned()),
                    })
                })
                .collect();
        }
        let manifests = document["manifests"].as_array().map_or(&[][..], Vec::as_slice);
        // The disk does not depend on the processor on which it was packed: without one for this machine, any will do.
        let ours = manifests
            .iter()
            .find(|manifest| manifest["platform"]["architecture"] == "amd64")
            .or_else(|| manifests.first());
        match ours.and_then(|manifest| manifest["digest"].as_str()) {
            Some(digest) if depth < MAX_DEPTH => {
                let inner = self.json(&self.blob(digest)?, Some(digest))?;
                self.layers_of(&inner, depth + 1)
            }
            _ => Err(unusable(self.path(), "its index names no image")),
        }
    }

    fn docker_layers(&self, manifest: &Value) -> Result<Vec<Layer>, ImageError> {
        let layers = manifest[0]["Layers"].as_array().map_or(&[][..], Vec::as_slice);
        layers
            .iter()
            .map(|layer| match layer.as_str() {
                Some(name) if self.has(name) => Ok(Layer {
                    name: name.to_owned(),
                    digest: None,
                }),
                _ => Err(unusable(
                    self.path(),
                    format!("the layer {layer} is missing in it"),
                )),
            })
            .collect()
    }

    /// Where content with a digest is.
    fn blob(&self, digest: &str) -> Result<String, ImageError> {
        match digest.strip_prefix("sha256:") {
            Some(hex) if hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Ok(format!("blobs/sha256/{hex}"))
            }
            _ => Err(unusable(
                self.path(),
                format!("{digest:?} is no digest by SHA-256"),
            )),
        }
    }

    /// Files in a layer that may be the disk.
    fn find(&self, layer: &Layer, wanted: Option<&str>) -> Result<Vec<String>, ImageError> {
        self.verify(layer)?;
        find(self.content(&layer.name)?, &self.named(layer), wanted)
    }

    fn import(
        &self,
        cache: &Cache,
        layer: &Layer,
        name: &str,
        request: &import::Request,
        progress: impl FnMut(u64),
    ) -> Result<Image, ImageError> {
        let content = self.content(&layer.name)?;
        take(cache, content, &self.named(layer), name, request, progress)
    }

    fn named(&self, layer: &Layer) -> String {
        format!("{} in {}", layer.name, self.path().display())
    }

    /// Compares a layer with its digest, before anything in it is used.
    fn verify(&self, layer: &Layer) -> Result<(), ImageError> {
        let Some(expected) = &layer.digest else {
            return Ok(());
        };
        let mut content = self.content(&layer.name)?;
        let mut context = Context::new(&SHA256);
        let mut buffer = vec![0; 256 << 10];
        loop {
            match content
                .read(&mut buffer)
                .map_err(failed("reading", self.path()))?
            {
                0 => break,
                count => context.update(&buffer[..count]),
            }
        }
        let found = format!("sha256:{}", hex(context.finish().as_ref()));
        match found == *expected {
            true => Ok(()),
            false => Err(ImageError::Checksum {
                what: format!("a layer of {}", self.path().display()),
                found,
                expected: expected.clone(),
            }),
        }
    }
}

/// Imports the disk of a layer that was fetched to a file, and compared with its digest; nothing if the layer has none.
pub fn import_layer(
    cache: &Cache,
    layer: &Path,
    inner: Option<&str>,
    request: &import::Request,
    progress: impl FnMut(u64),
) -> Result<Option<Image>, ImageError> {
    let open = || File::open(layer).map_err(failed("reading", layer));
    let wanted = inner.map(|inner| inner.trim_start_matches('/'));
    let found = find(open()?, &request.source, wanted)?;
    match found.as_slice() {
        [] => Ok(None),
        [name] => take(cache, open()?, &request.source, name, request, progress).map(Some),
        _ => Err(ambiguous(&request.source, &found)),
    }
}

fn ambiguous(what: &str, found: &[String]) -> ImageError {
    ImageError::Unusable {
        what: what.to_owned(),
        why: format!(
            "it has more than one file under /disk ({}); name one of them",
            found.join(", ")
        ),
    }
}

fn damaged(what: &str) -> impl Fn(std::io::Error) -> ImageError + use<> {
    let what = what.to_owned();
    move |error| ImageError::Unusable {
        what: what.clone(),
        why: format!("the layer cannot be read: {error}"),
    }
}

/// A layer, packed or not, as the archive that it is.
fn archive<'a>(content: impl Read + 'a, what: &str) -> Result<tar::Archive<Box<dyn Read + 'a>>, ImageError> {
    let content = BufReader::with_capacity(128 << 10, content);
    let reader = unpack::reader(content).map_err(damaged(what))?;
    Ok(tar::Archive::new(reader))
}

/// Files in a layer that may be the disk.
fn find(content: impl Read, what: &str, wanted: Option<&str>) -> Result<Vec<String>, ImageError> {
    let damaged = damaged(what);
    let mut found = Vec::new();
    for entry in archive(content, what)?.entries().map_err(&damaged)? {
        let entry = entry.map_err(&damaged)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = normal(&entry.path().map_err(&damaged)?);
        let is_it = match wanted {
            Some(wanted) => name == wanted,
            None => name
                .strip_prefix(DISK)
                .is_some_and(|file| !file.contains('/') && !file.starts_with('.')),
        };
        if is_it {
            found.push(name);
        }
    }
    Ok(found)
}

/// Imports a file of a layer.
fn take(
    cache: &Cache,
    content: impl Read,
    what: &str,
    name: &str,
    request: &import::Request,
    progress: impl FnMut(u64),
) -> Result<Image, ImageError> {
    let damaged = damaged(what);
    for entry in archive(content, what)?.entries().map_err(&damaged)? {
        let entry = entry.map_err(&damaged)?;
        if entry.header().entry_type().is_file() && normal(&entry.path().map_err(&damaged)?) == name {
            return import::stream(cache, entry, request, progress);
        }
    }
    Err(ImageError::Unusable {
        what: what.to_owned(),
        why: format!("{name} has disappeared from it"),
    })
}

fn normal(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.trim_start_matches("./").trim_start_matches('/').to_owned()
}

#[cfg(test)]
mod tests;
