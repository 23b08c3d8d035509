//! Keys of one migration between hosts. Each side makes a certificate authority of its own for it, tells the other one's public part in the
//! instance, and trusts nobody else; private keys never leave their host.

use std::io;
use std::path::Path;

use fairway_machines_qemu::Confinement;
use fairway_machines_qemu::meeting::{Side, TLS_DIRECTORY, TLS_NAME};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

/// What QEMU calls the file of authorities that it trusts.
const TRUSTED: &str = "ca-cert.pem";

/// Makes keys and certificates in a machine's directory, and returns what the other side has to trust.
pub(super) fn make(directory: &Path, side: Side, confinement: &Confinement) -> Result<String, String> {
    let failed = |error: rcgen::Error| format!("making keys for the migration: {error}");
    let authority_key = KeyPair::generate().map_err(failed)?;
    let mut authority = named(&format!("fairway-migration-{}", side.word()));
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let certificate = authority.self_signed(&authority_key).map_err(failed)?;
    let trusted = certificate.pem();
    let issuer = Issuer::from_params(&authority, &authority_key);
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = named(TLS_NAME);
    params.subject_alt_names = CertificateParams::new(vec![TLS_NAME.to_owned()])
        .map_err(failed)?
        .subject_alt_names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match side {
        Side::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Side::Client => ExtendedKeyUsagePurpose::ClientAuth,
    }];
    params.use_authority_key_identifier_extension = true;
    let leaf = params.signed_by(&key, &issuer).map_err(failed)?;
    let place = directory.join(TLS_DIRECTORY);
    let word = side.word();
    let write = |name: &str, content: &str| write(&place.join(name), content, confinement);
    let written = std::fs::create_dir_all(&place)
        .and_then(|()| confinement.open_way(&place))
        .and_then(|()| write(&format!("{word}-cert.pem"), &leaf.pem()))
        .and_then(|()| write(&format!("{word}-key.pem"), &key.serialize_pem()))
        .and_then(|()| write(TRUSTED, &trusted));
    written.map_err(|error| format!("keys for the migration cannot be written: {error}"))?;
    Ok(trusted)
}

/// Trusts the other side, beside the own one, by which QEMU checks its own certificate.
pub(super) fn trust(
    directory: &Path,
    own: &str,
    other: &str,
    confinement: &Confinement,
) -> Result<(), String> {
    let path = directory.join(TLS_DIRECTORY).join(TRUSTED);
    write(&path, &format!("{own}{other}"), confinement)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// Forgets all keys.
pub(super) fn forget(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory.join(TLS_DIRECTORY));
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// Writes a file that only the machine can read.
fn write(path: &Path, content: &str, confinement: &Confinement) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content.as_bytes())?;
    confinement.give(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_trusts_itself_and_the_other() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let client = make(here.path(), Side::Client, &Confinement::default()).unwrap();
        let server = make(there.path(), Side::Server, &Confinement::default()).unwrap();
        assert_ne!(client, server);
        trust(here.path(), &client, &server, &Confinement::default()).unwrap();
        let trusted = std::fs::read_to_string(here.path().join(TLS_DIRECTORY).join(TRUSTED)).unwrap();
        assert_eq!(trusted, format!("{client}{server}"));
        for (place, file) in [(&here, "client-key.pem"), (&there, "server-cert.pem")] {
            assert!(place.path().join(TLS_DIRECTORY).join(file).exists(), "{file}");
        }
        forget(here.path());
        assert!(!here.path().join(TLS_DIRECTORY).exists());
    }
}
