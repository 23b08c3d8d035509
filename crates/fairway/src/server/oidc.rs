//! Tells the kernel which OIDC issuers are trusted, and tells it again when the file has changed.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::{Context, anyhow};
use fairway_kernel_apiserver::Kernel;
use fairway_kernel_apiserver::authn::oidc::config::{self, Flags};
use tracing::{info, warn};

use super::TOKEN_ISSUER;
use crate::cli::oidc::OidcFlags;

/// Between two looks at the file.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the settings; a wrong one keeps the server from starting, an issuer that does not answer does not.
pub(super) fn follow(kernel: &Arc<Kernel>, settings: &OidcFlags) -> anyhow::Result<()> {
    if let Some(path) = &settings.authentication_config {
        let content = std::fs::read(path).with_context(|| {
            format!(
                "the authentication configuration {} could not be read",
                path.display()
            )
        })?;
        use_file(kernel, &content).map_err(|why| {
            anyhow!(
                "the authentication configuration {} is wrong: {why}",
                path.display()
            )
        })?;
        tokio::spawn(watch(Arc::downgrade(kernel), path.clone(), content));
        return Ok(());
    }
    let (Some(issuer_url), Some(client_id)) = (&settings.oidc_issuer_url, &settings.oidc_client_id) else {
        return Ok(());
    };
    let authority = settings
        .oidc_ca_file
        .as_ref()
        .map(|path| {
            std::fs::read_to_string(path)
                .with_context(|| format!("--oidc-ca-file {} could not be read", path.display()))
        })
        .transpose()?;
    let flags = Flags {
        issuer_url: issuer_url.clone(),
        client_id: client_id.clone(),
        username_claim: settings.oidc_username_claim.clone(),
        username_prefix: settings.oidc_username_prefix.clone(),
        groups_claim: settings.oidc_groups_claim.clone(),
        groups_prefix: settings.oidc_groups_prefix.clone(),
        required_claims: settings.oidc_required_claim.clone(),
        authority,
    };
    config::from_flags(&flags, TOKEN_ISSUER)
        .and_then(|authenticators| kernel.issuers.replace(authenticators))
        .map_err(|why| anyhow!("the --oidc-* flags are wrong: {why}"))
}

fn use_file(kernel: &Kernel, content: &[u8]) -> Result<(), String> {
    kernel.issuers.replace(config::parse(content, TOKEN_ISSUER)?)
}

async fn watch(kernel: Weak<Kernel>, path: PathBuf, mut seen: Vec<u8>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(kernel) = kernel.upgrade().filter(|k| !*k.shutdown.borrow()) else {
            return;
        };
        // It is small, and reading it is surer than looking at its times.
        let content = match tokio::fs::read(&path).await {
            Ok(content) if content != seen => content,
            // A file that is being replaced may be away for a moment.
            _ => continue,
        };
        match use_file(&kernel, &content) {
            Ok(()) => info!(file = %path.display(), "the authentication configuration was read again"),
            Err(why) => warn!(
                file = %path.display(),
                "the authentication configuration has changed and is wrong; what was before stays in force: {why}"
            ),
        }
        seen = content;
    }
}
