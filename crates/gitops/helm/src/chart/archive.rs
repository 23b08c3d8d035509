//! Reading a `.tgz`, or a layer of an image. Every number in an archive is its author's, so each is checked before it is
//! believed.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use fairway_gitops_tree::{Limits, Tree, TreeBuilder, path};
use flate2::read::MultiGzDecoder;

use super::load::without_mark;
use super::{Data, File};
use crate::error::Error;

/// How large an archive may be when it is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// All files together.
    pub total_bytes: usize,
    /// One file.
    pub file_bytes: usize,
    /// How many files.
    pub files: usize,
}

impl Default for ArchiveLimits {
    /// Helm's sizes.
    fn default() -> Self {
        Self {
            total_bytes: 100 * 1024 * 1024,
            file_bytes: 5 * 1024 * 1024,
            files: 50_000,
        }
    }
}

const BLOCK: usize = 512;

/// The files of an archive, without the directory that they all lie in.
pub(super) fn read(bytes: &[u8], limits: ArchiveLimits) -> Result<Vec<File>, Error> {
    let mut tar = Tar::gzipped(bytes, limits)?;
    let mut files = Vec::new();
    let mut remaining = limits.total_bytes;
    while let Some(entry) = tar.next()? {
        let Some(name) = entry_path(&entry.name)? else {
            continue;
        };
        if files.len() >= limits.files {
            return Err(Error::Archive(format!(
                "the chart archive has more than {} files",
                limits.files
            )));
        }
        let data = match entry.content {
            Content::File(data) => data,
            Content::Link(_) => {
                return Err(Error::Archive(format!(
                    "the chart archive has a link at {:?}; links are not followed",
                    entry.name
                )));
            }
        };
        remaining = remaining.checked_sub(data.len()).ok_or_else(|| tar.too_large())?;
        files.push(File {
            name,
            data: Data::Read(without_mark(Arc::from(data))),
        });
    }
    if files.is_empty() {
        return Err(Error::Archive("no files in chart archive".to_owned()));
    }
    Ok(files)
}

/// The files of a chart's archive as a tree, without the directory that they all lie in. Of files of one name the last
/// counts, as it does when archives are unpacked.
pub fn unpack_chart(bytes: &[u8], limits: ArchiveLimits) -> Result<Tree, Error> {
    let mut files = BTreeMap::new();
    for file in read(bytes, limits)? {
        files.insert(file.name.clone(), file.data.read()?);
    }
    let mut builder = TreeBuilder::new(tree_limits(limits));
    for (name, data) in files {
        builder.file(&name, data)?;
    }
    Ok(builder.build())
}

/// The files and symbolic links of an archive as a tree, as they lie in it.
pub fn unpack_layer(bytes: &[u8], is_gzipped: bool, limits: ArchiveLimits) -> Result<Tree, Error> {
    let mut tar = match is_gzipped {
        true => Tar::gzipped(bytes, limits)?,
        false => Tar::new(Box::new(bytes), limits),
    };
    let mut found = BTreeMap::new();
    let mut remaining = limits.total_bytes;
    while let Some(entry) = tar.next()? {
        let name = path::normalise(&entry.name)?;
        if let Content::File(data) = &entry.content {
            remaining = remaining.checked_sub(data.len()).ok_or_else(|| tar.too_large())?;
        }
        found.insert(name, entry.content);
        if found.len() > limits.files {
            return Err(Error::Archive(format!(
                "the archive has more than {} files",
                limits.files
            )));
        }
    }
    let mut builder = TreeBuilder::new(tree_limits(limits));
    for (name, content) in found {
        match content {
            Content::File(data) => builder.file(&name, data)?,
            Content::Link(target) => builder.link(&name, &target)?,
        }
    }
    Ok(builder.build())
}

fn tree_limits(limits: ArchiveLimits) -> Limits {
    Limits {
        files: limits.files,
        file_bytes: limits.file_bytes as u64,
        total_bytes: limits.total_bytes as u64,
        ..Limits::default()
    }
}

/// Where a file lies in the chart; an error for every way out of it.
fn entry_path(name: &str) -> Result<Option<String>, Error> {
    let refuse = |message: &str| Err(Error::Archive(message.to_owned()));
    let delimiter = if name.contains('\\') { '\\' } else { '/' };
    let (first, inner) = name.split_once(delimiter).unwrap_or((name, ""));
    let inner = inner.replace(delimiter, "/");
    if inner.starts_with('/') {
        return refuse("chart illegally contains absolute paths");
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in inner.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return refuse("chart illegally references parent directory");
                }
            }
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    if path.is_empty() {
        let message = format!("chart illegally contains content outside the base directory: {name:?}");
        return Err(Error::Archive(message));
    }
    let bytes = path.as_bytes();
    if bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'/' {
        return refuse("chart contains illegally named files");
    }
    if first == "Chart.yaml" {
        return refuse("chart yaml not in base directory");
    }
    Ok(Some(path))
}

struct Entry {
    name: String,
    content: Content,
}

enum Content {
    File(Vec<u8>),
    /// A symbolic link and its target.
    Link(String),
}

struct Tar<'a> {
    input: Box<dyn Read + 'a>,
    /// How much may still be unpacked.
    left: usize,
    limits: ArchiveLimits,
}

/// What the extended headers before an entry say of it.
#[derive(Default)]
struct Extended {
    path: Option<String>,
    target: Option<String>,
    size: Option<usize>,
}

impl<'a> Tar<'a> {
    fn new(input: Box<dyn Read + 'a>, limits: ArchiveLimits) -> Self {
        Self {
            input,
            // Headers and padding count, too: an archive of a million empty files is large.
            left: limits
                .total_bytes
                .saturating_add(limits.files.saturating_mul(2 * BLOCK)),
            limits,
        }
    }

    fn gzipped(bytes: &'a [u8], limits: ArchiveLimits) -> Result<Self, Error> {
        match bytes.starts_with(b"\x1f\x8b") {
            true => Ok(Self::new(Box::new(MultiGzDecoder::new(bytes)), limits)),
            false => Err(Error::Archive(
                "the file does not appear to be a gzipped archive".to_owned(),
            )),
        }
    }

    fn too_large(&self) -> Error {
        Error::Archive(format!(
            "decompressed chart is larger than the maximum file size {}",
            self.limits.total_bytes
        ))
    }

    fn broken(&self, what: &str) -> Error {
        Error::Archive(format!("the chart archive is broken: {what}"))
    }

    /// Reads exactly so many bytes; none at the end of the archive.
    fn take(&mut self, size: usize) -> Result<Option<Vec<u8>>, Error> {
        self.left = self.left.checked_sub(size).ok_or_else(|| self.too_large())?;
        // Grows as it is filled: the size is only what the archive says.
        let mut data = Vec::with_capacity(size.min(64 * 1024));
        let read = (&mut self.input).take(size as u64).read_to_end(&mut data);
        read.map_err(|error| self.broken(&error.to_string()))?;
        match data.len() {
            0 if size > 0 => Ok(None),
            length if length < size => Err(self.broken("it ends within a file")),
            _ => Ok(Some(data)),
        }
    }

    fn content(&mut self, size: usize) -> Result<Vec<u8>, Error> {
        let data = match size {
            0 => Vec::new(),
            size => self
                .take(size)?
                .ok_or_else(|| self.broken("it ends within a file"))?,
        };
        let padding = (BLOCK - size % BLOCK) % BLOCK;
        if padding > 0 {
            self.take(padding)?;
        }
        Ok(data)
    }

    fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut extended = Extended::default();
        loop {
            let Some(header) = self.take(BLOCK)? else {
                return Ok(None);
            };
            if header.iter().all(|&byte| byte == 0) {
                return Ok(None);
            }
            self.check(&header)?;
            let written = number(&header[124..136]).ok_or_else(|| self.broken("a size is no number"))?;
            let kind = header[156];
            if let b'x' | b'L' | b'K' | b'g' = kind {
                if written > BLOCK * 128 {
                    return Err(self.broken("an extended header is too large"));
                }
                let content = self.content(written)?;
                match kind {
                    b'x' => extended = pax(&content),
                    b'L' => extended.path = Some(text(&content)),
                    b'K' => extended.target = Some(text(&content)),
                    _ => {}
                }
                continue;
            }
            let size = extended.size.take().unwrap_or(written);
            let short = extended.path.take().unwrap_or_else(|| ustar_name(&header));
            match kind {
                b'5' => {
                    self.content(size)?;
                }
                b'0' | 0 | b'7' if !short.ends_with('/') => {
                    if size > self.limits.file_bytes {
                        return Err(Error::Archive(format!(
                            "decompressed chart file {short:?} is larger than the maximum file size {}",
                            self.limits.file_bytes
                        )));
                    }
                    let content = Content::File(self.content(size)?);
                    return Ok(Some(Entry { name: short, content }));
                }
                b'0' | 0 | b'7' => {
                    self.content(size)?;
                }
                b'2' => {
                    let target = extended.target.take();
                    let target = target.unwrap_or_else(|| text(&header[157..257]));
                    self.content(size)?;
                    return Ok(Some(Entry {
                        name: short,
                        content: Content::Link(target),
                    }));
                }
                b'1' => {
                    return Err(Error::Archive(format!(
                        "the archive has a hard link at {short:?}; links of this kind are not followed"
                    )));
                }
                _ => {
                    self.content(size)?;
                }
            }
        }
    }

    fn check(&self, header: &[u8]) -> Result<(), Error> {
        let stored = number(&header[148..156]);
        let sum: usize = header
            .iter()
            .enumerate()
            .map(|(at, byte)| {
                if (148..156).contains(&at) {
                    32
                } else {
                    usize::from(*byte)
                }
            })
            .sum();
        match stored == Some(sum) {
            true => Ok(()),
            false => Err(self.broken("a header's checksum is wrong")),
        }
    }
}

fn text(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn ustar_name(header: &[u8]) -> String {
    let name = text(&header[..100]);
    let is_ustar = &header[257..262] == b"ustar" && header[263..265] == *b"00";
    match text(&header[345..500]) {
        prefix if is_ustar && !prefix.is_empty() => format!("{prefix}/{name}"),
        _ => name,
    }
}

/// An octal number, or a binary one if the first bit is set.
fn number(field: &[u8]) -> Option<usize> {
    if field[0] & 0x80 != 0 {
        let mut value = usize::from(field[0] & 0x7f);
        for &byte in &field[1..] {
            value = value.checked_mul(256)?.checked_add(usize::from(byte))?;
        }
        return Some(value);
    }
    let digits = text(field);
    match digits.trim_matches([' ', '\0']) {
        "" => Some(0),
        digits => usize::from_str_radix(digits, 8).ok(),
    }
}

/// `LENGTH KEY=VALUE\n`, again and again.
fn pax(content: &[u8]) -> Extended {
    let mut extended = Extended::default();
    let mut rest = content;
    while let Some(space) = rest.iter().position(|&byte| byte == b' ') {
        let length = std::str::from_utf8(&rest[..space])
            .ok()
            .and_then(|digits| digits.parse::<usize>().ok());
        let Some(record) = length
            .filter(|length| *length > space + 1)
            .and_then(|length| rest.get(..length))
        else {
            break;
        };
        let body = String::from_utf8_lossy(&record[space + 1..]).into_owned();
        match body.trim_end_matches('\n').split_once('=') {
            Some(("path", path)) => extended.path = Some(path.to_owned()),
            Some(("linkpath", target)) => extended.target = Some(target.to_owned()),
            Some(("size", size)) => extended.size = size.parse().ok(),
            _ => {}
        }
        rest = &rest[record.len()..];
    }
    extended
}
