//! Where a request goes: `/realms/REALM/...`, and what every answer needs to know of it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_controller::Clients;
use fairway_outbound::AllowedHosts;
use fairway_portal_realm::device::Queue;
use fairway_portal_realm::external::pending::Pending;
use fairway_portal_realm::guard::Limits;
use fairway_portal_realm::{Guard, Params, Settings};
use http::header::{ALLOW, CONTENT_TYPE, COOKIE, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;

use crate::discovery::{CONFIGURATION, JWKS};
use crate::entries::Entries;
use crate::external::EXTERNAL;
use crate::objects::Objects;
use crate::page;
use crate::password::Hasher;
use crate::random::NoRandomness;
use crate::realms::{Realms, now};
use crate::respond::{self, Body};
use crate::signer::Signers;
use crate::upstream::Upstreams;

/// The most bytes of a form.
const MAX_FORM: usize = 32 * 1024;
/// How long a form may take to arrive.
const FORM_TIME: Duration = Duration::from_secs(30);

/// What the provider is told at the start.
#[derive(Clone)]
pub struct Options {
    /// Where it is served, without a slash at the end: `https://id.fairway.localhost:7443`.
    pub base: String,
    /// Where the portal is served, in the same form.
    pub portal: String,
    /// Everybody who is known.
    pub realms: Arc<Realms>,
    /// The way to the API, with the rights of [`crate::USER`].
    pub clients: Clients,
    /// The same with the rights of [`crate::ENTRIES_USER`].
    pub entries: Clients,
    /// Where the providers may be that realms let people sign in with.
    pub allowed_hosts: AllowedHosts,
}

/// Answers browsers and programs.
pub struct Provider {
    pub(crate) base: String,
    pub(crate) portal: String,
    pub(crate) realms: Arc<Realms>,
    pub(crate) objects: Objects,
    pub(crate) signers: Signers,
    pub(crate) hasher: Hasher,
    pub(crate) upstreams: Upstreams,
    pub(crate) entries: Entries,
    guard: Mutex<Guard>,
    queue: Mutex<Queue>,
    pending: Mutex<Pending>,
}

/// A request for a realm, taken apart.
pub(crate) struct Call<'a> {
    /// The realm.
    pub(crate) realm: &'a str,
    /// The id of its workspace.
    pub(crate) cluster: &'a str,
    /// Its settings.
    pub(crate) settings: Settings,
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a HeaderMap,
    /// Of the URL, as it came.
    pub(crate) query: &'a str,
    /// Of the form.
    pub(crate) form: Params,
    /// Where it came from.
    pub(crate) address: IpAddr,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

impl Call<'_> {
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            attempts: self.settings.lockout_attempts,
            seconds: self.settings.lockout,
        }
    }

    pub(crate) fn is_post(&self) -> bool {
        self.method == Method::POST
    }

    /// A cookie by its name.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let all = self
            .headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        all.flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// What people call the realm.
    pub(crate) fn title(&self) -> &str {
        match self.settings.display_name.as_str() {
            "" => self.realm,
            name => name,
        }
    }
}

impl Provider {
    /// A provider; nothing is served before [`Provider::serve`] is called.
    pub fn new(options: Options) -> Result<Arc<Self>, NoRandomness> {
        options.realms.serve_at(&options.base);
        Ok(Arc::new(Self {
            base: options.base,
            portal: options.portal,
            realms: options.realms,
            objects: Objects::new(options.clients),
            signers: Signers::default(),
            hasher: Hasher::new()?,
            upstreams: Upstreams::new(options.allowed_hosts),
            entries: Entries::new(options.entries),
            guard: Mutex::default(),
            queue: Mutex::default(),
            pending: Mutex::default(),
        }))
    }

    pub(crate) fn guarded<T>(&self, act: impl FnOnce(&mut Guard) -> T) -> T {
        act(&mut self.guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn queued<T>(&self, act: impl FnOnce(&mut Queue) -> T) -> T {
        act(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn awaited<T>(&self, act: impl FnOnce(&mut Pending) -> T) -> T {
        act(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers a request from an address.
    pub async fn serve(&self, request: Request<Body>, address: IpAddr) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if path == page::STYLE_PATH {
            return respond::style(page::STYLE);
        }
        let Some((realm, rest)) = path.strip_prefix("/realms/").and_then(|it| it.split_once('/')) else {
            return page::not_found();
        };
        let Some((cluster, settings)) = self
            .realms
            .read(|all| Some((all.cluster(realm)?.to_owned(), all.settings(realm))))
        else {
            return page::not_found();
        };
        if parts.method == Method::OPTIONS
            && let Some(answer) = self.preflight(&cluster, rest, &parts.headers).await
        {
            return answer;
        }
        let takes_forms = matches!(parts.method, Method::POST);
        if !takes_forms && !matches!(parts.method, Method::GET | Method::HEAD) {
            return refuse_method("GET, HEAD, POST");
        }
        let form = if takes_forms {
            match read_form(&parts.headers, body).await {
                Ok(form) => form,
                Err(refusal) => return *refusal,
            }
        } else {
            Params::default()
        };
        let call = Call {
            realm,
            cluster: &cluster,
            settings,
            method: &parts.method,
            headers: &parts.headers,
            query: parts.uri.query().unwrap_or_default(),
            form,
            address,
            now: now(),
        };
        let answer = self.answer(rest, &call).await;
        match parts.headers.contains_key(ORIGIN) {
            true => self.readable(&cluster, rest, &parts.headers, answer).await,
            false => answer,
        }
    }

    async fn answer(&self, path: &str, call: &Call<'_>) -> Response<Body> {
        match (path, call.is_post()) {
            (CONFIGURATION, false) => self.discovery(call),
            (JWKS, false) => self.jwks(call),
            ("authorize", false) => self.authorize(call).await,
            // A program's request may come as a form, which ours always shows its token with. It goes on as an address, where the
            // browser's own cookies come along.
            ("authorize", true) if is_request(&call.form) => respond::redirect(&as_address(call)),
            ("authorize", true) if self.is_same_origin(call) => self.authorize_form(call).await,
            ("device", false) => self.device_page(call).await,
            ("device", true) if self.is_same_origin(call) => self.device_form(call).await,
            ("account", false) => self.account(call).await,
            ("account", true) if self.is_same_origin(call) => self.account_form(call).await,
            ("logout", false) => self.logout(call).await,
            // Programs may send their request by a form of their own site, too; what must come from our page carries its token.
            ("logout", true) => self.logout(call).await,
            ("authorize" | "device" | "account", true) => page::tell(
                call,
                StatusCode::FORBIDDEN,
                "This form did not come from here. Go back to the program and begin again.",
            ),
            ("token", true) => self.token(call).await,
            ("device_authorization", true) => self.device_authorization(call).await,
            ("revoke", true) => self.revoke(call).await,
            ("introspect", true) => self.introspect(call).await,
            ("userinfo", _) => self.userinfo(call),
            ("token" | "device_authorization" | "revoke" | "introspect", false) => refuse_method("POST"),
            (CONFIGURATION | JWKS, true) => refuse_method("GET, HEAD"),
            (path, _) if let Some(rest) = path.strip_prefix(EXTERNAL) => match *call.method == Method::GET {
                true => self.external(call, rest).await,
                // Looking whether something is there must not use it up.
                false => refuse_method("GET"),
            },
            _ => page::not_found(),
        }
    }

    /// Whether a form came from a page of ours, as far as the browser says.
    fn is_same_origin(&self, call: &Call<'_>) -> bool {
        match call.headers.get(ORIGIN) {
            // A browser that hides where it comes from still has to bring the form's token.
            None => true,
            Some(origin) => origin == self.base.as_str() || origin == "null",
        }
    }
}

/// Whether a form is what a program asks, and not what a person has filled in.
fn is_request(form: &Params) -> bool {
    form.get("client_id").is_some() && form.get("form_token").is_none()
}

/// The address that asks the same as a form.
fn as_address(call: &Call<'_>) -> String {
    format!(
        "/realms/{}/authorize?{}",
        call.realm,
        fairway_portal_realm::params::query(call.form.iter())
    )
}

fn refuse_method(allowed: &'static str) -> Response<Body> {
    let why = format!("only {allowed} is answered here");
    let mut response = respond::error(StatusCode::METHOD_NOT_ALLOWED, "invalid_request", &why);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The whole of a body, if it is not too much.
async fn read_bytes(mut body: Body) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            if bytes.len() + data.len() > MAX_FORM {
                return None;
            }
            bytes.extend_from_slice(&data);
        }
    }
    Some(bytes)
}

async fn read_form(headers: &HeaderMap, body: Body) -> Result<Params, Box<Response<Body>>> {
    let refuse = |status, why: &str| Box::new(respond::error(status, "invalid_request", why));
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let bytes = match tokio::time::timeout(FORM_TIME, read_bytes(body)).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            let why = format!("the form broke off, or is larger than {MAX_FORM} bytes");
            return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, &why));
        }
        Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT, "the form took too long")),
    };
    if !bytes.is_empty() && !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let why = "the body must be application/x-www-form-urlencoded";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| refuse(StatusCode::BAD_REQUEST, "the form is not UTF-8"))?;
    Params::parse(text).map_err(|why| refuse(StatusCode::BAD_REQUEST, &why.to_string()))
}
