//! Exchanging the authority itself.
//!
//! The new one is written beside the old one and takes its place by renaming, the key last: as long as `ca-next.key` is
//! there, the change is not finished, and whoever comes next finishes it.

use std::fs;

use anyhow::{Context, bail};
use fairway_kernel_apiserver::pki;
use fairway_kernel_x509::encode;

use super::{Name, existing_authority, renew, write_pair};
use crate::data_dir::{DataDir, write_private};

/// What was exchanged.
pub(crate) struct Rotated {
    /// How many former authorities are still trusted.
    pub(crate) still_trusted: usize,
}

/// Makes a new authority and new certificates of our own. Former authorities stay trusted unless they are over or shall be
/// forgotten.
pub(crate) fn rotate(data: &DataDir, forget: bool, now: i64) -> anyhow::Result<Rotated> {
    finish_change(data)?;
    let Some(old) = existing_authority(data)? else {
        bail!(
            "there is no certificate authority in {} yet; `fairway up` makes it",
            data.path().display()
        );
    };
    let next = pki::succeed(&old.pair, now)?;
    let mut bundle = next.pair.certificate.clone();
    let mut still_trusted = 0;
    for former in old.trusted()?.iter().filter(|c| !forget && c.life.end > now) {
        bundle.push_str(&encode("CERTIFICATE", &former.der));
        still_trusted += 1;
    }
    let cross = if forget { String::new() } else { next.cross };
    write_private(&data.pki("ca-cross-next").0, cross.as_bytes())?;
    let pair = pki::Pair {
        certificate: bundle,
        key: next.pair.key,
    };
    let (certificate, key) = data.pki("ca-next");
    write_private(&certificate, pair.certificate.as_bytes())?;
    write_private(&key, pair.key.as_bytes())?;
    finish_change(data)?;
    let authority = pki::Authority::load(&pair)?;
    for name in Name::ALL {
        // A server that has never run has no serving certificate to replace.
        if super::read_pair(data, name.text())?.is_some() {
            renew(data, &authority, name, None, now)?;
        }
    }
    Ok(Rotated { still_trusted })
}

/// Trusts the present authority alone. Says how many are forgotten.
pub(crate) fn forget_old(data: &DataDir, now: i64) -> anyhow::Result<usize> {
    finish_change(data)?;
    let Some(files) = existing_authority(data)? else {
        bail!(
            "there is no certificate authority in {} yet",
            data.path().display()
        );
    };
    let trusted = files.trusted()?;
    let Some(present) = trusted.first() else {
        return Ok(0);
    };
    let kept = pki::Pair {
        certificate: encode("CERTIFICATE", &present.der),
        key: files.pair.key.clone(),
    };
    let authority = files.load()?;
    write_pair(data, "ca", &kept)?;
    write_private(&data.pki("ca-cross").0, b"")?;
    if super::read_pair(data, "admin")?.is_some() {
        renew(data, &authority, Name::Admin, None, now)?;
    }
    Ok(trusted.len().saturating_sub(1))
}

/// Finishes a change that was interrupted.
pub(super) fn finish_change(data: &DataDir) -> anyhow::Result<()> {
    let (next_certificate, next_key) = data.pki("ca-next");
    if !next_key.exists() {
        return Ok(());
    }
    let (certificate, key) = data.pki("ca");
    for (from, to) in [
        (data.pki("ca-cross-next").0, data.pki("ca-cross").0),
        (next_certificate, certificate),
        (next_key, key),
    ] {
        match fs::rename(&from, &to) {
            // It was renamed before the interruption.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => outcome.with_context(|| format!("{} could not take its place", from.display()))?,
        }
    }
    Ok(())
}
