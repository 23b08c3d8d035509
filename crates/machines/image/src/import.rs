//! A file from anywhere becomes an image.
//!
//! Nothing of it is trusted: it is unpacked within limits, compared with the checksum that was promised, and its header is
//! judged before any other program sees it. Only then is it published, in one step.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use fairway_machines_disk::qcow2::{Header, MAX_HEADER};
use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};

use crate::cache::hex;
use crate::format::{Format, Looks, looks};
use crate::unpack::{self, Limit};
use crate::{Cache, Image, ImageError, Stage, failed, overlay};

/// How large an image may be if nobody says otherwise.
pub const DEFAULT_MAX_SIZE: u64 = 1 << 40;
/// How much larger than its disk a file may be, beside an eighth of it.
const SLACK: u64 = 16 << 20;
/// A disk is a whole number of sectors.
const SECTOR: u64 = 512;

/// What is imported, and as what.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name that it gets.
    pub name: String,
    /// Where it came from, for the record and for messages.
    pub source: String,
    /// `sha256:HEX`, `sha512:HEX` or `sha1:HEX` of the file as it was transferred.
    pub checksum: Option<String>,
    /// The largest disk.
    pub max_size: u64,
    /// Not to be published by a name, but kept under this key, with these labels ([`Cache::keep`]).
    pub kept: Option<Kept>,
}

/// How an image without a name is found again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The key.
    pub key: String,
    /// Things to know about it. [`TRANSFERRED`] is added.
    pub labels: BTreeMap<String, String>,
}

/// The label of a kept image with the SHA-256 of the file as it was transferred.
pub const TRANSFERRED: &str = "sha256";

impl Request {
    /// With the usual limit and no checksum.
    pub fn new(name: &str, source: &str) -> Self {
        Self {
            name: name.to_owned(),
            source: source.to_owned(),
            checksum: None,
            max_size: DEFAULT_MAX_SIZE,
            kept: None,
        }
    }

    /// What is kept under a key, and has no name.
    pub fn keeping(kept: Kept, source: &str) -> Self {
        Self {
            kept: Some(kept),
            ..Self::new("", source)
        }
    }
}

/// The largest file with a disk of this size. One with tables, and with clusters that are used no more, is larger than its disk.
pub fn largest_file(max_size: u64) -> u64 {
    max_size.saturating_add(max_size / 8).saturating_add(SLACK)
}

/// Imports a file. `progress` hears how many bytes of the disk have been written.
pub fn file(
    cache: &Cache,
    path: &Path,
    request: &Request,
    progress: impl FnMut(u64),
) -> Result<Image, ImageError> {
    let file = File::open(path).map_err(failed("reading", path))?;
    stream(cache, file, request, progress)
}

/// Imports what a reader gives.
pub fn stream(
    cache: &Cache,
    from: impl Read,
    request: &Request,
    progress: impl FnMut(u64),
) -> Result<Image, ImageError> {
    let mut hashes = Vec::new();
    if let Some(checksum) = &request.checksum {
        hashes.push(Hashed::new(checksum, &request.source)?);
    }
    if request.kept.is_some() {
        hashes.push(Hashed::plain());
    }
    let stage = cache.stage()?;
    let limit = Limit {
        what: &request.source,
        bytes: largest_file(request.max_size),
    };
    let mut tee = Tee {
        from,
        hashes: &mut hashes,
    };
    write_unpacked(&mut tee, &stage, &limit, progress)?;
    // What follows the packed content counts, too.
    if !tee.hashes.is_empty() {
        std::io::copy(&mut tee, &mut std::io::sink())
            .map_err(failed("reading", Path::new(&request.source)))?;
    }
    let mut transferred = String::new();
    for hashed in hashes {
        let is_plain = hashed.expected.is_none();
        let found = hashed.compare()?;
        if is_plain {
            transferred = found;
        }
    }
    let (format, virtual_size) = judge(stage.path(), request)?;
    publish(cache, &stage, request, format, virtual_size, transferred)
}

fn write_unpacked(
    from: impl Read,
    stage: &Stage,
    limit: &Limit<'_>,
    progress: impl FnMut(u64),
) -> Result<(), ImageError> {
    let unusable = |error: std::io::Error| ImageError::Unusable {
        what: limit.what.to_owned(),
        why: error.to_string(),
    };
    let reader = unpack::reader(BufReader::with_capacity(128 << 10, from)).map_err(unusable)?;
    let size = unpack::write(reader, stage, limit, progress)?;
    match size {
        0 => Err(ImageError::Unusable {
            what: limit.what.to_owned(),
            why: "it is empty".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Format and size of a staged disk, if a machine may have it.
pub(crate) fn judge(path: &Path, request: &Request) -> Result<(Format, u64), ImageError> {
    let refuse = |why: String| ImageError::Unusable {
        what: request.source.clone(),
        why,
    };
    let length = std::fs::metadata(path).map_err(failed("reading", path))?.len();
    let format = match looks(&unpack::head(path)?) {
        Looks::Disk(format) => format,
        Looks::Foreign(why) => return Err(refuse(why.to_owned())),
        Looks::Gzip | Looks::Xz | Looks::Zstd => return Err(refuse("it is packed twice".to_owned())),
    };
    match format {
        Format::Raw => {
            if !length.is_multiple_of(SECTOR) {
                return Err(refuse(format!(
                    "it has {length} bytes, which are no whole sectors: it is no disk, or was not transferred as a whole"
                )));
            }
            match length > request.max_size {
                true => Err(ImageError::TooLarge {
                    what: request.source.clone(),
                    limit: request.max_size,
                }),
                false => Ok((format, length)),
            }
        }
        Format::Qcow2 => {
            let mut head = Vec::new();
            File::open(path)
                .and_then(|file| file.take(MAX_HEADER as u64).read_to_end(&mut head))
                .map_err(failed("reading", path))?;
            let header = Header::read(&head).map_err(|refusal| refuse(refusal.to_string()))?;
            header
                .judge(length, request.max_size)
                .map_err(|refusal| refuse(refusal.to_string()))?;
            overlay::check(path, format).map_err(|error| match error {
                ImageError::Program { program, why } if !why.contains("not installed") => {
                    refuse(format!("{program} finds it damaged: {why}"))
                }
                other => other,
            })?;
            Ok((format, header.virtual_size))
        }
    }
}

fn publish(
    cache: &Cache,
    stage: &Stage,
    request: &Request,
    format: Format,
    virtual_size: u64,
    transferred: String,
) -> Result<Image, ImageError> {
    let size = std::fs::metadata(stage.path())
        .map_err(failed("reading", stage.path()))?
        .len();
    let digest = cache.put(stage)?;
    let image = Image {
        name: request.name.clone(),
        digest,
        format,
        virtual_size,
        size,
        source: request.source.clone(),
        created: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        labels: BTreeMap::new(),
        direct_boot: None,
        path: std::path::PathBuf::new(),
    };
    match &request.kept {
        None => cache.publish(image),
        Some(kept) => {
            let mut labels = kept.labels.clone();
            labels.insert(TRANSFERRED.to_owned(), transferred);
            cache.keep(&kept.key, Image { labels, ..image })
        }
    }
}

struct Hashed {
    context: Context,
    algorithm: &'static str,
    expected: Option<String>,
    what: String,
}

impl Hashed {
    fn new(checksum: &str, what: &str) -> Result<Self, ImageError> {
        let refuse = |why: String| ImageError::Unusable {
            what: what.to_owned(),
            why,
        };
        let known: [(&'static str, &'static Algorithm); 3] = [
            ("sha256", &SHA256),
            ("sha512", &SHA512),
            ("sha1", &SHA1_FOR_LEGACY_USE_ONLY),
        ];
        let (word, value) = checksum.split_once(':').unwrap_or(("sha256", checksum));
        let found = known.iter().find(|(name, _)| *name == word);
        let (algorithm, digest) = found.ok_or_else(|| {
            refuse(format!(
                "the checksum is of the kind {word}; known are sha256, sha512 and sha1"
            ))
        })?;
        let expected = value.trim().to_ascii_lowercase();
        if expected.len() != digest.output_len() * 2 || !expected.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err(refuse(format!("{checksum:?} is not a checksum of that kind")));
        }
        Ok(Self {
            context: Context::new(digest),
            algorithm,
            expected: Some(expected),
            what: what.to_owned(),
        })
    }

    /// Nothing is expected: it is for the record.
    fn plain() -> Self {
        Self {
            context: Context::new(&SHA256),
            algorithm: "sha256",
            expected: None,
            what: String::new(),
        }
    }

    fn compare(self) -> Result<String, ImageError> {
        let found = hex(self.context.finish().as_ref());
        match self.expected {
            Some(expected) if expected != found => Err(ImageError::Checksum {
                what: self.what,
                found: format!("{}:{found}", self.algorithm),
                expected: format!("{}:{expected}", self.algorithm),
            }),
            _ => Ok(found),
        }
    }
}

/// Reads and hashes.
struct Tee<'a, R> {
    from: R,
    hashes: &'a mut [Hashed],
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(buffer)?;
        for hashed in self.hashes.iter_mut() {
            hashed.context.update(&buffer[..count]);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
