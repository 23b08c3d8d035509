//! Which certificates are replaced and when, and what an exchange of the authority leaves behind.

use fairway_kernel_apiserver::pki::{Authority, new_authority};
use fairway_kernel_x509::Certificate;

use super::{
    Name, Reason, Wanted, authority, existing_authority, forget_old, judge, read_pair, renew, rotate,
};
use crate::data_dir::DataDir;

const NOW: i64 = 1_800_000_000;

fn wanted(names: &[&str]) -> Wanted {
    Wanted {
        names: names.iter().map(|n| (*n).to_owned()).collect(),
        addresses: vec!["127.0.0.1".parse().unwrap()],
        seconds: 1_000,
    }
}

#[test]
fn a_certificate_is_replaced_when_it_is_due_or_does_not_fit() {
    let pair = new_authority(NOW).unwrap();
    let authority = Authority::load(&pair).unwrap();
    let other = Authority::load(&new_authority(NOW).unwrap()).unwrap();
    let present = [authority.certificate().clone()];
    // It has the same name, and another key.
    let former = [other.certificate().clone(), authority.certificate().clone()];
    let foreign = [other.certificate().clone()];
    let made = authority
        .serving(&["127.0.0.1".parse().unwrap()], &["a", "b"], 1_000, NOW)
        .unwrap();
    let certificate = Certificate::first_from_pem(&made.certificate).unwrap();
    let (fits, more) = (wanted(&["a"]), wanted(&["a", "c"]));
    for (case, name, have, trusted, wants, now, want) in [
        (
            "there is none",
            Name::Admin,
            false,
            &present[..],
            None,
            NOW,
            Some(Reason::Missing),
        ),
        ("fresh", Name::Serving, true, &present[..], Some(&fits), NOW, None),
        (
            "almost over",
            Name::Serving,
            true,
            &present[..],
            Some(&fits),
            NOW + 999,
            Some(Reason::Due),
        ),
        (
            "over",
            Name::Admin,
            true,
            &present[..],
            None,
            NOW + 5_000,
            Some(Reason::Due),
        ),
        (
            "another name",
            Name::Serving,
            true,
            &present[..],
            Some(&more),
            NOW,
            Some(Reason::Names),
        ),
        (
            "names do not matter to a client",
            Name::Admin,
            true,
            &present[..],
            Some(&more),
            NOW,
            None,
        ),
        (
            "a server of a former authority",
            Name::Serving,
            true,
            &former[..],
            Some(&fits),
            NOW,
            Some(Reason::Authority),
        ),
        (
            "a client of a former authority",
            Name::Admin,
            true,
            &former[..],
            None,
            NOW,
            None,
        ),
        (
            "a client of nobody we know",
            Name::Admin,
            true,
            &foreign[..],
            None,
            NOW,
            Some(Reason::Authority),
        ),
    ] {
        assert_eq!(
            judge(name, have.then_some(&certificate), trusted, wants, now),
            want,
            "{case}"
        );
    }
}

fn data() -> (tempfile::TempDir, DataDir) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::find(Some(folder.path())).unwrap();
    data.create().unwrap();
    (folder, data)
}

#[test]
fn an_authority_is_exchanged_and_both_are_trusted() {
    let (_folder, data) = data();
    let first = authority(&data, NOW).unwrap();
    let signing = first.load().unwrap();
    renew(&data, &signing, Name::Serving, Some(&wanted(&["a"])), NOW).unwrap();
    renew(&data, &signing, Name::Admin, None, NOW).unwrap();

    assert_eq!(rotate(&data, false, NOW + 10).unwrap().still_trusted, 1);
    let second = existing_authority(&data).unwrap().unwrap();
    let trusted = second.trusted().unwrap();
    assert_eq!(trusted.len(), 2);
    assert_eq!(
        trusted[1].der,
        signing.certificate().der,
        "the former one stays trusted"
    );
    let cross = Certificate::first_from_pem(second.cross.as_deref().unwrap()).unwrap();
    assert_eq!(cross.issuer_text, trusted[1].subject_text);
    assert_eq!(
        (&cross.subject_text, &cross.public_key),
        (&trusted[0].subject_text, &trusted[0].public_key)
    );
    let serving = read_pair(&data, "serving").unwrap().unwrap();
    let serving = Certificate::first_from_pem(&serving.certificate).unwrap();
    assert_eq!(serving.issuer_text, trusted[0].subject_text);
    assert_eq!(serving.names, ["a", "127.0.0.1"], "names are kept");

    assert_eq!(forget_old(&data, NOW + 20).unwrap(), 1);
    let third = existing_authority(&data).unwrap().unwrap();
    assert_eq!(third.trusted().unwrap().len(), 1);
    assert!(third.cross.is_none());
    third.load().unwrap();
}

#[test]
fn an_interrupted_exchange_is_finished() {
    let (_folder, data) = data();
    let first = authority(&data, NOW).unwrap();
    let next = new_authority(NOW + 1).unwrap();
    // Everything is written and the first file has been renamed; then the machine stops.
    std::fs::write(data.pki("ca").0, &next.certificate).unwrap();
    std::fs::write(data.pki("ca-next").1, &next.key).unwrap();
    let found = authority(&data, NOW).unwrap();
    found.load().unwrap();
    assert_ne!(found.pair.certificate, first.pair.certificate);
    assert!(!data.pki("ca-next").1.exists());
}

#[test]
fn a_serving_certificate_cannot_be_guessed() {
    let (_folder, data) = data();
    let signing = authority(&data, NOW).unwrap().load().unwrap();
    let error = renew(&data, &signing, Name::Serving, None, NOW).unwrap_err();
    assert!(error.to_string().contains("fairway up"), "{error}");
    assert!(rotate(&data, true, NOW).unwrap().still_trusted == 0);
}
