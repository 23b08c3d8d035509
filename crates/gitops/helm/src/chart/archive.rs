//! Reading a `.tgz`. Every number in an archive is its author's, so each is checked before it is believed.

use std::io::Read;
use std::sync::Arc;

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
    if !bytes.starts_with(b"\x1f\x8b") {
        return Err(Error::Archive(
            "the file does not appear to be a gzipped archive".to_owned(),
        ));
    }
    let mut tar = Tar {
        input: MultiGzDecoder::new(bytes),
        // Headers and padding count, too: an archive of a million empty files is large.
        left: limits
            .total_bytes
            .saturating_add(limits.files.saturating_mul(2 * BLOCK)),
        limits,
    };
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
        remaining = remaining
            .checked_sub(entry.data.len())
            .ok_or_else(|| tar.too_large())?;
        files.push(File {
            name,
            data: Data::Read(without_mark(Arc::from(entry.data))),
        });
    }
    if files.is_empty() {
        return Err(Error::Archive("no files in chart archive".to_owned()));
    }
    Ok(files)
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
    data: Vec<u8>,
}

struct Tar<'a> {
    input: MultiGzDecoder<&'a [u8]>,
    /// How much may still be unpacked.
    left: usize,
    limits: ArchiveLimits,
}

/// What the extended headers before an entry say of it.
#[derive(Default)]
struct Extended {
    path: Option<String>,
    size: Option<usize>,
}

impl Tar<'_> {
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
            let size = match extended.size.take() {
                Some(size) => size,
                None => number(&header[124..136]).ok_or_else(|| self.broken("a size is no number"))?,
            };
            let kind = header[156];
            let short = match extended.path.take() {
                Some(path) => path,
                None => ustar_name(&header),
            };
            match kind {
                b'x' | b'L' | b'g' => {
                    if size > BLOCK * 128 {
                        return Err(self.broken("an extended header is too large"));
                    }
                    let content = self.content(size)?;
                    match kind {
                        b'x' => extended = pax(&content),
                        b'L' => extended.path = Some(text(&content)),
                        _ => {}
                    }
                }
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
                    let data = self.content(size)?;
                    return Ok(Some(Entry { name: short, data }));
                }
                b'0' | 0 | b'7' => {
                    self.content(size)?;
                }
                b'1' | b'2' => {
                    return Err(Error::Archive(format!(
                        "the chart archive has a link at {short:?}; links are not followed"
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
            Some(("size", size)) => extended.size = size.parse().ok(),
            _ => {}
        }
        rest = &rest[record.len()..];
    }
    extended
}
