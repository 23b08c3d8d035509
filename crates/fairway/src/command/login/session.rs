//! What `fairway login` keeps: one file for each realm, for its owner alone. Whoever renews the tokens holds its lock, because a
//! refresh token counts once: two programs that used the same one would end the session.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use fairway_portal_realm::{client, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::wire::Http;
use crate::data_dir::{read_if_there, write_private};

/// A token that ends sooner is renewed: what it is used for takes a while.
const MARGIN: i64 = 30;

/// A sign-in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) revocation_endpoint: String,
    pub(super) access_token: String,
    pub(super) refresh_token: String,
    /// Seconds since 1970.
    pub(super) expires: i64,
    /// Certificates to believe, DER in base64.
    authorities: Vec<String>,
}

/// Where the session of a realm is kept.
pub(super) fn path(issuer: &str) -> anyhow::Result<PathBuf> {
    let base = match std::env::var_os("XDG_STATE_HOME").filter(|it| !it.is_empty()) {
        Some(base) => PathBuf::from(base),
        None => {
            let home =
                std::env::var_os("HOME").context("HOME is not set, so there is no place for the session")?;
            PathBuf::from(home).join(".local/state")
        }
    };
    let directory = base.join("fairway/sessions");
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)
        .with_context(|| format!("{} could not be made", directory.display()))?;
    let name: String = issuer
        .trim_start_matches("https://")
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    Ok(directory.join(format!("{name}.json")))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Session {
    /// From the answer of the token endpoint.
    pub(super) fn new(
        issuer: &str,
        provider: &Value,
        trust: &[Vec<u8>],
        tokens: &Value,
    ) -> anyhow::Result<Self> {
        let endpoint = |name: &str| {
            let found = provider[name].as_str().map(str::to_owned);
            found.with_context(|| format!("{issuer} does not say its {name}"))
        };
        let mut session = Self {
            issuer: issuer.to_owned(),
            token_endpoint: endpoint("token_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            access_token: String::new(),
            refresh_token: String::new(),
            expires: 0,
            authorities: trust.iter().map(|der| STANDARD.encode(der)).collect(),
        };
        session.take(tokens)?;
        Ok(session)
    }

    fn take(&mut self, tokens: &Value) -> anyhow::Result<()> {
        let text = |name: &str| {
            let found = tokens[name].as_str().map(str::to_owned);
            found.with_context(|| format!("the answer of {} has no {name}", self.token_endpoint))
        };
        let (access, refresh) = (text("access_token")?, text("refresh_token")?);
        self.expires = now() + tokens["expires_in"].as_i64().unwrap_or(60);
        (self.access_token, self.refresh_token) = (access, refresh);
        Ok(())
    }

    /// Certificates to believe.
    pub(super) fn trust(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        let decoded = self.authorities.iter().map(|text| STANDARD.decode(text));
        decoded
            .collect::<Result<_, _>>()
            .context("the session is damaged; run `fairway login` again")
    }

    /// The name of the user in the realm, as the token says.
    pub(super) fn user(&self) -> String {
        let claims = self.access_token.split('.').nth(1);
        let claims = claims.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let claims: Option<Value> = claims.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let name = claims.and_then(|it| it["preferred_username"].as_str().map(str::to_owned));
        name.unwrap_or_default()
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        write_private(path, serde_json::to_string_pretty(self)?.as_bytes())
    }

    pub(super) fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let Some(content) = read_if_there(path)? else {
            return Ok(None);
        };
        let read = serde_json::from_slice(&content);
        read.map(Some)
            .with_context(|| format!("{} is damaged; run `fairway login` again", path.display()))
    }

    /// The session of a file with a token that is good for a while, renewed if need be.
    pub(super) async fn fresh(path: &Path) -> anyhow::Result<Self> {
        let _lock = lock(path)?;
        // Read under the lock: somebody may have renewed it while we waited.
        let Some(mut session) = Self::read(path)? else {
            bail!(
                "nobody is signed in: {} is not there; run `fairway login`",
                path.display()
            );
        };
        if now() + MARGIN < session.expires {
            return Ok(session);
        }
        let http = Http::new(session.trust()?)?;
        let form = params::query([
            ("grant_type", "refresh_token"),
            ("refresh_token", session.refresh_token.as_str()),
            ("client_id", client::COMMAND_LINE),
        ]);
        let answer = http.post(&session.token_endpoint, &form).await?;
        match answer.status {
            200 => {
                session.take(&answer.json()?)?;
                session.write(path)?;
                Ok(session)
            }
            400 | 401 => {
                let why = answer.json().unwrap_or_default();
                let why = why["error_description"]
                    .as_str()
                    .unwrap_or("the session has ended")
                    .to_owned();
                bail!(
                    "the sign-in at {} is over ({why}); run `fairway login` again",
                    session.issuer
                )
            }
            status => bail!("{} answered {status}", session.token_endpoint),
        }
    }
}

/// Waits until nobody else renews the session.
fn lock(path: &Path) -> anyhow::Result<File> {
    let beside = path.with_extension("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&beside)
        .with_context(|| format!("{} could not be opened", beside.display()))?;
    file.lock()
        .with_context(|| format!("{} could not be locked", beside.display()))?;
    Ok(file)
}
