//! What `fairway login` keeps: one file for each realm or other issuer, for its owner alone. Whoever renews the tokens holds its lock, because a
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

use super::flow::Provider;
use super::wire::Http;
use crate::data_dir::{read_if_there, write_private};

/// A token that ends sooner is renewed: what it is used for takes a while.
const MARGIN: i64 = 30;

/// A sign-in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) issuer: String,
    /// What the issuer knows this program as.
    #[serde(default = "own_client")]
    pub(super) client_id: String,
    pub(super) token_endpoint: String,
    /// Empty if the issuer has none.
    pub(super) revocation_endpoint: String,
    pub(super) access_token: String,
    /// Of an issuer that is not Fairway's own: what the API is sent, because its audience is this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id_token: Option<String>,
    /// Empty if the issuer gives none: then one signs in again when the token ends.
    pub(super) refresh_token: String,
    /// Seconds since 1970.
    pub(super) expires: i64,
    /// Certificates to believe, DER in base64.
    authorities: Vec<String>,
}

fn own_client() -> String {
    client::COMMAND_LINE.to_owned()
}

/// Where the session of an issuer is kept, and of a program that it knows by another name than ours.
pub(super) fn path(issuer: &str, client_id: &str) -> anyhow::Result<PathBuf> {
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
    let mut name = issuer.trim_start_matches("https://").to_owned();
    if client_id != client::COMMAND_LINE {
        name = format!("{name} {client_id}");
    }
    let name: String = name
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
        is_own: bool,
        provider: &Provider,
        trust: &[Vec<u8>],
        tokens: &Value,
    ) -> anyhow::Result<Self> {
        let endpoint = |name: &str| provider.metadata[name].as_str().map(str::to_owned);
        let mut session = Self {
            issuer: issuer.to_owned(),
            client_id: provider.client_id.clone(),
            token_endpoint: endpoint("token_endpoint")
                .with_context(|| format!("{issuer} does not say its token_endpoint"))?,
            revocation_endpoint: endpoint("revocation_endpoint").unwrap_or_default(),
            access_token: String::new(),
            id_token: (!is_own).then(String::new),
            refresh_token: String::new(),
            expires: 0,
            authorities: trust.iter().map(|der| STANDARD.encode(der)).collect(),
        };
        session.take(tokens)?;
        Ok(session)
    }

    /// Takes in what the token endpoint answers. Others than Fairway may leave out a refresh token that stays the same.
    fn take(&mut self, tokens: &Value) -> anyhow::Result<()> {
        let text = |name: &str| tokens[name].as_str().map(str::to_owned);
        let lacks = |name: &str| format!("the answer of {} has no {name}", self.token_endpoint);
        let access = text("access_token").with_context(|| lacks("access_token"))?;
        match (&self.id_token, text("refresh_token")) {
            (_, Some(refresh)) => self.refresh_token = refresh,
            (Some(_), None) => {}
            (None, None) => bail!("{}", lacks("refresh_token")),
        }
        if self.id_token.is_some() {
            let id = text("id_token").with_context(|| {
                let lacks = lacks("id_token");
                format!("{lacks}; the scope openid has to be asked for")
            })?;
            self.id_token = Some(id);
        }
        self.access_token = access;
        // An ID token says itself when it ends, which need not be when the access token does.
        let said = self.id_token.is_some().then(|| self.claims()["exp"].as_i64());
        let lives = || now() + tokens["expires_in"].as_i64().unwrap_or(60);
        self.expires = said.flatten().unwrap_or_else(lives);
        Ok(())
    }

    /// What the API is sent.
    pub(super) fn bearer(&self) -> &str {
        self.id_token.as_deref().unwrap_or(&self.access_token)
    }

    /// What the token says. Nobody here believes it: the API does, once it has looked at the signature.
    fn claims(&self) -> Value {
        let claims = self.bearer().split('.').nth(1);
        let claims = claims.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        claims
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
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
        let claims = self.claims();
        claims["preferred_username"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
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
        if session.refresh_token.is_empty() {
            bail!(
                "the sign-in at {} is over, and it gave nothing to renew it with; run `fairway login` again",
                session.issuer
            );
        }
        let http = Http::new(session.trust()?)?;
        let form = params::query([
            ("grant_type", "refresh_token"),
            ("refresh_token", session.refresh_token.as_str()),
            ("client_id", session.client_id.as_str()),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    fn session(is_own: bool, tokens: &Value) -> anyhow::Result<Session> {
        let provider = Provider {
            metadata: json!({"token_endpoint": "https://id.example/token"}),
            client_id: "cli".to_owned(),
            scope: "openid".to_owned(),
        };
        Session::new("https://id.example", is_own, &provider, &[], tokens)
    }

    #[test]
    fn our_own_access_token_and_the_id_token_of_others() {
        let (access, id) = (token(&json!({"exp": 7})), token(&json!({"exp": 9})));
        let tokens = json!({"access_token": access, "id_token": id, "refresh_token": "r", "expires_in": 60});
        let (own, other) = (session(true, &tokens).unwrap(), session(false, &tokens).unwrap());
        assert_eq!(own.bearer(), access);
        assert!(own.expires > 60, "it is told how long, and counts from now");
        assert_eq!((other.bearer(), other.expires), (id.as_str(), 9));
    }

    #[test]
    fn what_an_answer_may_lack() {
        let all = json!({"access_token": "a", "id_token": token(&json!({})), "refresh_token": "r"});
        for (lacks, own, other) in [
            ("access_token", false, false),
            ("refresh_token", false, true),
            ("id_token", true, false),
            ("expires_in", true, true),
        ] {
            let mut tokens = all.clone();
            tokens.as_object_mut().unwrap().remove(lacks);
            let found = (session(true, &tokens).is_ok(), session(false, &tokens).is_ok());
            assert_eq!(found, (own, other), "without {lacks}");
        }
    }

    #[test]
    fn a_refresh_token_that_is_not_renewed_is_kept() {
        let id = token(&json!({"exp": 9}));
        let mut found = session(
            false,
            &json!({"access_token": "a", "id_token": id, "refresh_token": "r"}),
        )
        .unwrap();
        found
            .take(&json!({"access_token": "b", "id_token": token(&json!({"exp": 20}))}))
            .unwrap();
        assert_eq!((found.refresh_token.as_str(), found.expires), ("r", 20));
    }
}
