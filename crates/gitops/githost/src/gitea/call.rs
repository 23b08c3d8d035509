//! A call: who asks for what, and how he is answered in Gitea's form.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use fairway_gitops_git::GitError;
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::access::{self, Caller, Verb};
use crate::host::{Denial, Host, Opened};
use crate::owner;
use crate::place::PlaceError;
use crate::route::Slug;
use crate::scopes::{self, Area};
use crate::transport::{Body, Input, full, response};

/// The largest body: files in Base64.
const MAX_BODY: u64 = 64 << 20;
/// How many things a page has, if nobody says; and at most.
const PAGE: usize = 30;
const LARGEST_PAGE: usize = 50;

/// A request, read.
pub(super) struct Call {
    pub host: Arc<Host>,
    pub method: Method,
    /// The parts of the path below `/api/v1/`, decoded.
    pub path: Vec<String>,
    pub query: BTreeMap<String, String>,
    pub headers: HeaderMap,
    /// Who asks, if that is known without a token: another part of this process says so.
    pub known: Option<Caller>,
    pub body: Value,
}

/// What is answered.
pub(super) struct Answer {
    status: StatusCode,
    content: Content,
    headers: Vec<(&'static str, String)>,
}

enum Content {
    Json(Value),
    Bytes(Vec<u8>, &'static str),
    Stream(Body, &'static str),
    Nothing,
}

impl Answer {
    pub(super) fn ok(value: Value) -> Self {
        Self::with(StatusCode::OK, value)
    }

    pub(super) fn created(value: Value) -> Self {
        Self::with(StatusCode::CREATED, value)
    }

    pub(super) fn with(status: StatusCode, value: Value) -> Self {
        Self {
            status,
            content: Content::Json(value),
            headers: Vec::new(),
        }
    }

    pub(super) fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            content: Content::Nothing,
            headers: Vec::new(),
        }
    }

    pub(super) fn bytes(content: Vec<u8>, media_type: &'static str) -> Self {
        Self {
            status: StatusCode::OK,
            content: Content::Bytes(content, media_type),
            headers: Vec::new(),
        }
    }

    /// Something that is written while it is sent.
    pub(super) fn stream(content: Body, media_type: &'static str, name: &str) -> Self {
        Self {
            status: StatusCode::OK,
            content: Content::Stream(content, media_type),
            headers: vec![("content-disposition", format!("attachment; filename=\"{name}\""))],
        }
    }

    pub(super) fn response(self) -> Response<Body> {
        let mut answer = match self.content {
            Content::Json(value) => response(
                self.status,
                "application/json;charset=utf-8",
                full(value.to_string()),
            ),
            Content::Bytes(bytes, media_type) => response(self.status, media_type, full(bytes)),
            Content::Stream(body, media_type) => response(self.status, media_type, body),
            Content::Nothing => {
                let mut empty = Response::new(full(""));
                *empty.status_mut() = self.status;
                empty
            }
        };
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                answer.headers_mut().insert(name, value);
            }
        }
        answer
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Problem {
    pub status: StatusCode,
    pub message: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    pub(super) fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("{what} does not exist, or you may not read it"),
        )
    }

    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    pub(super) fn unserved(call: &Call) -> Self {
        let message = format!(
            "{} /api/v1/{} is not served here; docs/reference/git-host.md lists what is",
            call.method,
            call.path.join("/")
        );
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn response(self, host: &Host) -> Response<Body> {
        let body = json!({"message": self.message, "url": format!("{}/api/swagger", host.url())});
        let mut answer = response(
            self.status,
            "application/json;charset=utf-8",
            full(body.to_string()),
        );
        if self.status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Basic realm=\"Fairway\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, realm);
        }
        answer
    }
}

/// The caller's token is not for this.
pub(super) fn out_of_scope(area: Area, is_write: bool) -> Problem {
    let needed = format!("{}:{}", if is_write { "write" } else { "read" }, area.name());
    let why = format!("token does not have at least one of required scope(s): [{needed}]");
    Problem::new(StatusCode::FORBIDDEN, why)
}

impl From<Denial> for Problem {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::NotFound => Self::not_found("The repository"),
            Denial::Unauthenticated => Self::new(
                StatusCode::UNAUTHORIZED,
                "a token is needed that is valid in this workspace",
            ),
            Denial::Forbidden => Self::new(
                StatusCode::FORBIDDEN,
                "you may not do this: RBAC of the workspace does not grant the verb on repositories.fairway.dev",
            ),
            Denial::Broken(why) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, why),
        }
    }
}

impl From<GitError> for Problem {
    fn from(error: GitError) -> Self {
        let status = match &error {
            GitError::UnknownRevision { .. } | GitError::Ambiguous { .. } | GitError::NoObject { .. } => {
                StatusCode::NOT_FOUND
            }
            GitError::Moved { .. } => StatusCode::CONFLICT,
            GitError::Invalid { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            GitError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.full())
    }
}

impl From<PlaceError> for Problem {
    fn from(error: PlaceError) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl From<kube::Error> for Problem {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Self::new(code, status.message.clone())
            }
            other => Self::new(StatusCode::INTERNAL_SERVER_ERROR, other.to_string()),
        }
    }
}

impl Call {
    pub(super) async fn read(host: &Arc<Host>, path: &str, request: Request<Body>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let known = parts.extensions.remove::<Caller>();
        let decoded = path.split('/').map(decode).collect::<Option<Vec<String>>>();
        let path = decoded.ok_or_else(|| Problem::wrong("the path is not UTF-8"))?;
        let query = parts.uri.query().unwrap_or("");
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let body = match parts.method {
            Method::GET | Method::HEAD => Value::Null,
            _ => {
                let bytes = Input::new(body, false, MAX_BODY).whole().await;
                let bytes =
                    bytes.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
                match bytes.is_empty() {
                    true => Value::Null,
                    false => serde_json::from_slice(&bytes)
                        .map_err(|error| Problem::wrong(format!("the body is not JSON: {error}")))?,
                }
            }
        };
        Ok(Self {
            host: Arc::clone(host),
            method: parts.method,
            path,
            query,
            headers: parts.headers,
            known,
            body,
        })
    }

    pub(super) fn slug(&self, owner: &str, name: &str) -> Result<Slug, Problem> {
        let is_good = owner::workspace_of(owner).is_some() && owner::is_repository_name(name);
        let slug = Slug {
            owner: owner.to_owned(),
            name: name.to_owned(),
        };
        match is_good {
            true => Ok(slug),
            false => Err(Problem::not_found("The repository")),
        }
    }

    /// A repository for who may do this with it.
    pub(super) async fn open(&self, slug: &Slug, verb: Verb) -> Result<Opened, Problem> {
        match &self.known {
            Some(caller) => Ok(self.host.open_for(slug, caller.clone(), verb).await?),
            None => Ok(self.host.open(slug, &self.headers, verb).await?),
        }
    }

    /// The path of an owner's workspace, and who asks there; he must be known.
    pub(super) async fn caller_in(&self, owner: &str) -> Result<(String, Caller), Problem> {
        let workspace = owner::workspace_of(owner).ok_or_else(|| Problem::not_found("The organisation"))?;
        let caller = match &self.known {
            Some(caller) => caller.clone(),
            None => self.host.caller(&workspace, &self.headers).await?,
        };
        let is_write = self.method != Method::GET;
        let may = |area| scopes::allow(caller.user.as_ref(), area, is_write);
        if !may(Area::Organization) && !may(Area::Repository) {
            return Err(out_of_scope(Area::Organization, is_write));
        }
        match caller.is_known() {
            true => Ok((workspace, caller)),
            false => Err(Denial::Unauthenticated.into()),
        }
    }

    /// The id of the workspace that the caller's token is of, and who he is.
    pub(super) async fn caller_at_home(&self) -> Result<(String, Caller), Problem> {
        let token = access::token(&self.headers).ok_or(Denial::Unauthenticated)?;
        let home = access::workspace_of_token(&token).unwrap_or_else(|| "root".to_owned());
        let caller = self.host.caller(&home, &self.headers).await?;
        let is_write = self.method != Method::GET;
        let may = |area| scopes::allow(caller.user.as_ref(), area, is_write);
        if !may(Area::User) && !may(Area::Repository) {
            return Err(out_of_scope(Area::User, is_write));
        }
        Ok((home, caller))
    }

    /// A text of the body.
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.body.get(field).and_then(Value::as_str)
    }

    pub(super) fn flag(&self, field: &str) -> Option<bool> {
        self.body.get(field).and_then(Value::as_bool)
    }

    /// How many to leave out, and how many to show.
    pub(super) fn page(&self) -> (usize, usize) {
        let number = |name: &str| self.query.get(name).and_then(|text| text.parse::<usize>().ok());
        let limit = number("limit")
            .filter(|limit| *limit > 0)
            .unwrap_or(PAGE)
            .min(LARGEST_PAGE);
        let page = number("page").unwrap_or(1).clamp(1, 1_000_000);
        ((page - 1) * limit, limit)
    }

    /// A page of a list, with the headers that lead to the others.
    pub(super) fn paged(&self, items: Vec<Value>, total: usize) -> Answer {
        let (skip, limit) = self.page();
        let mut answer = Answer::ok(Value::Array(items));
        answer.headers = page_headers(
            self.host.url(),
            &self.path,
            &self.query,
            skip / limit + 1,
            limit,
            total,
        );
        answer
    }

    /// The same for a list that is there as a whole.
    pub(super) fn page_of(&self, items: Vec<Value>) -> Answer {
        let ((skip, limit), total) = (self.page(), items.len());
        self.paged(items.into_iter().skip(skip).take(limit).collect(), total)
    }
}

fn page_headers(
    url: &str,
    path: &[String],
    query: &BTreeMap<String, String>,
    page: usize,
    limit: usize,
    total: usize,
) -> Vec<(&'static str, String)> {
    let last = total.div_ceil(limit).max(1);
    let link = |to: usize, name: &str| {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        for (key, value) in query.iter().filter(|(key, _)| *key != "page") {
            pairs.append_pair(key, value);
        }
        pairs.append_pair("page", &to.to_string());
        format!(
            "<{url}/api/v1/{}?{}>; rel=\"{name}\"",
            path.join("/"),
            pairs.finish()
        )
    };
    let mut links = Vec::new();
    if page < last {
        links.push(link(page + 1, "next"));
        links.push(link(last, "last"));
    }
    if page > 1 {
        links.push(link(1, "first"));
        links.push(link(page - 1, "prev"));
    }
    let mut headers = vec![("x-total-count", total.to_string())];
    if !links.is_empty() {
        headers.push(("link", links.join(",")));
    }
    headers
}

/// Decodes the escapes of a part of a path, none if it is not UTF-8 then.
fn decode(part: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(part).decode_utf8();
    decoded.ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_lead_to_each_other() {
        let path = ["repos".to_owned(), "x".to_owned()];
        let query = BTreeMap::from([
            ("limit".to_owned(), "10".to_owned()),
            ("page".to_owned(), "2".to_owned()),
        ]);
        let headers = page_headers("https://h", &path, &query, 2, 10, 35);
        assert_eq!(headers[0].1, "35");
        let expected = "<https://h/api/v1/repos/x?limit=10&page=3>; rel=\"next\",<https://h/api/v1/repos/x?limit=10&page=4>; \
                        rel=\"last\",<https://h/api/v1/repos/x?limit=10&page=1>; \
                        rel=\"first\",<https://h/api/v1/repos/x?limit=10&page=1>; rel=\"prev\"";
        assert_eq!(headers[1].1, expected);
        assert_eq!(page_headers("", &path, &BTreeMap::new(), 1, 10, 10).len(), 1);
    }

    #[test]
    fn parts_of_paths_are_decoded() {
        for (part, expected) in [
            ("plain", Some("plain")),
            ("a%20b", Some("a b")),
            ("a%2Fb", Some("a/b")),
            ("a+b", Some("a+b")),
            ("", Some("")),
            ("%ff", None),
        ] {
            assert_eq!(decode(part).as_deref(), expected, "{part}");
        }
    }
}
