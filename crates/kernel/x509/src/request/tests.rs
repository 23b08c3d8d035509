//! Requests that are right, wrong and hostile, and what becomes of them when they are signed.

use rcgen::{CertificateParams, DnType, KeyPair, SanType, SigningKey as _};

use super::{MAX_REQUEST, Request, RequestError};
use crate::{Algorithm, Certificate, Issuer, Subject, Template, Usages, encode, subject};

fn asked(key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "anna");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "developers");
    change(&mut params);
    params.serialize_request(key).unwrap().der().to_vec()
}

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

fn authority() -> (KeyPair, Certificate) {
    let key = key();
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "root");
    let certificate = params.self_signed(&key).unwrap();
    let read = Certificate::from_der(certificate.der()).unwrap();
    (key, read)
}

#[test]
fn a_request_tells_who_and_for_what() {
    let der = asked(&key(), |p| {
        p.subject_alt_names = vec![
            SanType::DnsName("a.example".try_into().unwrap()),
            SanType::IpAddress("192.0.2.1".parse().unwrap()),
            SanType::Rfc822Name("a@example".try_into().unwrap()),
            SanType::URI("spiffe://a".try_into().unwrap()),
        ];
    });
    let request = Request::from_pem(encode("CERTIFICATE REQUEST", &der).as_bytes()).unwrap();
    assert_eq!(request.subject.common_name, "anna");
    assert_eq!(request.subject.organisations, ["developers"]);
    assert_eq!(request.dns_names, ["a.example"]);
    assert_eq!(
        request.addresses,
        ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(request.emails, ["a@example"]);
    assert_eq!(request.uris, ["spiffe://a"]);
    request.check_signature().unwrap();
}

#[test]
fn what_is_no_request_is_refused() {
    let der = asked(&key(), |_| {});
    let trailing = [der.clone(), vec![0]].concat();
    for (name, text, want) in [
        ("nothing", Vec::new(), RequestError::NoBlock),
        ("no text", vec![0xff, 0xfe], RequestError::NoBlock),
        (
            "another block",
            encode("CERTIFICATE", &der).into_bytes(),
            RequestError::NoBlock,
        ),
        (
            "trailing bytes",
            encode("CERTIFICATE REQUEST", &trailing).into_bytes(),
            RequestError::Trailing,
        ),
        ("too long", vec![b'a'; MAX_REQUEST * 2 + 1], RequestError::TooLong),
        (
            "too long in DER",
            encode("CERTIFICATE REQUEST", &vec![0x30; MAX_REQUEST + 1]).into_bytes(),
            RequestError::TooLong,
        ),
    ] {
        assert_eq!(Request::from_pem(&text).unwrap_err(), want, "{name}");
    }
    // Each byte changed in turn: an error, or a signature that does not fit, or (in the frame around the signature, where
    // the reader is lenient) the same request; never a panic.
    let original = Request::from_der(der.clone()).unwrap();
    for place in 0..der.len() {
        let mut broken = der.clone();
        broken[place] ^= 0x41;
        if let Ok(request) = Request::from_der(broken) {
            let same = Request {
                der: der.clone(),
                ..request.clone()
            } == original;
            assert!(same || request.check_signature().is_err(), "byte {place}");
        }
    }
    for end in 0..der.len() {
        assert!(Request::from_der(der[..end].to_vec()).is_err(), "{end} bytes");
    }
    // Nesting costs nothing: the reader does not follow it.
    let deep = [0x30, 0x80].repeat(20_000);
    assert!(Request::from_der(deep).is_err());
}

#[test]
fn the_subject_stays_as_it_is_when_it_is_signed() {
    let (ca_key, ca) = authority();
    let issuer = Issuer::new(&ca, Algorithm::EcdsaSha256);
    let who = Subject {
        common_name: "anna".to_owned(),
        organisations: vec![
            "developers".to_owned(),
            "pilots".to_owned(),
            "developers".to_owned(),
        ],
    };
    // A request with several organisations: the library cannot write one, so its subject is exchanged.
    let own = key();
    let plain = Request::from_der(asked(&own, |_| {})).unwrap();
    let request = Request {
        subject_der: subject(&who),
        dns_names: vec!["a.example".to_owned()],
        addresses: vec!["2001:db8::1".parse().unwrap()],
        ..plain
    };
    let usages = Usages::parse(["digital signature", "client auth"]).unwrap();
    let template = Template::from_request(&request, usages, 1_000_000..2_000_000);
    let bytes = template.to_be_signed(&issuer, &[0x91; 16]);
    let signature = ca_key.sign(&bytes).unwrap();
    let made = Template::signed(bytes, &issuer, &signature);

    let read = Certificate::from_der(&made).unwrap();
    assert_eq!(read.subject, who);
    assert_eq!(read.life, 1_000_000..2_000_000);
    assert_eq!(read.names, ["a.example", "2001:db8::1"]);
    assert_eq!(read.issuer_text, ca.subject_text);
    assert_eq!(read.serial, format!("00{}", "91".repeat(16)));
    assert!(!read.is_authority);
    let (_, parsed) = x509_parser::parse_x509_certificate(&made).unwrap();
    let (_, signer) = x509_parser::parse_x509_certificate(&ca.der).unwrap();
    parsed.verify_signature(Some(signer.public_key())).unwrap();
    let extended = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(extended.client_auth && !extended.server_auth);
    assert!(parsed.key_usage().unwrap().unwrap().value.digital_signature());
}
