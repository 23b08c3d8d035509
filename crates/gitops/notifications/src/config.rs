//! What `argocd-notifications-cm` and `argocd-notifications-secret` say.
//!
//! An entry that is wrong is named in `problems` and left out; the others go on. (In the original one wrong entry silences all.)

pub mod service;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use fairway_text_selector::LabelSelector;
use serde_json::Value;

use crate::expr::Expr;
use crate::message::Template;
use crate::subscription::Destination;
pub use service::Service;

/// The name of the ConfigMap.
pub const CONFIG_MAP: &str = "argocd-notifications-cm";
/// The name of the Secret.
pub const SECRET: &str = "argocd-notifications-secret";

/// A condition of a trigger.
#[derive(Debug, Clone)]
pub struct Condition {
    /// When it holds.
    pub when: Expr,
    /// What names it in the record: its place and its text.
    pub key: String,
    /// What must differ before it is told again.
    pub once_per: Option<Expr>,
    /// The templates that it is told with.
    pub send: Vec<String>,
    /// For people.
    pub description: String,
}

/// A subscription for all Applications that a selector picks.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Who is told.
    pub recipients: Vec<Destination>,
    /// Of what; of the default triggers if there are none.
    pub triggers: Vec<String>,
    pub(crate) selector: LabelSelector,
}

/// The configuration of a control plane.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// By name.
    pub services: BTreeMap<String, Service>,
    /// By name.
    pub templates: BTreeMap<String, Template>,
    /// By name.
    pub triggers: BTreeMap<String, Vec<Condition>>,
    /// What those are told of who do not say of what.
    pub default_triggers: Vec<String>,
    /// The same for single services.
    pub service_default_triggers: BTreeMap<String, Vec<String>>,
    /// For everybody.
    pub subscriptions: Vec<Subscription>,
    /// `context` of templates.
    pub context: BTreeMap<String, String>,
    pub(crate) secrets: Secrets,
    /// What is wrong, each with the name of its entry.
    pub problems: Vec<String>,
}

/// The Secret's values. They are not shown.
#[derive(Clone, Default)]
pub struct Secrets(pub(crate) BTreeMap<String, String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

pub(crate) fn read_yaml(text: &str) -> Result<Value, String> {
    let limits = fairway_text_yaml::Limits::default();
    fairway_text_yaml::from_slice(text.as_bytes(), limits).map_err(|error| error.to_string())
}

/// What a scalar says: Kubernetes' reader takes `true` for a text where a text is wanted.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

pub(crate) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(text).collect()
}

fn listed(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(_) => Ok(texts(value)),
        _ => Err("a list of triggers is expected".to_owned()),
    }
}

impl Config {
    /// Reads both. Secrets are texts.
    pub fn read(entries: &BTreeMap<String, String>, secrets: &BTreeMap<String, String>) -> Self {
        let mut config = Self {
            secrets: Secrets(secrets.clone()),
            ..Self::default()
        };
        for (key, content) in entries {
            if let Err(why) = config.entry(key, content, secrets) {
                config.problems.push(format!("{key}: {why}"));
            }
        }
        if secrets.contains_key("notifiers.yaml") {
            let problem =
                "notifiers.yaml of the Secret is an old form and is not read; write service.TYPE.NAME";
            config.problems.push(problem.to_owned());
        }
        config
    }

    fn entry(&mut self, key: &str, content: &str, secrets: &BTreeMap<String, String>) -> Result<(), String> {
        let (family, name) = key.split_once('.').unwrap_or((key, ""));
        match (family, name) {
            ("config", "yaml") => {
                return Err(
                    "an old form, which is not read; write trigger.NAME and template.NAME".to_owned(),
                );
            }
            ("template", name) if !name.is_empty() => {
                let template = Template::read(name, &read_yaml(content)?)?;
                self.templates.insert(name.to_owned(), template);
            }
            ("trigger", name) if !name.is_empty() => {
                let conditions = conditions(&read_yaml(content)?)?;
                self.triggers.insert(name.to_owned(), conditions);
            }
            ("service", name) if !name.is_empty() => {
                let (kind, name) = name.split_once('.').unwrap_or((name, name));
                if name.contains('.') {
                    return Err("a service is called service.TYPE or service.TYPE.NAME".to_owned());
                }
                let service = Service::read(kind, read_yaml(content)?, secrets)?;
                self.services.insert(name.to_owned(), service);
            }
            ("defaultTriggers", "") => self.default_triggers = listed(&read_yaml(content)?)?,
            ("defaultTriggers", service) => {
                let triggers = listed(&read_yaml(content)?)?;
                self.service_default_triggers.insert(service.to_owned(), triggers);
            }
            ("subscriptions", "") => self.subscriptions = subscriptions(&read_yaml(content)?)?,
            ("context", "") => {
                let context = read_yaml(content)?;
                let fields = context.as_object().into_iter().flatten();
                self.context = fields
                    .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
                    .collect();
            }
            _ => {}
        }
        Ok(())
    }
}

fn conditions(list: &Value) -> Result<Vec<Condition>, String> {
    let list = list.as_array().ok_or("a trigger is a list of conditions")?;
    let mut found = Vec::new();
    for (place, one) in list.iter().enumerate() {
        let wrong = |field: &str, why: &dyn std::fmt::Display| format!("condition {place}: {field}: {why}");
        let written = text(&one["when"]).unwrap_or_default();
        // Without a condition it never holds.
        let judged = if written.is_empty() { "false" } else { &written };
        let when = Expr::parse(judged).map_err(|error| wrong("when", &error))?;
        let once_per = text(&one["oncePer"]).filter(|text| !text.is_empty());
        let once_per = once_per.map(|text| Expr::parse(&text).map_err(|error| wrong("oncePer", &error)));
        found.push(Condition {
            when,
            key: crate::record::condition_key(place, &written),
            once_per: once_per.transpose()?,
            send: texts(&one["send"]),
            description: text(&one["description"]).unwrap_or_default(),
        });
    }
    Ok(found)
}

fn subscriptions(list: &Value) -> Result<Vec<Subscription>, String> {
    let list = match list {
        Value::Null => return Ok(Vec::new()),
        list => list.as_array().ok_or("a list of subscriptions is expected")?,
    };
    let mut found = Vec::new();
    for one in list {
        found.push(Subscription {
            recipients: texts(&one["recipients"])
                .iter()
                .map(|text| Destination::parse(text))
                .collect(),
            triggers: texts(&one["triggers"]),
            selector: selector(one["selector"].as_str().unwrap_or(""))?,
        });
    }
    Ok(found)
}

fn selector(text: &str) -> Result<LabelSelector, String> {
    LabelSelector::parse(text).map_err(|why| format!("the selector {text:?} cannot be read: {why}"))
}
