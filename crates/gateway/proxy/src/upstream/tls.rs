//! TLS towards backends: who signed the certificate, and which name must be in it.

use std::sync::Arc;

use fairway_gateway_routes::table::{self, BackendProtocol};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

#[derive(Clone)]
pub(crate) struct BackendTls {
    pub(crate) config: Arc<ClientConfig>,
    /// Sent as server name.
    pub(crate) hostname: String,
}

pub(crate) fn backend(spec: &table::BackendTls, protocol: BackendProtocol) -> Result<BackendTls, Arc<str>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = Arc::new(roots(spec.authorities.as_deref())?);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
        .build()
        .map_err(|error| format!("the authorities cannot be used: {error}"))?;
    let names = if spec.names.is_empty() {
        vec![spec.hostname.clone()]
    } else {
        spec.names.clone()
    };
    let verifier = Named {
        inner: verifier,
        roots,
        provider: Arc::clone(&provider),
        names,
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = match protocol {
        BackendProtocol::Http2 => vec![b"h2".to_vec()],
        BackendProtocol::Http1 | BackendProtocol::WebSocket => vec![b"http/1.1".to_vec()],
    };
    Ok(BackendTls {
        config: Arc::new(config),
        hostname: spec.hostname.clone(),
    })
}

fn roots(authorities: Option<&str>) -> Result<RootCertStore, Arc<str>> {
    let mut roots = RootCertStore::empty();
    match authorities {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let certificate = certificate
                    .map_err(|error| format!("the authorities are not PEM certificates: {error}"))?;
                roots
                    .add(certificate)
                    .map_err(|error| format!("an authority cannot be used: {error}"))?;
            }
        }
        None => {
            for certificate in rustls_native_certs::load_native_certs().certs {
                let _ = roots.add(certificate);
            }
        }
    }
    if roots.is_empty() {
        return Err("there is no authority to trust".into());
    }
    Ok(roots)
}

/// A chain to one of the authorities, and one of the names in the certificate. That the name sent (SNI) and the names
/// expected may differ is what BackendTLSPolicy's `subjectAltNames` are for.
#[derive(Debug)]
struct Named {
    inner: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    names: Vec<String>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        let fits = |name: &String| {
            if name.contains("://") {
                has_uri(end_entity, name)
            } else {
                ServerName::try_from(name.as_str())
                    .is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
            }
        };
        if self.names.iter().any(fits) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::NotValidForName))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// A workload's identity, such as `spiffe://…`.
fn has_uri(certificate: &CertificateDer<'_>, uri: &str) -> bool {
    use x509_parser::extensions::GeneralName;
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else {
        return false;
    };
    let Ok(Some(names)) = parsed.subject_alternative_name() else {
        return false;
    };
    names
        .value
        .general_names
        .iter()
        .any(|name| matches!(name, GeneralName::URI(found) if *found == uri))
}
