//! Signing in with a password, as `fairway login` does: the page, its form, and the code that becomes tokens. Beside it stands
//! one bare argon2id of the same cost, in turns, because nothing but the hash shall limit how many people can sign in.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use argon2::{Algorithm, Argon2, Params, Version};
use fairway_portal_realm::client::COMMAND_LINE;
use fairway_portal_realm::params::{Params as Query, query};
use nix::time::{ClockId, clock_gettime};
use tokio::task::JoinSet;

use super::web::{SIGN_IN, Web};
use super::{Platform, idle};
use crate::client::Call;

/// Verifier and challenge of RFC 7636's example: a new pair each time would measure our own hashing.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// Nobody listens there: the answer is read before any browser would follow it.
const CALLBACK: &str = "http://127.0.0.1:9/callback";
const STATE: &str = "bench";
/// What is done behind the answer, such as the note of the sign-in, belongs to it.
const SETTLE: Duration = Duration::from_millis(300);
/// How long the platform is watched at rest: what it takes then is no part of a sign-in.
const REST: Duration = Duration::from_secs(5);

/// One sign-in, and one bare hash.
pub(super) struct Pair {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    pub(super) bare_wall: Duration,
    pub(super) bare_cpu: Duration,
}

/// How many in a second, one for each core at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) cores: usize,
    pub(super) sign_ins: f64,
    /// Of bare hashes of the same cost.
    pub(super) bare: f64,
}

/// A user of a realm.
#[derive(Clone)]
pub(super) struct User {
    pub(super) realm: String,
    pub(super) name: String,
    pub(super) password: String,
}

impl User {
    /// Signs in; the access token.
    pub(super) async fn sign_in(&self, web: &mut Web) -> Result<String> {
        let asked = query([
            ("response_type", "code"),
            ("client_id", COMMAND_LINE),
            ("redirect_uri", CALLBACK),
            ("scope", "openid profile groups offline_access"),
            ("state", STATE),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ]);
        let (authorize, token) = self.endpoints(web).await?;
        let address = format!("{authorize}?{asked}");
        let page = web.get(&address, None).await?;
        let html = page.text();
        let form_token =
            between(&html, "name=\"form_token\" value=\"", "\"").context("the sign-in page has no form")?;
        let cookie = page
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned();
        let form = query([
            ("form_token", form_token),
            ("username", &self.name),
            ("password", &self.password),
        ]);
        let answer = web.form(&address, &cookie, &form).await?;
        let Some((_, found)) = answer.header("location").split_once('?') else {
            bail!("{} was not let in: {}", self.name, answer.status);
        };
        let found = Query::parse(found).context("the answer to a sign-in cannot be read")?;
        let form = query([
            ("grant_type", "authorization_code"),
            ("code", found.text("code")),
            ("redirect_uri", CALLBACK),
            ("client_id", COMMAND_LINE),
            ("code_verifier", VERIFIER),
        ]);
        let tokens = web.form(&token, "", &form).await?.json()?;
        let access = tokens["access_token"].as_str();
        Ok(access.context("there is no access token")?.to_owned())
    }

    /// Paths of the realm's endpoints, as every client learns them.
    async fn endpoints(&self, web: &mut Web) -> Result<(String, String)> {
        let path = format!("/realms/{}/.well-known/openid-configuration", self.realm);
        let provider = web.get(&path, None).await?.json()?;
        let path_of = |name: &str| {
            let url: Option<http::Uri> = provider[name].as_str().and_then(|url| url.parse().ok());
            url.map(|url| url.path().to_owned())
                .with_context(|| format!("the provider does not say its {name}"))
        };
        Ok((path_of("authorization_endpoint")?, path_of("token_endpoint")?))
    }
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split(end).next()
}

/// The administrator, whose password a first start prints.
pub(super) async fn administrator(log: &Path) -> Result<User> {
    let begun = Instant::now();
    loop {
        // The API answers a moment before the server has said what it says once.
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if let Some(password) = between(&text, "admin, password ", " ") {
            return Ok(User {
                realm: "root".to_owned(),
                name: "admin".to_owned(),
                password: password.to_owned(),
            });
        }
        if begun.elapsed() > Duration::from_secs(60) {
            bail!("the start told no password of the administrator");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn measure(platform: &Platform, runs: usize) -> Result<Vec<Pair>> {
    let mut web = Web::connect(&platform.data, SIGN_IN).await?;
    let cost = cost(platform).await?;
    // Whatever is made once, such as the realm's keys and compiled schemas, is not what each one costs.
    platform.administrator.sign_in(&mut web).await?;
    bare(cost)?;
    let at_rest = idle::measure(platform, REST).await?.share / 100.0;
    let mut pairs = Vec::new();
    for _ in 0..runs {
        let (bare_wall, bare_cpu) = tokio::task::spawn_blocking(move || bare(cost)).await??;
        let before = platform.cpu()?;
        let begun = Instant::now();
        platform.administrator.sign_in(&mut web).await?;
        let wall = begun.elapsed();
        tokio::time::sleep(SETTLE).await;
        let taken = platform.cpu()?.saturating_sub(before);
        pairs.push(Pair {
            wall,
            cpu: taken.saturating_sub(begun.elapsed().mul_f64(at_rest)),
            bare_wall,
            bare_cpu,
        });
    }
    Ok(pairs)
}

/// As many people sign in at once as there are cores, each `each` times; and as many threads hash.
pub(super) async fn rates(platform: &Platform, each: usize) -> Result<Rates> {
    let cores = std::thread::available_parallelism()?.get();
    let cost = cost(platform).await?;
    let begun = Instant::now();
    let mut threads = JoinSet::new();
    for _ in 0..cores {
        threads.spawn_blocking(move || (0..each).try_for_each(|_| bare(cost).map(drop)));
    }
    while let Some(thread) = threads.join_next().await {
        thread??;
    }
    let bare_took = begun.elapsed();
    let mut connections = Vec::new();
    for _ in 0..cores {
        connections.push(Web::connect(&platform.data, SIGN_IN).await?);
    }
    let begun = Instant::now();
    let mut people = JoinSet::new();
    for mut web in connections {
        let user = platform.administrator.clone();
        people.spawn(async move {
            for _ in 0..each {
                user.sign_in(&mut web).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(person) = people.join_next().await {
        person??;
    }
    let all = (cores * each) as f64;
    Ok(Rates {
        cores,
        sign_ins: all / begun.elapsed().as_secs_f64(),
        bare: all / bare_took.as_secs_f64(),
    })
}

/// Memory in KiB, passes and lanes of the administrator's own hash: what is compared with must not go its own way.
async fn cost(platform: &Platform) -> Result<(u32, u32, u32)> {
    let path = "/apis/fairway.dev/v1alpha1/credentials/user.admin";
    let body = platform.client.send(Call::get(path)).await?.success()?;
    let credential: serde_json::Value = serde_json::from_slice(&body)?;
    let kept = credential["spec"]["passwordHash"].as_str().unwrap_or_default();
    read_cost(kept).context("the administrator has no hash that can be read")
}

fn read_cost(kept: &str) -> Option<(u32, u32, u32)> {
    let costs = kept.strip_prefix("$argon2id$v=19$")?.split('$').next()?;
    let mut parts = costs.split(',').zip(["m=", "t=", "p="]);
    let mut next = || {
        let (text, name) = parts.next()?;
        text.strip_prefix(name)?.parse().ok()
    };
    Some((next()?, next()?, next()?))
}

/// One hash on this thread.
fn bare((memory, passes, lanes): (u32, u32, u32)) -> Result<(Duration, Duration)> {
    let refused = |error: argon2::Error| anyhow!("argon2id: {error}");
    let cpu = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let (begun, before) = (Instant::now(), cpu()?);
    let params = Params::new(memory, passes, lanes, Some(32)).map_err(refused)?;
    let mut out = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(b"correct horse battery staple", &[7; 16], &mut out)
        .map_err(refused)?;
    black_box(out);
    Ok((begun.elapsed(), cpu()?.saturating_sub(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_as_everybody_writes_them() {
        assert_eq!(
            read_cost("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA"),
            Some((19_456, 2, 1))
        );
        assert_eq!(read_cost("$argon2id$v=19$m=19456,t=2$c2FsdA$aGFzaA"), None);
        assert_eq!(read_cost("$2b$10$abc"), None);
    }

    #[test]
    fn a_bare_hash_takes_time() {
        let (wall, cpu) = bare((1024, 1, 1)).unwrap();
        assert!(wall > Duration::ZERO && cpu > Duration::ZERO);
    }
}
