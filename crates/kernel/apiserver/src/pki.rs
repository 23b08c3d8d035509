//! Certificates: a CA of the installation's own, and what it signs: the server's certificate, those of people and tools, and
//! whatever a request asks for.

use std::net::IpAddr;

use fairway_kernel_x509::{
    Algorithm, Certificate, CertificateError, Expired, Issuer, Request, RequestError, Subject, Template,
    UnknownUsage, Usages, encode, window,
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, SigningKey as _,
};

use crate::chance::Random;

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("a certificate for {what} could not be made")]
pub struct PkiError {
    what: String,
    #[source]
    source: Cause,
}

/// The reasons.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// A key cannot be used, or nothing can be signed.
    #[error("the key cannot be used")]
    Key(#[from] rcgen::Error),
    /// The authority's certificate is damaged.
    #[error("the authority's certificate cannot be used")]
    Authority(#[from] CertificateError),
    /// The authority is over.
    #[error(transparent)]
    Expired(#[from] Expired),
    /// The authority's key is of a kind with which we do not sign.
    #[error("the authority's key is neither ECDSA (P-256, P-384), nor Ed25519, nor RSA")]
    Algorithm,
    /// The key is not the one of the certificate.
    #[error("the authority's key does not belong to its certificate")]
    Mismatch,
    /// A usage is not known.
    #[error(transparent)]
    Usage(#[from] UnknownUsage),
    /// The request is not signed by its own key.
    #[error(transparent)]
    Request(#[from] RequestError),
}

fn failed<E: Into<Cause>>(what: &str) -> impl FnOnce(E) -> PkiError + '_ {
    move |source| PkiError {
        what: what.to_owned(),
        source: source.into(),
    }
}

/// Years that the CA is valid.
const CA_YEARS: i64 = 10;
/// Seconds that other certificates are valid, unless somebody wants it otherwise.
pub const LEAF_SECONDS: i64 = 365 * 86_400;

fn authority_params(name: &str, now_unix: i64) -> CertificateParams {
    let moment = |unix: i64| {
        time::OffsetDateTime::from_unix_timestamp(unix).unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params.use_authority_key_identifier_extension = true;
    // An hour of grace for clocks that are behind.
    params.not_before = moment(now_unix - 3_600);
    params.not_after = moment(now_unix + CA_YEARS * 365 * 86_400);
    params
}

/// A request for a client certificate, and the new key that it is for; both in PEM.
pub fn client_request(user: &str, group: &str) -> Result<(String, String), PkiError> {
    let key = KeyPair::generate().map_err(failed(user))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, user);
    let request = params.serialize_request(&key).map_err(failed(user))?;
    Ok((request.pem().map_err(failed(user))?, key.serialize_pem()))
}

/// A new CA.
pub fn new_authority(now_unix: i64) -> Result<Pair, PkiError> {
    let what = "the certificate authority";
    let key = KeyPair::generate().map_err(failed(what))?;
    let certificate = authority_params("fairway-ca", now_unix)
        .self_signed(&key)
        .map_err(failed(what))?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// A CA that takes the place of another.
pub struct Successor {
    /// The new one.
    pub pair: Pair,
    /// The new one's key, certified by the old one: who trusts only the old one believes what the new one signs, if it is
    /// shown together with this.
    pub cross: String,
}

/// Makes a CA that takes the place of `old`. It has a name of its own, so that nobody takes one for the other.
pub fn succeed(old: &Pair, now_unix: i64) -> Result<Successor, PkiError> {
    let what = "the next certificate authority";
    let key = KeyPair::generate().map_err(failed(what))?;
    let mut params = authority_params(&format!("fairway-ca-{now_unix}"), now_unix);
    let certificate = params.self_signed(&key).map_err(failed(what))?;
    let old_key = KeyPair::from_pem(&old.key).map_err(failed(what))?;
    let read = Certificate::first_from_pem(&old.certificate).map_err(failed(what))?;
    if let Ok(end) = time::OffsetDateTime::from_unix_timestamp(read.life.end) {
        params.not_after = params.not_after.min(end);
    }
    let issuer = rcgen::Issuer::from_ca_cert_pem(&old.certificate, old_key).map_err(failed(what))?;
    let cross = params.signed_by(&key, &issuer).map_err(failed(what))?;
    Ok(Successor {
        pair: Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        },
        cross: cross.pem(),
    })
}

/// A CA, ready to sign.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer,
    key: KeyPair,
    random: Random,
}

impl Authority {
    /// From a pair whose first certificate is the CA that the key belongs to.
    pub fn load(pair: &Pair) -> Result<Self, PkiError> {
        let what = "anybody";
        let key = KeyPair::from_pem(&pair.key).map_err(failed(what))?;
        let certificate = Certificate::first_from_pem(&pair.certificate).map_err(failed(what))?;
        if certificate.public_key != key.subject_public_key_info() {
            return Err(failed(what)(Cause::Mismatch));
        }
        let algorithm = [
            (&rcgen::PKCS_ECDSA_P256_SHA256, Algorithm::EcdsaSha256),
            (&rcgen::PKCS_ECDSA_P384_SHA384, Algorithm::EcdsaSha384),
            (&rcgen::PKCS_ED25519, Algorithm::Ed25519),
            (&rcgen::PKCS_RSA_SHA256, Algorithm::RsaSha256),
        ]
        .into_iter()
        .find(|(known, _)| *known == key.algorithm())
        .map(|(_, algorithm)| algorithm)
        .ok_or_else(|| failed(what)(Cause::Algorithm))?;
        Ok(Self {
            issuer: Issuer::new(&certificate, algorithm),
            certificate,
            key,
            random: Random::default(),
        })
    }

    /// The CA's own certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Signs what a request asks for: its subject, key and names as they are, with these usages, for at most this long.
    pub fn sign_request(
        &self,
        request: &Request,
        usages: &[String],
        seconds: i64,
        now_unix: i64,
    ) -> Result<String, PkiError> {
        let what = request.subject.common_name.as_str();
        request.check_signature().map_err(failed(what))?;
        let usages = Usages::parse(usages.iter().map(String::as_str)).map_err(failed(what))?;
        let life = window(now_unix, seconds, self.certificate.life.end).map_err(failed(what))?;
        self.sign(&Template::from_request(request, usages, life), what)
    }

    fn sign(&self, template: &Template, what: &str) -> Result<String, PkiError> {
        let mut serial = [0; 16];
        self.random.fill(&mut serial);
        let bytes = template.to_be_signed(&self.issuer, &serial);
        let signature = self.key.sign(&bytes).map_err(failed(what))?;
        Ok(encode(
            "CERTIFICATE",
            &Template::signed(bytes, &self.issuer, &signature),
        ))
    }

    /// A certificate for the server, for these addresses and names.
    pub fn serving(
        &self,
        addresses: &[IpAddr],
        names: &[&str],
        seconds: i64,
        now_unix: i64,
    ) -> Result<Pair, PkiError> {
        let subject = Subject {
            common_name: "fairway".to_owned(),
            organisations: Vec::new(),
        };
        let names = names.iter().map(|n| (*n).to_owned()).collect();
        self.pair(
            &subject,
            "server auth",
            (names, addresses.to_vec()),
            seconds,
            now_unix,
        )
    }

    /// A client certificate: the common name is the user, the organisations are the groups.
    pub fn client(&self, user: &str, groups: &[&str], seconds: i64, now_unix: i64) -> Result<Pair, PkiError> {
        let subject = Subject {
            common_name: user.to_owned(),
            organisations: groups.iter().map(|g| (*g).to_owned()).collect(),
        };
        self.pair(
            &subject,
            "client auth",
            (Vec::new(), Vec::new()),
            seconds,
            now_unix,
        )
    }

    fn pair(
        &self,
        subject: &Subject,
        purpose: &str,
        (names, addresses): (Vec<String>, Vec<IpAddr>),
        seconds: i64,
        now_unix: i64,
    ) -> Result<Pair, PkiError> {
        let what = subject.common_name.as_str();
        let key = KeyPair::generate().map_err(failed(what))?;
        let usages =
            Usages::parse(["digital signature", "key encipherment", purpose]).map_err(failed(what))?;
        let life = window(now_unix, seconds, self.certificate.life.end).map_err(failed(what))?;
        let template = Template::new(subject, key.subject_public_key_info(), usages, life);
        Ok(Pair {
            certificate: self.sign(&template.valid_for(names, addresses), what)?,
            key: key.serialize_pem(),
        })
    }
}
