//! Who a node is to others: a key of its own, made at its start. Its fingerprint is written on the Node, which only nodes themselves and operators
//! can do, and nobody is believed to be a node who does not hold the key. So there is no authority to ask and nothing to
//! renew.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use sha2::{Digest as _, Sha256};

/// SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no fingerprint.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a fingerprint is 64 hexadecimal digits")]
pub(crate) struct NotAFingerprint;

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NotAFingerprint);
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| NotAFingerprint)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| NotAFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

/// Why a node has no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("cannot make a key for the links between nodes")]
    Key(#[source] rcgen::Error),
    #[error("cannot use the key for the links between nodes")]
    Tls(#[source] rustls::Error),
}

/// A node's key.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl Identity {
    pub(super) fn new() -> Result<Self, IdentityError> {
        let key = KeyPair::generate().map_err(IdentityError::Key)?;
        let made = CertificateParams::default()
            .self_signed(&key)
            .map_err(IdentityError::Key)?;
        Ok(Self {
            certificate: made.der().clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            provider: Arc::new(rustls::crypto::ring::default_provider()),
        })
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// For who is called: `is_known` says whose key is a node's.
    pub(super) fn server(
        &self,
        is_known: impl Fn(Fingerprint) -> bool + Send + Sync + 'static,
    ) -> Result<ServerConfig, IdentityError> {
        let verifier = Arc::new(self.pinned(is_known));
        ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(IdentityError::Tls)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(IdentityError::Tls)
    }

    /// For who calls, and wants nobody but the one with this key.
    pub(super) fn client(&self, wanted: Fingerprint) -> Result<ClientConfig, IdentityError> {
        let verifier = Arc::new(self.pinned(move |found| found == wanted));
        ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(IdentityError::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_client_auth_cert(vec![self.certificate.clone()], self.key.clone_key())
            .map_err(IdentityError::Tls)
    }

    fn pinned(&self, is_known: impl Fn(Fingerprint) -> bool + Send + Sync + 'static) -> Pinned {
        Pinned {
            is_known: Box::new(is_known),
            provider: Arc::clone(&self.provider),
        }
    }
}

/// Believes whoever holds a key that is known.
struct Pinned {
    is_known: Box<dyn Fn(Fingerprint) -> bool + Send + Sync>,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pinned")
    }
}

impl Pinned {
    fn judge(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match (self.is_known)(Fingerprint::of(certificate)) {
            true => Ok(()),
            false => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn old() -> rustls::Error {
        rustls::Error::General("links between nodes speak TLS 1.3".to_owned())
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.judge(certificate).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(Self::old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.judge(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(Self::old())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let own = Identity::new().unwrap().fingerprint();
        assert_eq!(own.to_string().parse(), Ok(own));
        assert_ne!(own, Identity::new().unwrap().fingerprint());
        for wrong in ["", "ab", &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(NotAFingerprint), "{wrong}");
        }
    }

    /// Whether two sides agree to speak, and the caller hears the other.
    async fn speak(caller: &Identity, wanted: Fingerprint, called: &Identity, known: Fingerprint) -> bool {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (near, far) = tokio::io::duplex(64 * 1024);
        let acceptor =
            tokio_rustls::TlsAcceptor::from(Arc::new(called.server(move |key| key == known).unwrap()));
        tokio::spawn(async move {
            if let Ok(mut stream) = acceptor.accept(far).await {
                let _ = stream.write_all(b"x").await;
                let _ = stream.shutdown().await;
            }
        });
        let connector = tokio_rustls::TlsConnector::from(Arc::new(caller.client(wanted).unwrap()));
        let name = ServerName::try_from("node").unwrap();
        match connector.connect(name, near).await {
            Ok(mut stream) => stream.read_u8().await.is_ok(),
            Err(_) => false,
        }
    }

    #[tokio::test]
    async fn only_the_keys_that_are_known_are_believed() {
        let [one, other, stranger] = std::array::from_fn(|_| Identity::new().unwrap());
        let (a, b) = (one.fingerprint(), other.fingerprint());
        assert!(speak(&one, b, &other, a).await);
        assert!(!speak(&one, a, &other, a).await, "the caller wants somebody else");
        assert!(!speak(&one, b, &stranger, a).await, "somebody else has answered");
        assert!(!speak(&stranger, b, &other, a).await, "a stranger calls");
    }
}
