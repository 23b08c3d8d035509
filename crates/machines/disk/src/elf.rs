//! What an ELF file says of itself: which libraries it needs, which loader, and, for a kernel module, which modules.
//!
//! Only 64-bit little-endian files are read. The files come out of packages, so they are read with care: every offset
//! is checked, and what does not make sense is as if it were not there.

use std::collections::BTreeSet;

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const INTERPRETER: u32 = 3;
const NEEDED: u64 = 1;
const STRINGS: u64 = 5;
/// More headers has no file that is meant.
const MAX_HEADERS: usize = 4096;

/// What a program or library needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// File names of libraries.
    pub libraries: Vec<String>,
    /// Path of the loader.
    pub loader: Option<String>,
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// What an ELF file needs; `None` if it is no such file.
pub fn needs(file: &[u8]) -> Option<Needs> {
    let segments = segments(file)?;
    let content = |segment: &Segment| slice(file, segment.offset, segment.size);
    let loader = segments
        .iter()
        .find(|segment| segment.kind == INTERPRETER)
        .and_then(content)
        .and_then(text);
    let mut libraries = Vec::new();
    if let Some(dynamic) = segments
        .iter()
        .find(|segment| segment.kind == DYNAMIC)
        .and_then(content)
    {
        let entries: Vec<(u64, u64)> = dynamic
            .chunks_exact(16)
            .filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?)))
            .take_while(|(tag, _)| *tag != 0)
            .collect();
        let strings = entries.iter().find(|(tag, _)| *tag == STRINGS)?.1;
        let strings = segments
            .iter()
            .filter(|segment| segment.kind == LOAD)
            .find_map(|segment| {
                let within = strings.checked_sub(segment.address)?;
                (within < segment.size).then(|| segment.offset.checked_add(within))?
            })?;
        for (_, value) in entries.iter().filter(|(tag, _)| *tag == NEEDED) {
            let at = usize::try_from(strings.checked_add(*value)?).ok()?;
            libraries.push(text(file.get(at..)?)?);
        }
    }
    Some(Needs { libraries, loader })
}

/// The modules that a kernel module needs, by its `.modinfo`; `None` if it is no module.
pub fn module_needs(file: &[u8]) -> Option<BTreeSet<String>> {
    let info = section(file, ".modinfo")?;
    let depends = info
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(b"depends="))?;
    let names = std::str::from_utf8(depends).ok()?.split(',');
    Some(
        names
            .filter(|name| !name.is_empty())
            .map(|name| name.replace('-', "_"))
            .collect(),
    )
}

fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    header(file)?;
    let (start, size, count) = (u64_at(file, 0x20)?, u16_at(file, 0x36)?, u16_at(file, 0x38)?);
    table(file, start, size, count)?
        .map(|entry| {
            Some(Segment {
                kind: u32_at(entry, 0)?,
                offset: u64_at(entry, 8)?,
                address: u64_at(entry, 16)?,
                size: u64_at(entry, 32)?,
            })
        })
        .collect()
}

fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    header(file)?;
    let (start, size, count) = (u64_at(file, 0x28)?, u16_at(file, 0x3a)?, u16_at(file, 0x3c)?);
    let sections: Vec<&[u8]> = table(file, start, size, count)?.collect();
    let content = |entry: &[u8]| slice(file, u64_at(entry, 24)?, u64_at(entry, 32)?);
    let names = content(sections.get(usize::from(u16_at(file, 0x3e)?))?)?;
    sections.iter().find_map(|entry| {
        let at = u32_at(entry, 0)? as usize;
        (text(names.get(at..)?)? == name).then(|| content(entry))?
    })
}

fn header(file: &[u8]) -> Option<()> {
    // 64 bits, little-endian
    file.starts_with(b"\x7fELF\x02\x01").then_some(())
}

fn table(file: &[u8], start: u64, size: u16, count: u16) -> Option<impl Iterator<Item = &[u8]>> {
    let (size, count) = (usize::from(size), usize::from(count));
    if count == 0 || size == 0 || count > MAX_HEADERS {
        return None;
    }
    Some(slice(file, start, (size * count) as u64)?.chunks_exact(size))
}

fn slice(file: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    file.get(start..start.checked_add(usize::try_from(size).ok()?)?)
}

/// Text up to the zero that ends it.
fn text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().take(4096).position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok().map(str::to_owned)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file with a segment for each of these.
    fn file(segments: &[(u32, &[u8])]) -> Vec<u8> {
        let mut out = b"\x7fELF\x02\x01".to_vec();
        out.resize(64, 0);
        out[0x20] = 64;
        out[0x36] = 56;
        out[0x38] = segments.len() as u8;
        let mut content: Vec<u8> = Vec::new();
        for (kind, bytes) in segments {
            let offset = (64 + 56 * segments.len() + content.len()) as u64;
            let mut entry = [0_u8; 56];
            entry[..4].copy_from_slice(&kind.to_le_bytes());
            entry[8..16].copy_from_slice(&offset.to_le_bytes());
            entry[16..24].copy_from_slice(&0x1000_u64.to_le_bytes());
            entry[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend(entry);
            content.extend(*bytes);
        }
        out.extend(content);
        out
    }

    fn dynamic(entries: &[(u64, u64)]) -> Vec<u8> {
        entries
            .iter()
            .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
            .collect()
    }

    #[test]
    fn a_program_says_what_it_needs() {
        let entries = dynamic(&[(NEEDED, 1), (NEEDED, 9), (STRINGS, 0x1000), (0, 0)]);
        let program = file(&[
            (INTERPRETER, b"/lib64/ld.so\0"),
            (LOAD, b"\0libc.so\0libz.so\0"),
            (DYNAMIC, &entries),
        ]);
        let found = needs(&program).unwrap();
        assert_eq!(found.libraries, ["libc.so", "libz.so"]);
        assert_eq!(found.loader.as_deref(), Some("/lib64/ld.so"));
        assert_eq!(needs(&file(&[(LOAD, b"static")])), Some(Needs::default()));
        assert_eq!(needs(b"#!/bin/sh"), None);
        assert_eq!(module_needs(&program), None);
    }

    proptest! {
        #[test]
        fn strange_files_do_no_harm(
            at in 0_usize..300, value in any::<[u8; 8]>(), tail in proptest::collection::vec(any::<u8>(), 0..64)
        ) {
            let entries = dynamic(&[(NEEDED, 1), (STRINGS, 0x1000), (0, 0)]);
            let mut program = file(&[(INTERPRETER, b"/ld\0"), (LOAD, b"\0libc\0"), (DYNAMIC, &entries), (1, &tail)]);
            for (offset, byte) in value.iter().enumerate() {
                if let Some(place) = program.get_mut(at + offset) {
                    *place = *byte;
                }
            }
            let _ = needs(&program);
            let _ = module_needs(&program);
        }
    }
}
