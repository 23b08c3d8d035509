//! Who is told: by annotations of an Application and of its project, and by the configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::config::{Config, read_yaml, texts};

const SUBSCRIBE: &str = "notifications.argoproj.io/subscribe.";
const SUBSCRIPTIONS: &str = "notifications.argoproj.io/subscriptions";
/// The most destinations of all triggers of an Application.
const MAX_DESTINATIONS: usize = 500;

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// Through which service.
    pub service: String,
    /// A channel, addresses; nothing for webhooks.
    pub recipient: String,
}

impl Destination {
    /// `SERVICE:RECIPIENT`, or a service. As in the original, a second colon ends the recipient.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let mut next = || parts.next().unwrap_or("").to_owned();
        Self {
            service: next(),
            recipient: next(),
        }
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.recipient.is_empty() {
            true => f.write_str(&self.service),
            false => write!(f, "{}:{}", self.service, self.recipient),
        }
    }
}

/// Who is told of which trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Destinations {
    /// By trigger.
    pub by_trigger: BTreeMap<String, BTreeSet<Destination>>,
    /// What is wrong with subscriptions, for people.
    pub problems: Vec<String>,
    count: usize,
}

impl Destinations {
    /// Those of an Application.
    pub fn of(application: &Value, project: &Value, config: &Config) -> Self {
        let mut found = Self::default();
        let labels = application.pointer("/metadata/labels").and_then(Value::as_object);
        for subscription in config
            .subscriptions
            .iter()
            .filter(|one| one.selector.matches(|key| labels?.get(key)?.as_str()))
        {
            let triggers = match subscription.triggers.is_empty() {
                true => &config.default_triggers,
                false => &subscription.triggers,
            };
            for recipient in &subscription.recipients {
                triggers
                    .iter()
                    .for_each(|trigger| found.add(trigger, recipient.clone()));
            }
        }
        for object in [application, project] {
            found.subscribed(object, config);
        }
        if found.count > MAX_DESTINATIONS {
            let problem = format!("more than {MAX_DESTINATIONS} subscriptions: the others are left out");
            found.problems.push(problem);
        }
        found
    }

    fn add(&mut self, trigger: &str, to: Destination) {
        if self.count >= MAX_DESTINATIONS {
            self.count = MAX_DESTINATIONS + 1;
            return;
        }
        let is_new = self.by_trigger.entry(trigger.to_owned()).or_default().insert(to);
        self.count += usize::from(is_new);
    }

    /// Without a trigger, those are meant that the configuration has for the service, or for all.
    fn add_all(&mut self, config: &Config, trigger: &str, service: &str, recipients: &[String]) {
        let defaults = config
            .service_default_triggers
            .get(service)
            .unwrap_or(&config.default_triggers);
        let one = [trigger.to_owned()];
        let triggers: &[String] = if trigger.is_empty() { defaults } else { &one };
        for recipient in recipients {
            for trigger in triggers {
                let to = Destination {
                    service: service.to_owned(),
                    recipient: recipient.clone(),
                };
                self.add(trigger, to);
            }
        }
    }

    fn subscribed(&mut self, object: &Value, config: &Config) {
        for (name, value) in annotations(object) {
            if let Some(rest) = name.strip_prefix(SUBSCRIBE) {
                let mut parts = rest.split('.');
                let (first, second) = (parts.next().unwrap_or(""), parts.next());
                let (trigger, service) = second.map_or(("", first), |service| (first, service));
                self.add_all(config, trigger, service, &recipients(value));
            } else if name.starts_with(SUBSCRIPTIONS) {
                match read_yaml(value) {
                    Ok(list) => self.listed(&list, config),
                    Err(why) => self
                        .problems
                        .push(format!("the annotation {name} cannot be read: {why}")),
                }
            }
        }
    }

    fn listed(&mut self, list: &Value, config: &Config) {
        for one in list.as_array().into_iter().flatten() {
            let mut triggers = texts(field(one, "trigger"));
            if triggers.is_empty() {
                triggers.push(String::new());
            }
            for destination in field(one, "destinations").as_array().into_iter().flatten() {
                let service = field(destination, "service").as_str().unwrap_or("");
                let recipients = texts(field(destination, "recipients"));
                triggers
                    .iter()
                    .for_each(|trigger| self.add_all(config, trigger, service, &recipients));
            }
        }
    }
}

/// A field by its name in any case, as Go reads JSON.
fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    const NULL: &Value = &Value::Null;
    let exact = value.get(name);
    let fields = || value.as_object().into_iter().flatten();
    let found = exact.or_else(|| {
        fields()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    });
    found.unwrap_or(NULL)
}

pub(crate) fn annotations(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let found = object.pointer("/metadata/annotations").and_then(Value::as_object);
    found
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// An empty annotation subscribes without a recipient, which is what a webhook needs.
fn recipients(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec![String::new()];
    }
    let words = value.split(';').map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config() -> Config {
        let entries = [
            ("defaultTriggers", "[on-degraded]"),
            ("defaultTriggers.pager", "[on-deployed, on-degraded]"),
            (
                "subscriptions",
                "- recipients: ['slack:all', hook, 'hook:http://x']\n  triggers: [on-deployed]\n  selector: team in (a, b),!quiet\n- recipients: ['email:ops']\n",
            ),
        ];
        let entries = entries
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        let config = Config::read(&entries, &BTreeMap::new());
        assert_eq!(config.problems, Vec::<String>::new());
        config
    }

    fn told(annotations: &Value, of_project: &Value, labels: &Value) -> Vec<String> {
        let application = json!({"metadata": {"annotations": annotations, "labels": labels}});
        let project = json!({"metadata": {"annotations": of_project}});
        let found = Destinations::of(&application, &project, &config());
        let lines = found.by_trigger.iter();
        let lines = lines.flat_map(|(trigger, all)| all.iter().map(move |to| format!("{trigger} {to}")));
        lines.chain(found.problems.iter().cloned()).collect()
    }

    #[test]
    fn subscriptions_are_found() {
        let none = json!({});
        let everybody = "on-degraded email:ops";
        for (annotations, of_project, labels, expected) in [
            (&none, &none, &none, &[everybody][..]),
            (
                &json!({"notifications.argoproj.io/subscribe.on-deployed.slack": "a; b ;;"}),
                &none,
                &none,
                &[everybody, "on-deployed slack:a", "on-deployed slack:b"],
            ),
            (
                &json!({"notifications.argoproj.io/subscribe.on-deployed.hook": ""}),
                &json!({"notifications.argoproj.io/subscribe.on-deployed.hook": "", "other/annotation": "x"}),
                &none,
                &[everybody, "on-deployed hook"],
            ),
            (
                &json!({"notifications.argoproj.io/subscribe.slack": "a"}),
                &json!({"notifications.argoproj.io/subscribe.pager": "p"}),
                &none,
                &[
                    everybody,
                    "on-degraded pager:p",
                    "on-degraded slack:a",
                    "on-deployed pager:p",
                ],
            ),
            (
                &none,
                &none,
                &json!({"team": "b"}),
                &[
                    everybody,
                    "on-deployed hook",
                    "on-deployed hook:http",
                    "on-deployed slack:all",
                ],
            ),
            (&none, &none, &json!({"team": "b", "quiet": ""}), &[everybody]),
            (
                &json!({"notifications.argoproj.io/subscriptions": "- trigger: [x, z]\n  destinations:\n  - service: slack\n    recipients: [c, d]\n- Destinations: [{service: hook, recipients: ['']}]\n"}),
                &none,
                &none,
                &[
                    everybody,
                    "on-degraded hook",
                    "x slack:c",
                    "x slack:d",
                    "z slack:c",
                    "z slack:d",
                ],
            ),
        ] {
            assert_eq!(
                told(annotations, of_project, labels),
                expected,
                "{annotations} {of_project} {labels}"
            );
        }
        let broken = told(
            &json!({"notifications.argoproj.io/subscriptions": "[a"}),
            &none,
            &none,
        );
        assert!(broken[1].contains("cannot be read"), "{broken:?}");
    }

    #[test]
    fn nobody_subscribes_without_bounds() {
        let many: Vec<String> = (0..600).map(|number| number.to_string()).collect();
        let annotations = json!({"notifications.argoproj.io/subscribe.x.slack": many.join(";")});
        let found = told(&annotations, &json!({}), &json!({}));
        assert_eq!(found.len(), MAX_DESTINATIONS + 1);
        assert!(found[MAX_DESTINATIONS].contains("left out"));
    }
}
