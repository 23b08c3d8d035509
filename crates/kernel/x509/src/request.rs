//! A request for a certificate (PKCS#10), as a stranger sends it.

use std::net::IpAddr;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{
    OID_KEY_TYPE_EC_PUBLIC_KEY, OID_SIG_ED25519, OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use crate::pem;

/// The most bytes of a request. A key and hundreds of names fit; what is longer is not a request of a person or program.
pub const MAX_REQUEST: usize = 64 * 1024;
/// The title of its PEM block.
const LABEL: &str = "CERTIFICATE REQUEST";

/// What is wrong with a request, in upstream's words where they are its own and not its ASN.1 library's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No PEM, or of something else.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    NoBlock,
    /// Too long.
    #[error("the request has more than {MAX_REQUEST} bytes")]
    TooLong,
    /// Something follows it.
    #[error("asn1: syntax error: trailing data")]
    Trailing,
    /// It is not a request.
    #[error("the certificate request cannot be read: {0}")]
    Malformed(String),
    /// An address that is none.
    #[error("x509: cannot parse IP address of length {0}")]
    Address(usize),
    /// Not signed by the key that it names.
    #[error("{0}")]
    Signature(&'static str),
}

/// Who a certificate is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The common name; of several, the last.
    pub common_name: String,
    /// All organisations.
    pub organisations: Vec<String>,
}

impl Subject {
    pub(crate) fn read(name: &X509Name<'_>) -> Self {
        let mut subject = Self::default();
        for attribute in name.iter_attributes() {
            let Ok(text) = attribute.as_str() else { continue };
            if *attribute.attr_type() == OID_X509_COMMON_NAME {
                text.clone_into(&mut subject.common_name);
            } else if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
                subject.organisations.push(text.to_owned());
            }
        }
        subject
    }
}

/// The names that a certificate is valid for, beside its subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) dns: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) emails: Vec<String>,
    pub(crate) uris: Vec<String>,
}

impl Names {
    /// Other forms of names are left out, as upstream does.
    pub(crate) fn read(names: &[GeneralName<'_>]) -> Result<Self, RequestError> {
        let mut read = Self::default();
        for name in names {
            match name {
                GeneralName::DNSName(dns) => read.dns.push((*dns).to_owned()),
                GeneralName::RFC822Name(email) => read.emails.push((*email).to_owned()),
                GeneralName::URI(uri) => read.uris.push((*uri).to_owned()),
                GeneralName::IPAddress(bytes) => read
                    .addresses
                    .push(address(bytes).ok_or(RequestError::Address(bytes.len()))?),
                _ => {}
            }
        }
        Ok(read)
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
        _ => None,
    }
}

/// A request that could be read. Whether it is signed by its own key is another question: [`Request::check_signature`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    der: Vec<u8>,
    /// For whom.
    pub subject: Subject,
    /// Host names.
    pub dns_names: Vec<String>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
    /// Mail addresses.
    pub emails: Vec<String>,
    /// URIs.
    pub uris: Vec<String>,
    pub(crate) subject_der: Vec<u8>,
    pub(crate) public_key_der: Vec<u8>,
}

impl Request {
    /// Reads the first block of a PEM text.
    pub fn from_pem(text: &[u8]) -> Result<Self, RequestError> {
        // Base64 makes three bytes four, and there is a line end per 64.
        if text.len() > MAX_REQUEST * 2 {
            return Err(RequestError::TooLong);
        }
        let text = std::str::from_utf8(text).map_err(|_| RequestError::NoBlock)?;
        match pem::blocks(text).into_iter().next() {
            Some(block) if block.label == LABEL => Self::from_der(block.der),
            _ => Err(RequestError::NoBlock),
        }
    }

    /// Reads DER.
    pub fn from_der(der: Vec<u8>) -> Result<Self, RequestError> {
        if der.len() > MAX_REQUEST {
            return Err(RequestError::TooLong);
        }
        let (rest, parsed) =
            X509CertificationRequest::from_der(&der).map_err(|e| RequestError::Malformed(e.to_string()))?;
        if !rest.is_empty() {
            return Err(RequestError::Trailing);
        }
        if parsed.signature_value.unused_bits != 0 {
            return Err(RequestError::Malformed(
                "the signature is not whole bytes".to_owned(),
            ));
        }
        let info = &parsed.certification_request_info;
        let mut names = Names::default();
        for extension in parsed.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(alternative) = extension {
                names = Names::read(&alternative.general_names)?;
            }
        }
        let (subject, subject_der, public_key_der) = (
            Subject::read(&info.subject),
            info.subject.as_raw().to_vec(),
            info.subject_pki.raw.to_vec(),
        );
        Ok(Self {
            der,
            subject,
            dns_names: names.dns,
            addresses: names.addresses,
            emails: names.emails,
            uris: names.uris,
            subject_der,
            public_key_der,
        })
    }

    /// The request as it came.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Whether whoever made the request has the key that it names.
    pub fn check_signature(&self) -> Result<(), RequestError> {
        let (_, parsed) = X509CertificationRequest::from_der(&self.der)
            .map_err(|e| RequestError::Malformed(e.to_string()))?;
        parsed.verify_signature().map_err(|error| {
            use x509_parser::error::X509Error::SignatureUnsupportedAlgorithm;
            let key = &parsed.certification_request_info.subject_pki.algorithm.algorithm;
            RequestError::Signature(match error {
                SignatureUnsupportedAlgorithm => "x509: cannot verify signature: algorithm unimplemented",
                _ if *key == OID_KEY_TYPE_EC_PUBLIC_KEY => "x509: ECDSA verification failure",
                _ if *key == OID_SIG_ED25519 => "x509: Ed25519 verification failure",
                _ => "crypto/rsa: verification error",
            })
        })
    }
}

#[cfg(test)]
#[path = "request/tests.rs"]
mod tests;
