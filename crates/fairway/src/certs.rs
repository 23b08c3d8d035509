//! The installation's own certificates, as files: what there is, what is due, and how each is replaced.
//!
//! The server and `fairway certs` both work on these files, one at a time (`pki/lock`); the server notices what the command
//! has changed. So renewal is the same whether it runs or not, and there is no way to ask it for a key.
//!
//! `pki/ca.crt` may hold several authorities. The first is the one whose key is in `pki/ca.key`; the others have been replaced
//! and are still trusted. `pki/ca-cross.crt` shows to who trusts only the one before that the present one is its successor.

mod authority;

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use fairway_kernel_apiserver::pki::{self, Authority, Pair};
use fairway_kernel_x509::{Certificate, asked_for, due, renewal_moment};

use crate::data_dir::{DataDir, read_if_there, write_private};

pub(crate) use authority::{forget_old, rotate};

/// The administrator.
const ADMIN: (&str, &[&str]) = ("fairway-admin", &["system:masters"]);

/// What our own certificates are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// The server's.
    Serving,
    /// The administrator's, in the kubeconfig.
    Admin,
}

impl Name {
    pub(crate) const ALL: [Self; 2] = [Self::Serving, Self::Admin];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Admin => "admin",
        }
    }
}

/// Keeps others from the certificates until it is dropped.
pub(crate) struct Lock(#[expect(dead_code, reason = "held, and let go when it is dropped")] File);

/// Waits until nobody else works on the certificates.
pub(crate) fn lock(data: &DataDir) -> anyhow::Result<Lock> {
    let path = data.pki_lock();
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("the certificates' lock {} could not be taken", path.display()))?;
    Ok(Lock(file))
}

/// Our authority, as it lies there.
pub(crate) struct AuthorityFiles {
    /// The present one first, then those still trusted; and the key of the first.
    pub(crate) pair: Pair,
    /// The present one, certified by the one before.
    pub(crate) cross: Option<String>,
}

impl AuthorityFiles {
    /// Every trusted authority.
    pub(crate) fn trusted(&self) -> anyhow::Result<Vec<Certificate>> {
        Certificate::all_from_pem(&self.pair.certificate).context("pki/ca.crt is damaged")
    }

    /// Ready to sign.
    pub(crate) fn load(&self) -> anyhow::Result<Authority> {
        Authority::load(&self.pair)
            .context("the certificate authority in pki/ca.crt and pki/ca.key cannot sign")
    }
}

fn text(path: &Path, content: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(content).map_err(|_| anyhow!("{} is damaged", path.display()))
}

/// A certificate with its key, if both are there.
pub(crate) fn read_pair(data: &DataDir, name: &str) -> anyhow::Result<Option<Pair>> {
    let (certificate, key) = data.pki(name);
    Ok(match (read_if_there(&certificate)?, read_if_there(&key)?) {
        (Some(c), Some(k)) => Some(Pair {
            certificate: text(&certificate, c)?,
            key: text(&key, k)?,
        }),
        _ => None,
    })
}

fn write_pair(data: &DataDir, name: &str, pair: &Pair) -> anyhow::Result<()> {
    let (certificate, key) = data.pki(name);
    // The key first: a certificate without its key would be taken for a complete pair.
    write_private(&key, pair.key.as_bytes())?;
    write_private(&certificate, pair.certificate.as_bytes())
}

/// The authority, made if there is none. A change of it that was interrupted is finished first.
pub(crate) fn authority(data: &DataDir, now: i64) -> anyhow::Result<AuthorityFiles> {
    authority::finish_change(data)?;
    if read_pair(data, "ca")?.is_none() {
        write_pair(data, "ca", &pki::new_authority(now)?)?;
    }
    existing_authority(data)?.context("the certificate authority has vanished")
}

/// The authority, if there is one.
pub(crate) fn existing_authority(data: &DataDir) -> anyhow::Result<Option<AuthorityFiles>> {
    let cross = data.pki("ca-cross").0;
    let Some(pair) = read_pair(data, "ca")? else {
        return Ok(None);
    };
    let cross = match read_if_there(&cross)? {
        Some(content) if !content.is_empty() => Some(text(&cross, content)?),
        _ => None,
    };
    Ok(Some(AuthorityFiles { pair, cross }))
}

/// What a serving certificate must be valid for, and how long ours shall last.
pub(crate) struct Wanted {
    /// Host names.
    pub(crate) names: Vec<String>,
    /// Addresses.
    pub(crate) addresses: Vec<IpAddr>,
    /// Seconds.
    pub(crate) seconds: i64,
}

impl Wanted {
    /// The same as another certificate has.
    fn like(certificate: &Certificate) -> Self {
        let mut wanted = Self {
            names: Vec::new(),
            addresses: Vec::new(),
            seconds: asked_for(&certificate.life),
        };
        for name in &certificate.names {
            match name.parse() {
                Ok(address) => wanted.addresses.push(address),
                Err(_) => wanted.names.push(name.clone()),
            }
        }
        wanted
    }
}

/// Why a certificate is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// There is none.
    Missing,
    /// It is time.
    Due,
    /// It is not valid for what it must be valid for.
    Names,
    /// Its authority is not trusted any more, or a server would show one of a former authority.
    Authority,
}

/// Whether one of our certificates must be replaced: a pure question about what it says.
pub(crate) fn judge(
    name: Name,
    certificate: Option<&Certificate>,
    trusted: &[Certificate],
    wanted: Option<&Wanted>,
    now: i64,
) -> Option<Reason> {
    let Some(certificate) = certificate else {
        return Some(Reason::Missing);
    };
    let known = match name {
        // Who trusts the former one believes the present one through the cross certificate.
        Name::Serving => trusted
            .first()
            .is_some_and(|present| certificate.is_signed_by(present)),
        Name::Admin => trusted
            .iter()
            .any(|authority| certificate.is_signed_by(authority)),
    };
    if !known {
        return Some(Reason::Authority);
    }
    if let Some(wanted) = wanted
        && name == Name::Serving
    {
        let has = |name: &String| certificate.names.contains(name);
        if !wanted.names.iter().all(has) || !wanted.addresses.iter().all(|a| has(&a.to_string())) {
            return Some(Reason::Names);
        }
    }
    due(&certificate.life, certificate.chance(), now).then_some(Reason::Due)
}

/// Replaces one of our certificates by a new one with a new key.
pub(crate) fn renew(
    data: &DataDir,
    authority: &Authority,
    name: Name,
    wanted: Option<&Wanted>,
    now: i64,
) -> anyhow::Result<Pair> {
    let before = read_pair(data, name.text())?.and_then(|p| Certificate::first_from_pem(&p.certificate).ok());
    let like = before.as_ref().map(Wanted::like);
    let pair = match (name, wanted.or(like.as_ref())) {
        (Name::Serving, Some(wanted)) => {
            let names: Vec<&str> = wanted.names.iter().map(String::as_str).collect();
            authority.serving(&wanted.addresses, &names, wanted.seconds, now)?
        }
        (Name::Serving, None) => {
            bail!("there is no serving certificate yet; `fairway up` makes it when it knows its address")
        }
        (Name::Admin, wanted) => {
            let seconds = wanted.map_or(pki::LEAF_SECONDS, |w| w.seconds);
            authority.client(ADMIN.0, ADMIN.1, seconds, now)?
        }
    };
    write_pair(data, name.text(), &pair)?;
    Ok(pair)
}

/// When a certificate of ours is renewed by itself.
pub(crate) fn renewal(certificate: &Certificate) -> i64 {
    renewal_moment(&certificate.life, certificate.chance())
}

#[cfg(test)]
#[path = "certs/tests.rs"]
mod tests;
