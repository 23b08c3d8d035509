//! Client certificates at the door: every client may show one and must hold its key, but whether somebody we trust has
//! signed it is asked after the handshake.
//!
//! A handshake that fails tells a client nothing that it could show its user, and upstream does not let it fail either: a
//! certificate of strangers is an answer 401, unless a token comes along with it.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Asks for a certificate and leaves the judgement on its chain to later.
#[derive(Debug)]
pub(super) struct Requested(pub(super) Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Requested {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Whether a chain that a client has shown leads to somebody we trust.
pub(super) fn is_trusted(trusted: &dyn ClientCertVerifier, chain: &[CertificateDer<'_>]) -> bool {
    chain.split_first().is_some_and(|(own, others)| {
        trusted
            .verify_client_cert(own, others, UnixTime::now())
            .inspect_err(|error| tracing::debug!(%error, "a client certificate is refused"))
            .is_ok()
    })
}
