//! Certificates: a CA of the installation's own, a serving certificate, client certificates for people and tools.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("a certificate for {what} could not be made")]
pub struct PkiError {
    what: String,
    #[source]
    source: rcgen::Error,
}

fn failed(what: &str) -> impl FnOnce(rcgen::Error) -> PkiError + '_ {
    move |source| PkiError {
        what: what.to_owned(),
        source,
    }
}

/// Years that the CA is valid.
const CA_YEARS: i64 = 10;
/// Days that other certificates are valid.
const LEAF_DAYS: i64 = 365;

fn validity(params: &mut CertificateParams, now_unix: i64, days: i64) {
    let moment = |unix: i64| {
        time::OffsetDateTime::from_unix_timestamp(unix).unwrap_or(time::OffsetDateTime::UNIX_EPOCH)
    };
    // An hour of grace for clocks that are behind.
    params.not_before = moment(now_unix - 3_600);
    params.not_after = moment(now_unix + days * 86_400);
}

/// A new CA.
pub fn new_authority(now_unix: i64) -> Result<Pair, PkiError> {
    let what = "the certificate authority";
    let mut params = CertificateParams::default();
    params.distinguished_name = name("fairway-ca", &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    validity(&mut params, now_unix, CA_YEARS * 365);
    let key = KeyPair::generate().map_err(failed(what))?;
    let certificate = params.self_signed(&key).map_err(failed(what))?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// A certificate for the server, for these addresses and names.
pub fn serving(
    authority: &Pair,
    addresses: &[IpAddr],
    names: &[&str],
    now_unix: i64,
) -> Result<Pair, PkiError> {
    let what = "the server";
    let mut params = CertificateParams::default();
    params.distinguished_name = name("fairway", &[]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for address in addresses {
        params.subject_alt_names.push(SanType::IpAddress(*address));
    }
    for dns in names {
        params
            .subject_alt_names
            .push(SanType::DnsName((*dns).try_into().map_err(failed(what))?));
    }
    signed(authority, params, now_unix, what)
}

/// A client certificate: the common name is the user, the organisations are the groups.
pub fn client(authority: &Pair, user: &str, groups: &[&str], now_unix: i64) -> Result<Pair, PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = name(user, groups);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    signed(authority, params, now_unix, user)
}

fn name(common: &str, organisations: &[&str]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    for organisation in organisations {
        name.push(DnType::OrganizationName, *organisation);
    }
    name
}

fn signed(
    authority: &Pair,
    mut params: CertificateParams,
    now_unix: i64,
    what: &str,
) -> Result<Pair, PkiError> {
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.use_authority_key_identifier_extension = true;
    validity(&mut params, now_unix, LEAF_DAYS);
    let ca_key = KeyPair::from_pem(&authority.key).map_err(failed(what))?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, ca_key).map_err(failed(what))?;
    let key = KeyPair::generate().map_err(failed(what))?;
    let certificate = params.signed_by(&key, &issuer).map_err(failed(what))?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}
