//! What expressions see: the request, where it comes from, and what the phases of authentication have found out so far.
//!
//! CEL reads each attribute where it lies; the one document that older selectors and Rego are given is made when something
//! asks for it.

use std::sync::{Arc, OnceLock};

use fairway_gateway_guard::{Asked, is_secret};
use fairway_text_cel::{Activation, Str, Timestamp, Type, Value};
use http::Version;
use serde_json::{Map, Value as Json, json};

/// What is known while a request is judged.
#[derive(Debug)]
pub struct Facts<'a> {
    asked: &'a Asked<'a>,
    identity: Option<Arc<Json>>,
    metadata: Map<String, Json>,
    authorization: Map<String, Json>,
    /// What authentication hands on to rate limits: `auth.<name>`.
    filters: Map<String, Json>,
    /// Names of headers, parameters and cookies that bring credentials, beside those whose name says so.
    hidden: Vec<String>,
    headers: OnceLock<Json>,
    auth: OnceLock<Json>,
    document: OnceLock<Json>,
}

/// The variables of CEL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    RequestId,
    RequestTime,
    RequestProtocol,
    RequestScheme,
    RequestHost,
    RequestMethod,
    RequestPath,
    RequestUrlPath,
    RequestQuery,
    RequestHeaders,
    RequestReferer,
    RequestUserAgent,
    RequestSize,
    Request,
    SourceAddress,
    SourceRemoteAddress,
    SourcePort,
    Source,
    Destination,
    AuthIdentity,
    AuthMetadata,
    AuthAuthorization,
    AuthKuadrant,
    Auth,
    Context,
}

impl Attribute {
    pub(crate) const ALL: [Attribute; 25] = [
        Attribute::RequestId,
        Attribute::RequestTime,
        Attribute::RequestProtocol,
        Attribute::RequestScheme,
        Attribute::RequestHost,
        Attribute::RequestMethod,
        Attribute::RequestPath,
        Attribute::RequestUrlPath,
        Attribute::RequestQuery,
        Attribute::RequestHeaders,
        Attribute::RequestReferer,
        Attribute::RequestUserAgent,
        Attribute::RequestSize,
        Attribute::Request,
        Attribute::SourceAddress,
        Attribute::SourceRemoteAddress,
        Attribute::SourcePort,
        Attribute::Source,
        Attribute::Destination,
        Attribute::AuthIdentity,
        Attribute::AuthMetadata,
        Attribute::AuthAuthorization,
        Attribute::AuthKuadrant,
        Attribute::Auth,
        Attribute::Context,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Attribute::RequestId => "request.id",
            Attribute::RequestTime => "request.time",
            Attribute::RequestProtocol => "request.protocol",
            Attribute::RequestScheme => "request.scheme",
            Attribute::RequestHost => "request.host",
            Attribute::RequestMethod => "request.method",
            Attribute::RequestPath => "request.path",
            Attribute::RequestUrlPath => "request.url_path",
            Attribute::RequestQuery => "request.query",
            Attribute::RequestHeaders => "request.headers",
            Attribute::RequestReferer => "request.referer",
            Attribute::RequestUserAgent => "request.user_agent",
            Attribute::RequestSize => "request.size",
            Attribute::Request => "request",
            Attribute::SourceAddress => "source.address",
            Attribute::SourceRemoteAddress => "source.remote_address",
            Attribute::SourcePort => "source.port",
            Attribute::Source => "source",
            Attribute::Destination => "destination",
            Attribute::AuthIdentity => "auth.identity",
            Attribute::AuthMetadata => "auth.metadata",
            Attribute::AuthAuthorization => "auth.authorization",
            Attribute::AuthKuadrant => "auth.kuadrant",
            Attribute::Auth => "auth",
            Attribute::Context => "context",
        }
    }

    pub(crate) fn cel_type(self) -> Type {
        match self {
            Attribute::RequestTime => Type::Timestamp,
            Attribute::RequestSize | Attribute::SourcePort => Type::Int,
            Attribute::RequestHeaders => Type::Map(Arc::new((Type::String, Type::String))),
            Attribute::Request
            | Attribute::Source
            | Attribute::Destination
            | Attribute::AuthIdentity
            | Attribute::AuthMetadata
            | Attribute::AuthAuthorization
            | Attribute::AuthKuadrant
            | Attribute::Auth
            | Attribute::Context => Type::Dyn,
            _ => Type::String,
        }
    }
}

impl<'a> Facts<'a> {
    /// What a request brings with it.
    pub fn new(asked: &'a Asked<'a>) -> Facts<'a> {
        Facts {
            asked,
            identity: None,
            metadata: Map::new(),
            authorization: Map::new(),
            filters: Map::new(),
            hidden: Vec::new(),
            headers: OnceLock::new(),
            auth: OnceLock::new(),
            document: OnceLock::new(),
        }
    }

    pub fn asked(&self) -> &'a Asked<'a> {
        self.asked
    }

    pub fn identity(&self) -> Option<&Arc<Json>> {
        self.identity.as_ref()
    }

    pub fn set_identity(&mut self, identity: Arc<Json>) {
        self.identity = Some(identity);
        self.forget();
    }

    pub fn set_metadata(&mut self, name: &str, value: Json) {
        self.metadata.insert(name.to_owned(), value);
        self.forget();
    }

    pub fn set_authorization(&mut self, name: &str, value: Json) {
        self.authorization.insert(name.to_owned(), value);
        self.forget();
    }

    /// Hands something on to rate limits, under `auth.<name>`.
    pub fn set_filter(&mut self, name: &str, value: Json) {
        self.filters.insert(name.to_owned(), value);
        self.forget();
    }

    /// Keeps what a header, parameter or cookie of this name says out of explanations.
    pub fn hide(&mut self, name: &str) {
        self.hidden.push(name.to_ascii_lowercase());
    }

    /// Whether what something of this name says is kept out of explanations.
    pub(super) fn is_hidden(&self, name: &str) -> bool {
        is_secret(name) || self.hidden.iter().any(|hidden| name.eq_ignore_ascii_case(hidden))
    }

    fn forget(&mut self) {
        self.auth = OnceLock::new();
        self.document = OnceLock::new();
    }

    /// The authorization document, in Authorino's form.
    pub fn document(&self) -> &Json {
        self.document.get_or_init(|| self.make_document())
    }

    fn header(&self, name: http::HeaderName) -> &'a str {
        let value = self.asked.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    fn protocol(&self) -> &'static str {
        match self.asked.version {
            Version::HTTP_10 => "HTTP/1.0",
            Version::HTTP_2 => "HTTP/2",
            Version::HTTP_3 => "HTTP/3",
            _ => "HTTP/1.1",
        }
    }

    fn path_and_query(&self) -> &'a str {
        let whole = self.asked.uri.path_and_query();
        whole.map_or("/", |whole| whole.as_str())
    }

    fn size(&self) -> i64 {
        self.header(http::header::CONTENT_LENGTH).parse().unwrap_or(-1)
    }

    /// Of a header that comes several times, all values, as proxies join them.
    fn headers(&self) -> &Json {
        self.headers.get_or_init(|| {
            let mut map = Map::with_capacity(self.asked.headers.keys_len());
            for name in self.asked.headers.keys() {
                let mut joined = String::new();
                for value in self.asked.headers.get_all(name) {
                    if !joined.is_empty() {
                        joined.push(',');
                    }
                    joined.push_str(&String::from_utf8_lossy(value.as_bytes()));
                }
                map.insert(name.as_str().to_owned(), Json::String(joined));
            }
            Json::Object(map)
        })
    }

    /// What is known of who it is.
    fn auth(&self) -> &Json {
        self.auth.get_or_init(|| {
            let mut auth = Map::new();
            let identity = self
                .identity
                .as_ref()
                .map_or(Json::Null, |identity| (**identity).clone());
            auth.insert("identity".to_owned(), identity);
            auth.insert("metadata".to_owned(), Json::Object(self.metadata.clone()));
            auth.insert(
                "authorization".to_owned(),
                Json::Object(self.authorization.clone()),
            );
            auth.extend(self.filters.clone());
            Json::Object(auth)
        })
    }

    /// What a selector finds. Those that ask who it is need no document.
    pub(crate) fn select(&self, selector: &super::Selector) -> Option<Json> {
        match (selector.below_identity(), &self.identity) {
            (Some(rest), Some(identity)) if !self.filters.contains_key("identity") => rest.select(identity),
            _ => selector.select(self.document()),
        }
    }

    fn make_document(&self) -> Json {
        let asked = self.asked;
        let seconds = i64::try_from(asked.now / 1_000_000_000).unwrap_or(0);
        let nanos = u32::try_from(asked.now % 1_000_000_000).unwrap_or(0);
        let time = json!({"seconds": seconds, "nanos": nanos});
        let request = json!({
            "id": asked.id, "time": time, "protocol": self.protocol(), "scheme": asked.scheme, "host": asked.host,
            "method": asked.method.as_str(), "path": self.path_and_query(), "url_path": asked.uri.path(),
            "query": asked.uri.query().unwrap_or(""), "headers": self.headers(),
            "referer": self.header(http::header::REFERER), "user_agent": self.header(http::header::USER_AGENT),
            "size": self.size(),
        });
        let address = asked.client.to_string();
        let source = json!({"address": address, "remote_address": address, "port": asked.client_port});
        let door = asked.door.ip().to_string();
        let destination = json!({"address": door, "port": asked.door.port()});
        let socket = |address: &str, port: u16| {
            json!({"address": {"Address": {"SocketAddress": {
                "address": address, "PortSpecifier": {"PortValue": port}}}}})
        };
        let context = json!({
            "source": socket(&address, asked.client_port),
            "destination": socket(&door, asked.door.port()),
            "request": {"time": time, "http": {
                "id": asked.id, "method": asked.method.as_str(), "headers": self.headers(), "path": self.path_and_query(),
                "host": asked.host, "scheme": asked.scheme, "protocol": self.protocol(), "size": self.size(),
            }},
        });
        json!({"context": context, "request": request, "source": source, "destination": destination, "auth": self.auth()})
    }

    /// The variables that an expression names.
    pub(crate) fn activation<'s>(&'s self, uses: &[Attribute]) -> Activation<'s> {
        uses.iter().fold(Activation::new(), |activation, attribute| {
            activation.bind_result(attribute.name(), self.attribute(*attribute))
        })
    }

    fn attribute<'s>(&'s self, attribute: Attribute) -> Result<Value<'s>, fairway_text_cel::Error> {
        let asked = self.asked;
        let text = |text: &'s str| Ok(Value::String(Str::Borrowed(text)));
        let json = |value: &'s Json| Value::from_json(value, None);
        match attribute {
            Attribute::RequestId => text(asked.id),
            Attribute::RequestTime => {
                let seconds = i64::try_from(asked.now / 1_000_000_000).unwrap_or(0);
                let nanos = u32::try_from(asked.now % 1_000_000_000).unwrap_or(0);
                Ok(Timestamp::from_seconds(seconds, nanos).map_or(Value::Null, Value::Timestamp))
            }
            Attribute::RequestProtocol => text(self.protocol()),
            Attribute::RequestScheme => text(asked.scheme),
            Attribute::RequestHost => text(asked.host),
            Attribute::RequestMethod => text(asked.method.as_str()),
            Attribute::RequestPath => text(self.path_and_query()),
            Attribute::RequestUrlPath => text(asked.uri.path()),
            Attribute::RequestQuery => text(asked.uri.query().unwrap_or("")),
            Attribute::RequestHeaders => json(self.headers()),
            Attribute::RequestReferer => text(self.header(http::header::REFERER)),
            Attribute::RequestUserAgent => text(self.header(http::header::USER_AGENT)),
            Attribute::RequestSize => Ok(Value::Int(self.size())),
            Attribute::SourceAddress | Attribute::SourceRemoteAddress => {
                Ok(Value::string(asked.client.to_string()))
            }
            Attribute::SourcePort => Ok(Value::Int(i64::from(asked.client_port))),
            Attribute::AuthIdentity => match (self.filters.get("identity"), &self.identity) {
                (Some(told), _) => json(told),
                (None, Some(identity)) => json(identity),
                (None, None) => Ok(Value::Null),
            },
            Attribute::AuthMetadata => json(&self.auth()["metadata"]),
            Attribute::AuthAuthorization => json(&self.auth()["authorization"]),
            Attribute::AuthKuadrant => match self.filters.get("kuadrant") {
                Some(told) => json(told),
                None => Err(fairway_text_cel::Error::NoSuchKey("kuadrant".into())),
            },
            Attribute::Request => json(&self.document()["request"]),
            Attribute::Source => json(&self.document()["source"]),
            Attribute::Destination => json(&self.document()["destination"]),
            Attribute::Auth => json(self.auth()),
            Attribute::Context => json(&self.document()["context"]),
        }
    }
}
