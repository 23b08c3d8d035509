//! What stands in a certificate.

use std::ops::Range;

use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::pem;
use crate::request::{Names, Subject};

/// The title of its PEM block.
const LABEL: &str = "CERTIFICATE";

/// Why something is not a list of certificates, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Something else is in it.
    #[error("only CERTIFICATE PEM blocks are allowed, found {0:?}")]
    OtherBlock(String),
    /// A block has headers.
    #[error("no PEM block headers are permitted")]
    Headers,
    /// There is none.
    #[error("must contain at least one CERTIFICATE PEM block")]
    None,
    /// One is not a certificate.
    #[error("the certificate cannot be read: {0}")]
    Malformed(String),
}

/// A certificate, as far as we look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// For whom.
    pub subject: Subject,
    /// The whole subject, for people.
    pub subject_text: String,
    /// Who signed it, for people.
    pub issuer_text: String,
    /// From when until when, in seconds since 1970.
    pub life: Range<i64>,
    /// The names and addresses that it is valid for.
    pub names: Vec<String>,
    /// Its number, in hexadecimal digits.
    pub serial: String,
    /// Whether it may sign others.
    pub is_authority: bool,
    /// The key identifier by which what it signs refers to it.
    pub key_id: Option<Vec<u8>>,
    /// Its public key (a SubjectPublicKeyInfo).
    pub public_key: Vec<u8>,
    pub(crate) subject_der: Vec<u8>,
    /// The certificate itself.
    pub der: Vec<u8>,
}

impl Certificate {
    /// Reads one.
    pub fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, parsed) =
            X509Certificate::from_der(der).map_err(|e| CertificateError::Malformed(e.to_string()))?;
        if !rest.is_empty() {
            return Err(CertificateError::Malformed("x509: trailing data".to_owned()));
        }
        let mut names = Names::default();
        let mut key_id = None;
        for extension in parsed.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(alternative) => {
                    names = Names::read(&alternative.general_names)
                        .map_err(|e| CertificateError::Malformed(e.to_string()))?;
                }
                ParsedExtension::SubjectKeyIdentifier(id) => key_id = Some(id.0.to_vec()),
                _ => {}
            }
        }
        let addresses = names.addresses.iter().map(ToString::to_string);
        let validity = parsed.validity();
        Ok(Self {
            subject: Subject::read(parsed.subject()),
            subject_text: parsed.subject().to_string(),
            issuer_text: parsed.issuer().to_string(),
            life: validity.not_before.timestamp()..validity.not_after.timestamp(),
            serial: parsed.raw_serial().iter().map(|b| format!("{b:02x}")).collect(),
            is_authority: parsed.is_ca(),
            key_id,
            public_key: parsed.public_key().raw.to_vec(),
            subject_der: parsed.subject().as_raw().to_vec(),
            names: names
                .dns
                .iter()
                .cloned()
                .chain(addresses)
                .chain(names.emails.iter().cloned())
                .chain(names.uris.iter().cloned())
                .collect(),
            der: der.to_vec(),
        })
    }

    /// Whether this authority has signed it. Names alone do not tell: a new authority may have the name of an old one.
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        let own = X509Certificate::from_der(&self.der);
        let signer = X509Certificate::from_der(&authority.der);
        match (own, signer) {
            (Ok((_, own)), Ok((_, signer))) => {
                own.issuer().as_raw() == signer.subject().as_raw()
                    && own.verify_signature(Some(signer.public_key())).is_ok()
            }
            _ => false,
        }
    }

    /// A number that is another one for each certificate and the same every time: what spreads renewals.
    pub fn chance(&self) -> u64 {
        let digits = self.serial.trim_start_matches('0');
        u64::from_str_radix(&digits[..digits.len().min(8)], 16).unwrap_or(0)
    }

    /// Reads every certificate of a PEM text that may have nothing else in it.
    pub fn all_from_pem(text: &str) -> Result<Vec<Self>, CertificateError> {
        let mut found = Vec::new();
        for block in pem::blocks(text) {
            if block.label != LABEL {
                return Err(CertificateError::OtherBlock(block.label));
            }
            if block.headers {
                return Err(CertificateError::Headers);
            }
            found.push(Self::from_der(&block.der)?);
        }
        if found.is_empty() {
            return Err(CertificateError::None);
        }
        Ok(found)
    }

    /// The first certificate of a PEM text.
    pub fn first_from_pem(text: &str) -> Result<Self, CertificateError> {
        Self::all_from_pem(text)?
            .into_iter()
            .next()
            .ok_or(CertificateError::None)
    }
}
