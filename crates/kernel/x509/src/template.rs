//! A certificate that is about to be signed.

use std::net::IpAddr;
use std::ops::Range;

use crate::certificate::Certificate;
use crate::der::{self, OCTET_STRING, SEQUENCE, SET, UTF8_STRING};
use crate::request::{Names, Request, Subject};
use crate::usage::Usages;

const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANISATION: &[u8] = &[0x55, 4, 10];

/// How the authority signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA with SHA-256.
    EcdsaSha256,
    /// ECDSA with SHA-384.
    EcdsaSha384,
    /// Ed25519.
    Ed25519,
    /// RSA (PKCS#1 v1.5) with SHA-256.
    RsaSha256,
}

impl Algorithm {
    fn identifier(self) -> Vec<u8> {
        let object = der::object(match self {
            Self::EcdsaSha256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
            Self::EcdsaSha384 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
            Self::Ed25519 => &[0x2b, 0x65, 0x70],
            Self::RsaSha256 => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11],
        });
        // RSA alone wants its parameters to be there, and NULL.
        let parameters = if self == Self::RsaSha256 {
            vec![5, 0]
        } else {
            Vec::new()
        };
        der::group(SEQUENCE, &[object, parameters])
    }
}

/// Who signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
    algorithm: Algorithm,
}

impl Issuer {
    /// An authority that signs in this way.
    pub fn new(authority: &Certificate, algorithm: Algorithm) -> Self {
        Self {
            name: authority.subject_der.clone(),
            key_id: authority.key_id.clone(),
            algorithm,
        }
    }
}

/// A subject in DER: the organisations, then the common name.
pub fn subject(subject: &Subject) -> Vec<u8> {
    let attribute = |kind: &[u8], text: &str| {
        let pair = der::group(
            SEQUENCE,
            &[der::object(kind), der::element(UTF8_STRING, text.as_bytes())],
        );
        der::element(SET, &pair)
    };
    let mut parts: Vec<Vec<u8>> = subject
        .organisations
        .iter()
        .map(|o| attribute(ORGANISATION, o))
        .collect();
    if !subject.common_name.is_empty() {
        parts.push(attribute(COMMON_NAME, &subject.common_name));
    }
    der::group(SEQUENCE, &parts)
}

/// What a certificate shall say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    subject: Vec<u8>,
    public_key: Vec<u8>,
    names: Names,
    usages: Usages,
    life: Range<i64>,
}

impl Template {
    /// What a request asks for: its subject as it is, its key, its names. Every other wish in it is left out.
    pub fn from_request(request: &Request, usages: Usages, life: Range<i64>) -> Self {
        Self {
            subject: request.subject_der.clone(),
            public_key: request.public_key_der.clone(),
            names: Names {
                dns: request.dns_names.clone(),
                addresses: request.addresses.clone(),
                emails: request.emails.clone(),
                uris: request.uris.clone(),
            },
            usages,
            life,
        }
    }

    /// For a subject whose key (a SubjectPublicKeyInfo) we have made ourselves.
    pub fn new(of: &Subject, public_key: Vec<u8>, usages: Usages, life: Range<i64>) -> Self {
        Self {
            subject: subject(of),
            public_key,
            names: Names::default(),
            usages,
            life,
        }
    }

    /// With these names and addresses.
    #[must_use]
    pub fn valid_for(mut self, dns: Vec<String>, addresses: Vec<IpAddr>) -> Self {
        self.names.dns = dns;
        self.names.addresses = addresses;
        self
    }

    /// The bytes that the authority signs. `serial` should be 16 random bytes.
    pub fn to_be_signed(&self, issuer: &Issuer, serial: &[u8]) -> Vec<u8> {
        der::group(
            SEQUENCE,
            &[
                der::element(der::context(0, true), &der::positive(&[2])),
                der::positive(serial),
                issuer.algorithm.identifier(),
                issuer.name.clone(),
                der::group(SEQUENCE, &[der::time(self.life.start), der::time(self.life.end)]),
                self.subject.clone(),
                self.public_key.clone(),
                der::element(
                    der::context(3, true),
                    &der::group(SEQUENCE, &self.extensions(issuer)),
                ),
            ],
        )
    }

    /// The certificate, from what was signed and the signature.
    pub fn signed(to_be_signed: Vec<u8>, issuer: &Issuer, signature: &[u8]) -> Vec<u8> {
        der::group(
            SEQUENCE,
            &[to_be_signed, issuer.algorithm.identifier(), der::bits(signature)],
        )
    }

    fn extensions(&self, issuer: &Issuer) -> Vec<Vec<u8>> {
        let mut extensions = Vec::new();
        if let Some(value) = self.usages.key_usage() {
            extensions.push(extension(KEY_USAGE, true, &value));
        }
        if let Some(value) = self.usages.extended() {
            extensions.push(extension(EXTENDED_KEY_USAGE, false, &value));
        }
        extensions.push(extension(BASIC_CONSTRAINTS, true, &der::element(SEQUENCE, &[])));
        if let Some(id) = &issuer.key_id {
            let id = der::element(der::context(0, false), id);
            extensions.push(extension(AUTHORITY_KEY, false, &der::element(SEQUENCE, &id)));
        }
        let names = general_names(&self.names);
        if !names.is_empty() {
            // Without a subject the names are all there is, so nobody may overlook them.
            let critical = self.subject == der::element(SEQUENCE, &[]);
            extensions.push(extension(
                ALTERNATIVE_NAMES,
                critical,
                &der::group(SEQUENCE, &names),
            ));
        }
        extensions
    }
}

fn extension(id: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { der::yes() } else { Vec::new() };
    der::group(
        SEQUENCE,
        &[der::object(id), critical, der::element(OCTET_STRING, value)],
    )
}

fn general_names(names: &Names) -> Vec<Vec<u8>> {
    let text = |tag: u8, all: &[String]| -> Vec<Vec<u8>> {
        all.iter()
            .map(|n| der::element(der::context(tag, false), n.as_bytes()))
            .collect()
    };
    let mut out = text(2, &names.dns);
    out.extend(text(1, &names.emails));
    out.extend(names.addresses.iter().map(|address| match address {
        IpAddr::V4(ip) => der::element(der::context(7, false), &ip.octets()),
        IpAddr::V6(ip) => der::element(der::context(7, false), &ip.octets()),
    }));
    out.extend(text(6, &names.uris));
    out
}
