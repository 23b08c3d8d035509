//! From templates and variables to what is sent: Go templates with sprig, for each service in its form.

mod slack;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fairway_text_gotemplate::{Map, Value as GoValue};
use serde_json::Value;

use crate::config::service::Webhook;
use crate::config::{Config, Service, text as scalar};
use crate::facts::Facts;
use crate::subscription::Destination;
use text::Text;

/// A request to a webhook or to Slack.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// How.
    pub method: String,
    /// Where to.
    pub url: String,
    /// With what before it.
    pub headers: Vec<(String, String)>,
    /// User and password.
    pub basic: Option<(String, String)>,
    /// What.
    pub body: String,
    /// Whether it goes to Slack, which says in its answer whether it has accepted it.
    pub is_slack: bool,
}

/// A mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// To whom.
    pub to: Vec<String>,
    /// About what.
    pub subject: String,
    /// What.
    pub body: String,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Over HTTP.
    Http(Request),
    /// By mail.
    Mail(Mail),
}

impl std::fmt::Debug for Request {
    /// Without what may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({} bytes)", self.method, self.url, self.body.len())
    }
}

/// A template: what a notification says, to each service in its own way.
#[derive(Debug, Clone)]
pub struct Template {
    message: Text,
    email: Option<[Text; 2]>,
    slack: Option<slack::Template>,
    webhooks: BTreeMap<String, Hook>,
}

#[derive(Debug, Clone)]
struct Hook {
    method: String,
    path: Text,
    body: Text,
}

impl Template {
    /// Reads the template of that name. What it has for services that are not served is left alone.
    pub fn read(name: &str, value: &Value) -> Result<Self, String> {
        if !value.is_object() && !value.is_null() {
            return Err("a template is a map".to_owned());
        }
        let text = |value: &Value| Text::parse(name, &scalar(value).unwrap_or_default());
        let email = &value["email"];
        let slack = &value["slack"];
        let mut webhooks = BTreeMap::new();
        for (service, hook) in value["webhook"].as_object().into_iter().flatten() {
            let hook = Hook {
                method: scalar(&hook["method"]).unwrap_or_default(),
                path: text(&hook["path"])?,
                body: text(&hook["body"])?,
            };
            webhooks.insert(service.clone(), hook);
        }
        Ok(Self {
            message: text(&value["message"])?,
            email: email
                .is_object()
                .then(|| Ok::<_, String>([text(&email["subject"])?, text(&email["body"])?]))
                .transpose()?,
            slack: slack
                .is_object()
                .then(|| slack::Template::read(name, slack))
                .transpose()?,
            webhooks,
        })
    }
}

/// What several templates say together; what a later one says overrules what an earlier one has said.
#[derive(Default)]
struct Said {
    message: String,
    subject: String,
    body: String,
    slack: Option<slack::Said>,
    /// Method, path and body.
    webhook: Option<(String, String, String)>,
}

/// What somebody is sent. `variables` are those of the Application.
pub fn message(
    config: &Config,
    templates: &[String],
    to: &Destination,
    variables: &Map,
    facts: &Facts,
) -> Result<Message, String> {
    let service = config.services.get(&to.service);
    let service = service.ok_or_else(|| format!("notification service '{}' is not supported", to.service))?;
    if let Service::Unserved(kind) = service {
        return Err(format!(
            "services of type {kind} are not served; email, slack and webhook are"
        ));
    }
    let variables = of_destination(config, to, variables);
    let mut said = Said::default();
    for name in templates {
        let template = config.templates.get(name);
        let template = template.ok_or_else(|| format!("template '{name}' is not supported"))?;
        say(&mut said, template, to, &variables, facts)?;
    }
    match service {
        Service::Email(_) => mail(said, to).map(Message::Mail),
        Service::Webhook(webhook) => Ok(Message::Http(hook(said, webhook))),
        Service::Slack(slack) => {
            slack::request(slack, &said.message, said.slack, &to.recipient).map(Message::Http)
        }
        Service::Unserved(kind) => Err(format!("services of type {kind} are not served")),
    }
}

/// Variables, and those that tell who is spoken to.
fn of_destination(config: &Config, to: &Destination, variables: &Map) -> GoValue {
    let all = Map::new(variables.entries().into_iter().collect());
    all.set(*b"serviceType", GoValue::str(&to.service));
    all.set(*b"recipient", GoValue::str(&to.recipient));
    all.set(*b"context", crate::decide::context(config, &to.service));
    GoValue::Map(all)
}

fn say(
    said: &mut Said,
    template: &Template,
    to: &Destination,
    variables: &GoValue,
    facts: &Facts,
) -> Result<(), String> {
    let put = |target: &mut String, text: &Text| -> Result<(), String> {
        let text = text.fill(variables, facts)?;
        if !text.is_empty() {
            *target = text;
        }
        Ok(())
    };
    put(&mut said.message, &template.message)?;
    if let Some([subject, body]) = &template.email {
        put(&mut said.subject, subject)?;
        put(&mut said.body, body)?;
    }
    if let Some(slack) = &template.slack {
        said.slack = Some(slack.fill(variables, facts)?);
    }
    if let Some(hook) = template.webhooks.get(&to.service) {
        let (path, body) = (
            hook.path.fill(variables, facts)?,
            hook.body.fill(variables, facts)?,
        );
        said.webhook = Some((hook.method.clone(), path, body));
    }
    Ok(())
}

fn mail(said: Said, to: &Destination) -> Result<Mail, String> {
    let addresses = to
        .recipient
        .split(',')
        .map(str::trim)
        .filter(|address| !address.is_empty());
    let mail = Mail {
        to: addresses.map(str::to_owned).collect(),
        subject: said.subject,
        body: if said.body.is_empty() {
            said.message
        } else {
            said.body
        },
    };
    match mail.to.is_empty() {
        true => Err("the subscription names no address".to_owned()),
        false => Ok(mail),
    }
}

/// What a template has for the webhook takes the place of the message, also if it is empty.
fn hook(said: Said, webhook: &Webhook) -> Request {
    let mut request = Request {
        method: "GET".to_owned(),
        url: webhook.url.clone(),
        headers: webhook.headers.clone(),
        basic: webhook.basic.clone(),
        body: said.message,
        is_slack: false,
    };
    if let Some((method, path, body)) = said.webhook {
        request.body = body;
        if !method.is_empty() {
            request.method = method;
        }
        if !path.is_empty() {
            request.url = format!(
                "{}/{}",
                webhook.url.trim_end_matches('/'),
                path.trim_start_matches('/')
            );
        }
    }
    request
}
