//! Sealing and the key file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use bytes::Bytes;
use ring::rand::SystemRandom;

use super::key_file::KeyFileError;
use super::{KeyRing, PLAIN_TAG, SEALED_OVERHEAD, TAG_BYTES, ValueError, plain};

fn ring(keys: &[(u32, u8)], current: u32) -> KeyRing {
    let keys = keys.iter().map(|(id, byte)| (*id, [*byte; 32]));
    KeyRing::new(keys, current, Arc::new(SystemRandom::new())).unwrap()
}

#[test]
fn a_plain_value_is_tagged_and_not_copied() {
    let stored = plain(b"value");
    assert_eq!(&stored[..], [&PLAIN_TAG[..], b"value"].concat());
    let opened = ring(&[(1, 7)], 1).open(b"any key", &stored).unwrap();
    assert_eq!(&opened[..], b"value");
    assert_eq!(opened.as_ptr(), stored[TAG_BYTES..].as_ptr());
    assert_eq!(KeyRing::key_of(&stored), Ok(None));
}

#[test]
fn what_is_sealed_opens_under_its_own_key_only() {
    let ring = ring(&[(0x0102_0304, 7)], 0x0102_0304);
    for value in [&b""[..], b"v", &[0xa5; 5000]] {
        let stored = ring.seal(b"/secrets/a", value).unwrap();
        assert_eq!(stored.len(), value.len() + SEALED_OVERHEAD);
        assert_eq!(stored[..5], [2, 1, 2, 3, 4]);
        assert_eq!(KeyRing::key_of(&stored), Ok(Some(0x0102_0304)));
        assert_eq!(&ring.open(b"/secrets/a", &stored).unwrap()[..], value);
        assert_eq!(ring.open(b"/secrets/b", &stored), Err(ValueError::NotAuthentic));
    }
    let (once, again) = (
        ring.seal(b"k", b"same").unwrap(),
        ring.seal(b"k", b"same").unwrap(),
    );
    assert_ne!(once, again, "equal values do not show as equal");
    assert!(!once.windows(4).any(|window| window == b"same"));
}

#[test]
fn every_altered_byte_is_noticed() {
    let ring = ring(&[(1, 7)], 1);
    let stored = ring.seal(b"k", b"value").unwrap();
    for place in 0..stored.len() {
        let mut altered = stored.to_vec();
        altered[place] ^= 0x40;
        let error = ring.open(b"k", &Bytes::from(altered)).unwrap_err();
        match place {
            0 => assert_eq!(error, ValueError::UnknownEncoding(0x42)),
            1..5 => assert!(matches!(error, ValueError::UnknownKey(_))),
            _ => assert_eq!(error, ValueError::NotAuthentic, "byte {place}"),
        }
    }
    for length in 0..stored.len() {
        let error = ring.open(b"k", &stored.slice(..length)).unwrap_err();
        let expected = if length < SEALED_OVERHEAD {
            ValueError::Truncated(length)
        } else {
            ValueError::NotAuthentic
        };
        assert_eq!(error, expected);
    }
    let longer = Bytes::from([&stored[..], b"x"].concat());
    assert_eq!(ring.open(b"k", &longer), Err(ValueError::NotAuthentic));
}

#[test]
fn keys_rotate() {
    let old = ring(&[(1, 7)], 1);
    let new = ring(&[(1, 7), (2, 8)], 2);
    let (before, after) = (old.seal(b"k", b"old").unwrap(), new.seal(b"k", b"new").unwrap());
    assert_eq!(&new.open(b"k", &before).unwrap()[..], b"old");
    assert_eq!(&new.open(b"k", &after).unwrap()[..], b"new");
    assert_eq!(old.open(b"k", &after), Err(ValueError::UnknownKey(2)));
    let other = ring(&[(1, 9)], 1);
    assert_eq!(
        other.open(b"k", &before),
        Err(ValueError::NotAuthentic),
        "same id, another key"
    );
    let missing = KeyRing::new([(1, [7; 32])], 2, Arc::new(SystemRandom::new()));
    assert_eq!(missing.err(), Some(ValueError::NoSuchKey(2)));
}

#[test]
fn a_worn_out_data_key_is_replaced() {
    let ring = ring(&[(1, 7)], 1);
    let first = ring.seal(b"k", b"v").unwrap();
    super::locked(&ring.keys().sealing).uses_left = 0;
    let second = ring.seal(b"k", b"v").unwrap();
    assert_ne!(first[5..65], second[5..65], "another wrapped key");
    assert_eq!(ring.open(b"k", &first), ring.open(b"k", &second));
}

#[test]
fn debug_shows_no_key() {
    assert_eq!(
        format!("{:?}", ring(&[(1, 7)], 1)),
        "KeyRing { keys: [1], current: 1, .. }"
    );
}

#[test]
fn a_key_file_is_made_once_and_is_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("encryption.key");
    fs::write(directory.path().join("encryption.key.new"), "left by a crash").unwrap();
    let first = KeyRing::load_or_create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let stored = first.seal(b"k", b"v").unwrap();
    let second = KeyRing::load_or_create(&path).unwrap();
    assert_eq!(first.current(), second.current());
    assert_eq!(&second.open(b"k", &stored).unwrap()[..], b"v");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let error = KeyRing::load_or_create(&path).unwrap_err();
    assert!(
        matches!(error, KeyFileError::Exposed { mode: 0o640, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("chmod 600"));
}

#[test]
fn a_bad_key_file_is_refused_without_showing_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    let key = "ab".repeat(32);
    let cases = [
        (String::new(), "first line"),
        (format!("fairway-keys 2\nkey 00000001 {key}\n"), "newer"),
        (format!("fairway-keys 1\nkey 00000001 {key}\n"), "no `current`"),
        (
            "fairway-keys 1\nkey 00000001 abcd\ncurrent 00000001\n".to_owned(),
            "64 hexadecimal",
        ),
        (
            format!("fairway-keys 1\nkey 00000001 {key}\ncurrent 00000002\n"),
            "not among",
        ),
        (
            format!("fairway-keys 1\nkey 00000000 {key}\ncurrent 00000000\n"),
            "zero",
        ),
        (
            format!("fairway-keys 1\nkey 00000001 {key}\nkey 00000001 {key}\ncurrent 00000001\n"),
            "twice",
        ),
        (
            format!("fairway-keys 1\nkey 00000001 {key}\nwhat\ncurrent 00000001\n"),
            "a line that",
        ),
    ];
    for (text, expected) in cases {
        fs::write(&path, &text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let error = KeyRing::load_or_create(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains(&key));
    }
    fs::write(
        &path,
        format!("fairway-keys 1\n# comment\nkey 00000001 {key}\n\ncurrent 00000001\n"),
    )
    .unwrap();
    assert_eq!(KeyRing::load_or_create(&path).unwrap().current(), 1);
}
