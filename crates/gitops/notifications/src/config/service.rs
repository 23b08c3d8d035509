//! Services that notifications go through. Their values may refer to the Secret: `$name`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text;

/// Where Slack is.
const SLACK: &str = "https://slack.com/api/";

/// A service.
#[derive(Clone, PartialEq, Eq)]
pub enum Service {
    /// Any HTTP server, such as Slack's incoming webhooks.
    Webhook(Webhook),
    /// Mail.
    Email(Email),
    /// Slack, or whoever has its `chat.postMessage`.
    Slack(Slack),
    /// One of a type that is not served.
    Unserved(String),
}

/// Any HTTP server.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Webhook {
    /// Its address.
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// User and password.
    pub basic: Option<(String, String)>,
}

/// A mail server.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Email {
    /// Where it is.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in, and with what.
    pub login: Option<(String, String)>,
    /// The sender.
    pub from: String,
    /// Whether bodies are HTML.
    pub is_html: bool,
}

/// Slack's Web API.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Slack {
    /// A bot's token.
    pub token: String,
    /// The API, with a slash at its end.
    pub api_url: String,
    /// As whom it appears.
    pub username: String,
    /// With which picture.
    pub icon: String,
    /// Whether links are left as they are.
    pub disables_unfurl: bool,
}

impl std::fmt::Debug for Service {
    /// Without secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Webhook(_) => f.write_str("webhook"),
            Self::Email(_) => f.write_str("email"),
            Self::Slack(_) => f.write_str("slack"),
            Self::Unserved(kind) => write!(f, "{kind} (not served)"),
        }
    }
}

impl Service {
    /// Reads the definition of a service.
    pub fn read(kind: &str, mut options: Value, secrets: &BTreeMap<String, String>) -> Result<Self, String> {
        fill(&mut options, secrets);
        let of = |field: &str| text(&options[field]).unwrap_or_default();
        let needed = |field: &str| match of(field) {
            empty if empty.is_empty() => Err(format!("{field} is missing")),
            text => Ok(text),
        };
        let verified = |field: &str| match options[field] == true {
            true => Err(format!(
                "{field} is not served: let this machine trust the server's authority"
            )),
            false => Ok(()),
        };
        match kind {
            "webhook" => {
                verified("insecureSkipVerify")?;
                let header =
                    |one: &Value| Some((text(&one["name"])?, text(&one["value"]).unwrap_or_default()));
                let basic = &options["basicAuth"];
                let part = |field: &str| text(&basic[field]).unwrap_or_default();
                Ok(Self::Webhook(Webhook {
                    url: needed("url")?,
                    headers: options["headers"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(header)
                        .collect(),
                    basic: basic.is_object().then(|| (part("username"), part("password"))),
                }))
            }
            "email" => {
                verified("insecure_skip_verify")?;
                let port = of("port").parse().ok().filter(|port: &u16| *port > 0);
                let (user, password) = (of("username"), of("password"));
                Ok(Self::Email(Email {
                    host: needed("host")?,
                    port: port.ok_or("port is missing, or is not a port")?,
                    login: (!user.is_empty() && !password.is_empty()).then_some((user, password)),
                    from: needed("from")?,
                    is_html: options["html"] == true,
                }))
            }
            "slack" => {
                verified("insecureSkipVerify")?;
                let api = match of("apiURL") {
                    empty if empty.is_empty() => SLACK.to_owned(),
                    url => format!("{}/", url.trim_end_matches('/')),
                };
                Ok(Self::Slack(Slack {
                    token: needed("token")?,
                    api_url: api,
                    username: of("username"),
                    icon: of("icon"),
                    disables_unfurl: options["disableUnfurl"] == true,
                }))
            }
            other => Ok(Self::Unserved(other.to_owned())),
        }
    }
}

/// Puts secrets in the place of `$name`.
fn fill(value: &mut Value, secrets: &BTreeMap<String, String>) {
    match value {
        Value::String(text) => *text = filled(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, secrets)),
        _ => {}
    }
}

/// What the Secret does not have stays as it is.
fn filled(text: &str, secrets: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let after = &rest[at + 1..];
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        out.push_str(&rest[..at]);
        match secrets.get(name) {
            Some(secret) => out.push_str(secret),
            None => {
                out.push('$');
                out.push_str(name);
            }
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
