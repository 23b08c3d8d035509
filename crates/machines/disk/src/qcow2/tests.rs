//! Headers that are right, wrong and strange.

use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;

/// A header as `qemu-img create` writes it: version 3, clusters of 64 KiB, a disk of 1 GiB.
fn good() -> Vec<u8> {
    let mut file = vec![0_u8; 4096];
    file[..4].copy_from_slice(&MAGIC);
    for (at, value) in [(4, 3_u32), (20, 16), (36, 2), (56, 1), (96, 4), (100, 112)] {
        file[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    for (at, value) in [(24, GIB), (40, 0x3_0000), (48, 0x1_0000)] {
        file[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }
    file
}

fn with(changes: &[(usize, &[u8])]) -> Vec<u8> {
    let mut file = good();
    for (at, bytes) in changes {
        file[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    file
}

fn judged(file: &[u8]) -> Result<(), Refusal> {
    Header::read(file)?.judge(0x4_0000, 16 * GIB)
}

#[test]
fn a_good_header_is_read() {
    let header = Header::read(&good()).unwrap();
    assert_eq!(
        (header.version, header.virtual_size, header.cluster_size),
        (3, GIB, 65536)
    );
    assert_eq!(header.backing_file, None);
    assert_eq!(judged(&good()), Ok(()));
    // An extension with the names of features, as QEMU writes it, and then the end.
    let extension = with(&[(112, &[0x68, 0x03, 0xf8, 0x57, 0, 0, 0, 48])]);
    assert_eq!(judged(&extension), Ok(()));
    let version_2 = with(&[(4, &[0, 0, 0, 2]), (76, &[0xff; 4])]);
    assert!(Header::read(&version_2).is_ok(), "version 2 has no features");
}

#[test]
fn what_refers_elsewhere_is_refused() {
    let backing = with(&[(8, &[0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 11]), (512, b"/etc/shadow")]);
    let data_name = [&b"DATA"[..], &[0, 0, 0, 11], b"/etc/shadow"].concat();
    for (file, expected) in [
        (backing, Refusal::BackingFile("/etc/shadow".to_owned())),
        // The name lies beyond what is read: there is one nevertheless.
        (
            with(&[(8, &[0, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 11])]),
            Refusal::BackingFile(String::new()),
        ),
        (with(&[(79, &[4])]), Refusal::DataFile),
        (with(&[(112, &data_name)]), Refusal::DataFile),
        (with(&[(35, &[2])]), Refusal::Encrypted),
        (with(&[(79, &[2])]), Refusal::Corrupt),
        (with(&[(78, &[1])]), Refusal::UnknownFeatures(256)),
    ] {
        assert_eq!(judged(&file), Err(expected));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let malformed = |file: &[u8], word: &str| match judged(file) {
        Err(Refusal::Malformed(why)) => assert!(why.contains(word), "{why}"),
        other => panic!("{word}: {other:?}"),
    };
    malformed(&with(&[(7, &[4])]), "version");
    malformed(&with(&[(23, &[22])]), "clusters");
    malformed(&with(&[(100, &[0, 0, 0, 8])]), "length");
    malformed(&with(&[(39, &[1])]), "too short");
    malformed(&with(&[(47, &[1])]), "begin");
    malformed(
        &with(&[(112, &[1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff])]),
        "extension",
    );
    malformed(&good()[..100], "cut off");
    assert_eq!(judged(b"#!/bin/sh"), Err(Refusal::NotQcow2));
    assert_eq!(judged(b""), Err(Refusal::NotQcow2));
    let huge = with(&[(24, &[0, 0, 1, 0, 0, 0, 0, 0])]);
    assert!(matches!(judged(&huge), Err(Refusal::TooLarge { .. })));
    let header = Header::read(&good()).unwrap();
    assert_eq!(header.judge(0x2_0000, GIB), Err(Refusal::Truncated));
}

proptest! {
    #[test]
    fn strange_files_do_no_harm(file in proptest::collection::vec(any::<u8>(), 0..400), length in any::<u64>()) {
        let mut file = file;
        let _ = judged(&file);
        for (place, byte) in file.iter_mut().zip(MAGIC) {
            *place = byte;
        }
        if let Ok(header) = Header::read(&file) {
            let _ = header.judge(length, u64::MAX);
        }
    }

    /// Whatever is changed in a good header, what is accepted names no other file.
    #[test]
    fn what_is_accepted_stands_alone(at in 0_usize..200, value in any::<[u8; 4]>()) {
        let file = with(&[(at, &value)]);
        if let Ok(header) = Header::read(&file)
            && header.judge(0x4_0000, 16 * GIB).is_ok()
        {
            prop_assert_eq!(&file[8..16], &[0_u8; 8]);
            prop_assert!(header.version == 2 || file[79] & 4 == 0);
            prop_assert_eq!(&file[32..36], &[0_u8; 4]);
        }
    }
}
