//! Whom to believe, and who we are, on the way to a repository.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;

use super::Way;

/// The name that a certificate must have.
pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())
}

/// Speaks TLS as a way says. `trusted` are the certificates of the machine.
pub(super) fn connector(way: &Way, trusted: impl FnOnce() -> RootCertStore) -> Result<TlsConnector, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match (&way.ca, way.is_insecure) {
        (_, true) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider))),
        (Some(pem), false) => builder.with_root_certificates(roots(pem)?),
        (None, false) => builder.with_root_certificates(trusted()),
    };
    let config = match &way.client_certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| format!("tlsClientCertData is not PEM: {error}"))?;
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                .map_err(|error| format!("tlsClientCertKey is not PEM: {error}"))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| format!("tlsClientCertData and tlsClientCertKey: {error}"))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(pem: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate =
            certificate.map_err(|error| format!("argocd-tls-certs-cm has no PEM for it: {error}"))?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err("argocd-tls-certs-cm has no certificate for it".to_owned()),
        false => Ok(roots),
    }
}

/// Believes any certificate, for repositories whose Secret says `insecure`.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
