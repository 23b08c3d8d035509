//! What was written is read; what was changed in any way is refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn header(revision: u64) -> Header {
    Header {
        revision,
        created: "2026-01-02T03:04:05Z".to_owned(),
        fairway: "0.1.0".to_owned(),
    }
}

fn entry(key: &str, value: &[u8]) -> Entry {
    Entry {
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Bytes::copy_from_slice(value),
        create_revision: 3,
        mod_revision: 7,
        version: 2,
    }
}

const CHANCE: Chance = Chance {
    salt: [7; 16],
    nonce: [9; 12],
};

fn key_files() -> KeyFiles {
    KeyFiles(BTreeMap::from([
        ("keys/encryption.keys".to_owned(), b"secret".to_vec()),
        ("pki/ca.key".to_owned(), vec![0, 255]),
    ]))
}

fn written(entries: &[Entry], passphrase: Option<&[u8]>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(7)).unwrap();
    for entry in entries {
        writer.entry(entry, false).unwrap();
    }
    match passphrase {
        None => writer.finish().unwrap().0,
        Some(passphrase) => {
            writer
                .finish_with_keys(&key_files(), passphrase, CHANCE)
                .unwrap()
                .0
        }
    }
}

type All = (Vec<Entry>, Option<SealedKeys>, Totals);

fn read(bytes: &[u8]) -> Result<All, BackupError> {
    let mut reader = Reader::new(bytes)?;
    let (mut entries, mut keys) = (Vec::new(), None);
    while let Some(part) = reader.next_part()? {
        match part {
            Part::Entry(entry) => entries.push(entry),
            Part::File(_) | Part::Content(_) => {}
            Part::Keys(sealed) => keys = Some(sealed),
            Part::End(totals) => return Ok((entries, keys, totals)),
        }
    }
    unreachable!("a backup ends with its end")
}

fn sample() -> Vec<Entry> {
    vec![
        entry("!address/10.96.0.1", b""),
        entry("/apps/deployments/builtin/root/a/x", b"{}"),
        entry("/core/secrets/builtin/root/a/x", &[1, 2, 3]),
        entry("/core/secrets/builtin/root/a/y", &vec![5; 2 * 1024 * 1024]),
        entry("/core/secrets/builtin/root/a/z", b"last"),
    ]
}

#[test]
fn what_was_written_is_read() {
    let (entries, keys, totals) = read(&written(&sample(), Some(b"open sesame"))).unwrap();
    assert_eq!(entries, sample());
    assert_eq!(totals.entries, 5);
    assert_eq!(
        totals.kinds,
        BTreeMap::from([("deployments.apps".to_owned(), 1), ("secrets".to_owned(), 3)])
    );
    let keys = keys.unwrap();
    assert_eq!(keys.open(b"open sesame").unwrap(), key_files());
    assert!(matches!(
        keys.open(b"open sesam"),
        Err(BackupError::WrongPassphrase)
    ));
    assert!(matches!(keys.open(b""), Err(BackupError::WrongPassphrase)));
}

#[test]
fn files_follow_the_entries() {
    let mut writer = Writer::new(Vec::new(), &header(7)).unwrap();
    writer.entry(&entry("/a", b"x"), false).unwrap();
    assert!(matches!(writer.content(b"x"), Err(BackupError::OutOfOrder)));
    writer.file("repositories/r/a.git/HEAD").unwrap();
    writer.content(b"main").unwrap();
    writer.file("repositories/r/a.git/empty").unwrap();
    writer.file("repositories/r/b.git/refs.pack").unwrap();
    let large: Vec<u8> = (0..3_000_000u32).map(|number| number.to_le_bytes()[0]).collect();
    writer.content(&large).unwrap();
    writer.content(b"end").unwrap();
    for wrong in [
        "repositories/r/a.git/HEAD",
        "repositories/r/b.git/refs.pack",
        "keys/x",
        "repositories/../x",
    ] {
        assert!(matches!(writer.file(wrong), Err(BackupError::Path(_))), "{wrong}");
    }
    assert!(matches!(
        writer.entry(&entry("/b", b""), false),
        Err(BackupError::OutOfOrder)
    ));
    let (bytes, totals) = writer.finish_with_keys(&key_files(), b"p", CHANCE).unwrap();
    assert_eq!((totals.files, totals.file_bytes), (3, 3_000_007));
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    let mut has_keys = false;
    while let Some(part) = reader.next_part().unwrap() {
        match part {
            Part::File(path) => files.push((path, Vec::new())),
            Part::Content(bytes) => files.last_mut().unwrap().1.extend_from_slice(&bytes),
            Part::Keys(_) => has_keys = true,
            Part::Entry(entry) => assert_eq!(entry.key, "/a"),
            Part::End(end) => assert_eq!(end, totals),
        }
    }
    assert!(has_keys);
    assert_eq!(
        files[0],
        ("repositories/r/a.git/HEAD".to_owned(), b"main".to_vec())
    );
    assert!(files[1].1.is_empty());
    assert_eq!(files[2].1, [large, b"end".to_vec()].concat());
    // Damage in a file is found, too.
    let mut damaged = bytes.clone();
    damaged[2_000_000] ^= 1;
    assert!(matches!(read(&damaged), Err(BackupError::Damaged { .. })));
    assert!(matches!(
        read(&bytes[..2_000_000]),
        Err(BackupError::Truncated { .. })
    ));
}

/// A backup of the first format: the same without files.
#[test]
fn the_first_format_is_read() {
    let payloads: [(u8, &[u8]); 2] = [
        (tag::HEADER, br#"{"revision":7,"created":"c","fairway":"0"}"#),
        (tag::END, br#"{"entries":0,"sealed":0,"leased":0,"kinds":{}}"#),
    ];
    let build = |extra: Option<(u8, &'static [u8])>| {
        let mut bytes = [&MAGIC[..], &1u32.to_be_bytes()].concat();
        let mut chain = Chain::start(1);
        let [header, end] = payloads;
        for (tag, payload) in [Some(header), extra, Some(end)].into_iter().flatten() {
            chain = chain.next(tag, payload);
            bytes.push(tag);
            bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(payload);
            bytes.extend_from_slice(&chain.0);
        }
        bytes
    };
    assert_eq!(read(&build(None)).unwrap().2.files, 0);
    let with_file = build(Some((tag::FILE, b"repositories/x/HEAD")));
    assert!(matches!(read(&with_file), Err(BackupError::Damaged { .. })));
}

#[test]
fn keys_open_only_beside_the_content_they_were_sealed_with() {
    let theirs = read(&written(&sample(), Some(b"p"))).unwrap().1.unwrap();
    // The same bytes in a backup of something else, with digests made anew.
    let moved = SealedKeys::read(&Bytes::from(payload_of(&theirs)), [0; 32]).unwrap();
    assert!(matches!(moved.open(b"p"), Err(BackupError::WrongPassphrase)));
}

fn payload_of(keys: &SealedKeys) -> Vec<u8> {
    let debug = format!("{keys:?}");
    assert!(debug.contains("ciphertext"));
    let sealed = written(&sample(), Some(b"p"));
    // The keys' chunk is the one before the last; find it by walking the chunks.
    let mut at = 12;
    loop {
        let length = u32::from_be_bytes(sealed[at + 1..at + 5].try_into().unwrap()) as usize;
        if sealed[at] == tag::KEYS {
            return sealed[at + 5..at + 5 + length].to_vec();
        }
        at += 5 + length + 32;
    }
}

#[test]
fn every_prefix_is_refused() {
    let whole = written(
        &[entry("/core/configmaps/b/r/n/a", b"{}"), entry("x", b"y")],
        Some(b"p"),
    );
    assert!(read(&whole).is_ok());
    for length in 0..whole.len() {
        let refused = read(&whole[..length]).unwrap_err();
        assert!(
            matches!(refused, BackupError::Truncated { .. }) || length == 0,
            "{length}: {refused}"
        );
    }
    assert!(matches!(read(b""), Err(BackupError::NotABackup)));
    assert!(matches!(read(b"PK\x03\x04"), Err(BackupError::NotABackup)));
}

#[test]
fn every_flipped_bit_is_refused() {
    let whole = written(
        &[entry("/core/configmaps/b/r/n/a", b"{}"), entry("x", b"y")],
        Some(b"p"),
    );
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            assert!(read(&flipped).is_err(), "byte {at}, bit {bit}");
        }
    }
    let mut longer = whole;
    longer.push(0);
    assert!(matches!(read(&longer), Err(BackupError::Damaged { .. })));
}

#[test]
fn newer_formats_and_failures_are_told() {
    let mut newer = written(&[], None);
    newer[11] = 9;
    assert!(matches!(read(&newer), Err(BackupError::NewerFormat(9))));
    let writer = Writer::new(Vec::new(), &header(1)).unwrap();
    let failed = read(&writer.give_up("the disk is gone").unwrap()).unwrap_err();
    assert!(failed.to_string().contains("the disk is gone"), "{failed}");
}

#[test]
fn entries_must_fit_the_revision_and_each_other() {
    let refused =
        |entries: &[Entry]| matches!(read(&written(entries, None)), Err(BackupError::Damaged { .. }));
    let with = |change: fn(&mut Entry)| {
        let mut entry = entry("/a", b"");
        change(&mut entry);
        entry
    };
    assert!(refused(&[with(|e| e.mod_revision = 8)]));
    assert!(refused(&[with(|e| e.create_revision = 0)]));
    assert!(refused(&[with(|e| e.version = 0)]));
    assert!(refused(&[with(|e| e.key = Bytes::new())]));
    let mut writer = Writer::new(Vec::new(), &header(7)).unwrap();
    writer.entry(&entry("/b", b""), false).unwrap();
    assert!(matches!(
        writer.entry(&entry("/a", b""), false),
        Err(BackupError::OutOfOrder)
    ));
    assert!(matches!(
        writer.entry(&entry("/b", b""), false),
        Err(BackupError::OutOfOrder)
    ));
    let large = entry("/c", &vec![0; 5 * 1024 * 1024]);
    assert!(matches!(
        writer.entry(&large, false),
        Err(BackupError::TooLarge(_))
    ));
}

#[test]
fn key_files_have_plain_names() {
    for good in ["keys/encryption.keys", "pki/ca.crt", "keys/service-account.pk8"] {
        assert!(is_key_file(good), "{good}");
    }
    for bad in [
        "",
        "keys",
        "keys/",
        "keys/..",
        "keys/../x",
        "/keys/x",
        "store/store.db",
        "keys/a/b",
        "keys/.x",
        "keys/a b",
    ] {
        assert!(!is_key_file(bad), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_entries_come_back(
        pairs in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 1..60),
            (prop::collection::vec(any::<u8>(), 0..3000), 1u64..100, 0u64..100, 1u64..9),
            0..60,
        ),
    ) {
        let entries: Vec<Entry> = pairs.into_iter().map(|(key, (value, create, later, version))| Entry {
            key: key.into(),
            value: value.into(),
            create_revision: create,
            mod_revision: create + later,
            version,
        }).collect();
        let mut writer = Writer::new(Vec::new(), &header(1000)).unwrap();
        for entry in &entries {
            writer.entry(entry, true).unwrap();
        }
        let (bytes, totals) = writer.finish().unwrap();
        let (back, keys, read_totals) = read(&bytes).unwrap();
        prop_assert_eq!(back, entries);
        prop_assert!(keys.is_none());
        prop_assert_eq!(totals, read_totals);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        start in any::<bool>(),
        noise in prop::collection::vec(any::<u8>(), 0..400),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = if start { written(&[entry("/a/b/c", b"d")], None) } else { Vec::new() };
        bytes.extend_from_slice(&noise);
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        let _ = read(&bytes);
    }
}
