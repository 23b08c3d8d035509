//! The ways to sign in, each of them a standard one: a browser on this machine (RFC 8252), a code typed on another (RFC 8628), and
//! for programs a name and a password that are put into the same form that people see.

use std::time::Duration;

use anyhow::{Context, bail};
use fairway_portal_realm::{Params, params, secret};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::wire::Http;
use crate::command::identity::password_from_stdin;

/// How long a person may take in the browser.
const PERSON: Duration = Duration::from_secs(600);
/// The longest line that a browser sends.
const MAX_LINE: u64 = 16 * 1024;

/// Whom one signs in at, and as which program.
pub(super) struct Provider {
    /// What it says of itself.
    pub(super) metadata: Value,
    /// What it knows this program as.
    pub(super) client_id: String,
    /// What is asked for.
    pub(super) scope: String,
}

impl Provider {
    fn endpoint(&self, name: &str) -> anyhow::Result<&str> {
        self.metadata[name]
            .as_str()
            .with_context(|| format!("the provider does not say its {name}"))
    }
}

fn random() -> anyhow::Result<String> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; 32];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| anyhow::anyhow!("the operating system gives no random numbers"))?;
    Ok(secret::text(&bytes))
}

/// What a provider is told of a verifier before it sees it (RFC 7636).
fn challenge_of(verifier: &str) -> String {
    use base64::Engine as _;
    let hash = digest(&SHA256, verifier.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash)
}

/// A request for a code, and what must come back with it.
struct Asked {
    url: String,
    verifier: String,
    state: String,
    redirect_uri: String,
}

impl Asked {
    fn new(provider: &Provider, redirect_uri: String, user: &str) -> anyhow::Result<Self> {
        let (verifier, state) = (random()?, random()?);
        let challenge = challenge_of(&verifier);
        let query = params::query([
            ("response_type", "code"),
            ("client_id", provider.client_id.as_str()),
            ("redirect_uri", redirect_uri.as_str()),
            ("scope", provider.scope.as_str()),
            ("state", state.as_str()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("login_hint", user),
        ]);
        let endpoint = provider.endpoint("authorization_endpoint")?;
        // An endpoint may have parameters of its own (RFC 6749, 3.1).
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        let url = format!("{endpoint}{joint}{query}");
        Ok(Self {
            url,
            verifier,
            state,
            redirect_uri,
        })
    }

    /// The code in an answer, which must be to this question and of this provider.
    fn code(&self, provider: &Provider, query: &str) -> anyhow::Result<String> {
        let answer = Params::parse(query).context("the answer cannot be read")?;
        if !secret::is_equal(answer.text("state").as_bytes(), self.state.as_bytes()) {
            bail!("the answer is not to this sign-in; try again");
        }
        if answer
            .get("iss")
            .is_some_and(|issuer| provider.metadata["issuer"] != issuer)
        {
            bail!("the answer is of another provider; try again");
        }
        if let Some(error) = answer.get("error") {
            bail!(
                "the sign-in was refused: {} ({error})",
                answer.text("error_description")
            );
        }
        Ok(answer.get("code").context("the answer has no code")?.to_owned())
    }

    async fn tokens(&self, http: &Http, provider: &Provider, code: &str) -> anyhow::Result<Value> {
        let form = params::query([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect_uri.as_str()),
            ("client_id", provider.client_id.as_str()),
            ("code_verifier", self.verifier.as_str()),
        ]);
        let answer = http.post(provider.endpoint("token_endpoint")?, &form).await?;
        match answer.status {
            200 => answer.json(),
            _ => bail!("the code was refused: {}", answer.text()),
        }
    }
}

/// By a browser on this machine, which comes back to a port of ours.
pub(super) async fn with_browser(http: &Http, provider: &Provider, start: bool) -> anyhow::Result<Value> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.context("no port is free for the browser to come back to")?;
    let port = listener.local_addr()?.port();
    let asked = Asked::new(provider, format!("http://127.0.0.1:{port}/callback"), "")?;
    println!("Sign in with a browser at:\n\n  {}\n", asked.url);
    if start {
        // If there is none, the address above is enough.
        let opener = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        let null = std::process::Stdio::null;
        let _ = tokio::process::Command::new(opener)
            .arg(&asked.url)
            .stdin(null())
            .stdout(null())
            .stderr(null())
            .spawn();
    }
    let code = timeout(PERSON, come_back(&listener, &asked, provider))
        .await
        .context("nobody signed in within ten minutes")??;
    asked.tokens(http, provider, &code).await
}

/// Waits for the browser. Whatever else connects is answered and forgotten.
async fn come_back(listener: &TcpListener, asked: &Asked, provider: &Provider) -> anyhow::Result<String> {
    use tokio::io::AsyncReadExt as _;
    loop {
        let (stream, _) = listener.accept().await?;
        let mut stream = BufReader::new(stream.take(MAX_LINE));
        let mut line = String::new();
        let read = timeout(Duration::from_secs(5), stream.read_line(&mut line)).await;
        let target = match read {
            Ok(Ok(_)) => line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()),
            _ => None,
        };
        let query = target.and_then(|it| it.strip_prefix("/callback?"));
        let (status, said, found) = match query.map(|query| asked.code(provider, query)) {
            None => ("404 Not Found", "There is nothing here.", None),
            Some(Ok(code)) => (
                "200 OK",
                "You are signed in. You can close this page.",
                Some(Ok(code)),
            ),
            Some(Err(error)) => (
                "400 Bad Request",
                "The sign-in failed; the terminal says why.",
                Some(Err(error)),
            ),
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: \
             close\r\ncache-control: no-store\r\n\r\n{said}",
            said.len()
        );
        let mut stream = stream.into_inner().into_inner();
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        if let Some(found) = found {
            return found;
        }
    }
}

/// By a code that is typed on another device.
pub(super) async fn with_device(http: &Http, provider: &Provider) -> anyhow::Result<Value> {
    // Keycloak wants a challenge here, too, of a client for which it is told to want one; whoever does not know it passes over it.
    let verifier = random()?;
    let form = params::query([
        ("client_id", provider.client_id.as_str()),
        ("scope", provider.scope.as_str()),
        ("code_challenge", challenge_of(&verifier).as_str()),
        ("code_challenge_method", "S256"),
    ]);
    let answer = http
        .post(provider.endpoint("device_authorization_endpoint")?, &form)
        .await?;
    let begun = answer.json()?;
    let text = |name: &str| begun[name].as_str().unwrap_or_default().to_owned();
    if answer.status != 200 {
        bail!(
            "the provider refused: {} ({})",
            text("error_description"),
            text("error")
        );
    }
    // The address with the code in it is an offer that not every provider makes (RFC 8628, 3.2).
    match begun["verification_uri_complete"].as_str() {
        Some(address) => println!(
            "Open this address on any device, and allow it if it shows the code {}:\n\n  {address}\n",
            text("user_code")
        ),
        None => println!(
            "Open this address on any device, and type the code {}:\n\n  {}\n",
            text("user_code"),
            text("verification_uri")
        ),
    }
    let form = params::query([
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", text("device_code").as_str()),
        ("code_verifier", verifier.as_str()),
        ("client_id", provider.client_id.as_str()),
    ]);
    let mut interval = begun["interval"].as_u64().unwrap_or(5).clamp(1, 60);
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let answer = http.post(provider.endpoint("token_endpoint")?, &form).await?;
        let said = answer.json()?;
        match (answer.status, said["error"].as_str()) {
            (200, _) => return Ok(said),
            (_, Some("authorization_pending")) => {}
            (_, Some("slow_down")) => interval += 5,
            (_, Some("access_denied")) => bail!("the sign-in was refused"),
            (_, Some("expired_token")) => bail!("nobody allowed it in time; try again"),
            (status, _) => bail!("the provider answered {status}: {said}"),
        }
    }
}

/// By a name and a password, put into the form that people see.
pub(super) async fn with_password(
    http: &Http,
    provider: &Provider,
    user: &str,
    otp: Option<&str>,
) -> anyhow::Result<Value> {
    let password = password_from_stdin()?;
    // Nobody listens there: the answer is read before any browser would follow it.
    let asked = Asked::new(provider, "http://127.0.0.1:9/callback".to_owned(), user)?;
    let page = http.send("GET", &asked.url, &[], "").await?;
    if page.status != 200 {
        bail!("the sign-in page answered {}", page.status);
    }
    let html = page.text();
    let token =
        between(&html, "name=\"form_token\" value=\"", "\"").context("the sign-in page has no form")?;
    let cookie = page
        .headers
        .get("set-cookie")
        .and_then(|value| value.to_str().ok());
    let cookie = cookie
        .and_then(|text| text.split(';').next())
        .unwrap_or_default()
        .to_owned();
    let form = params::query([
        ("form_token", token),
        ("username", user),
        ("password", password.as_str()),
        ("otp", otp.unwrap_or_default()),
    ]);
    let answer = http
        .send("POST", &asked.url, &[("cookie", cookie.as_str())], &form)
        .await?;
    let to = answer
        .headers
        .get("location")
        .and_then(|value| value.to_str().ok());
    let Some((_, query)) = to
        .filter(|_| answer.status == 303)
        .and_then(|to| to.split_once('?'))
    else {
        let html = answer.text();
        bail!(
            "{}",
            between(&html, "id=\"problem\">", "<").unwrap_or("the sign-in was refused")
        );
    };
    let code = asked.code(provider, query)?;
    asked.tokens(http, provider, &code).await
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split(end).next()
}
