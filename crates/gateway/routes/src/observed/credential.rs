//! Certificates with their keys in Secrets, and authorities in ConfigMaps.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fairway_kernel_x509::{Certificate as X509, blocks};
use serde_json::Value;

use super::{Unread, read};
use crate::table::Certificate;

/// A Secret of type `kubernetes.io/tls`.
#[derive(Debug, Clone, PartialEq)]
pub struct Credential {
    pub certificate: Arc<Certificate>,
    /// `ca.crt`, if it is there.
    pub authorities: Option<Arc<str>>,
}

/// A ConfigMap with `ca.crt`.
#[derive(Debug, Clone, PartialEq)]
pub struct Authorities {
    pub pem: Arc<str>,
}

pub(super) fn read_secret(object: &Value) -> Result<Credential, Unread<Credential>> {
    let text = |field: &str| -> Result<Option<String>, String> {
        let Some(encoded) = object["data"][field].as_str() else {
            return Ok(None);
        };
        let bytes = STANDARD
            .decode(encoded)
            .map_err(|_| format!("{field} is not base64"))?;
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| format!("{field} is not PEM"))
    };
    let read = || {
        let chain = text("tls.crt")?.ok_or("tls.crt is missing")?;
        let key = text("tls.key")?.ok_or("tls.key is missing")?;
        Ok(Credential {
            certificate: Arc::new(certificate(&chain, &key)?),
            authorities: text("ca.crt")?.map(Arc::from),
        })
    };
    read().map_err(read::unread)
}

/// A chain and a key that can be tried; whether they belong together shows when they are used.
pub(crate) fn certificate(chain: &str, key: &str) -> Result<Certificate, String> {
    X509::first_from_pem(chain).map_err(|error| format!("the certificate cannot be read: {error}"))?;
    if !blocks(key)
        .iter()
        .any(|block| block.label.ends_with("PRIVATE KEY"))
    {
        return Err("the key is not a PEM block of a private key".to_owned());
    }
    Ok(Certificate {
        chain: chain.into(),
        key: key.into(),
    })
}

/// A text with at least one certificate in it.
pub(crate) fn authorities(text: &str) -> Result<Arc<str>, String> {
    X509::first_from_pem(text).map_err(|error| format!("the certificates cannot be read: {error}"))?;
    Ok(text.into())
}

pub(super) fn read_config_map(object: &Value) -> Result<Authorities, Unread<Authorities>> {
    let read = || {
        let text = object["data"]["ca.crt"].as_str().ok_or("ca.crt is missing")?;
        Ok(Authorities {
            pem: authorities(text)?,
        })
    };
    read().map_err(read::unread)
}
