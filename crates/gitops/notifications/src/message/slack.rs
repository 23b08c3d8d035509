//! Slack's Web API: `chat.postMessage`, as a form, which is how the original's client speaks to it.

use fairway_text_gotemplate::Value as GoValue;
use serde_json::Value;

use super::text::Text;
use super::{Request, scalar};
use crate::config::service::Slack;
use crate::facts::Facts;

/// What a template has for Slack.
#[derive(Debug, Clone)]
pub(super) struct Template {
    username: Text,
    icon: Text,
    attachments: Text,
    blocks: Text,
    is_broadcast: bool,
}

/// The same, filled.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    username: String,
    icon: String,
    attachments: String,
    blocks: String,
    is_broadcast: bool,
}

impl Template {
    pub(super) fn read(name: &str, value: &Value) -> Result<Self, String> {
        let text = |field: &str| Text::parse(name, &scalar(&value[field]).unwrap_or_default());
        Ok(Self {
            username: text("username")?,
            icon: text("icon")?,
            attachments: text("attachments")?,
            blocks: text("blocks")?,
            is_broadcast: value["notifyBroadcast"] == true,
        })
    }

    pub(super) fn fill(&self, variables: &GoValue, facts: &Facts) -> Result<Said, String> {
        Ok(Said {
            username: self.username.fill(variables, facts)?,
            icon: self.icon.fill(variables, facts)?,
            attachments: self.attachments.fill(variables, facts)?,
            blocks: self.blocks.fill(variables, facts)?,
            is_broadcast: self.is_broadcast,
        })
    }
}

pub(super) fn request(
    service: &Slack,
    message: &str,
    said: Option<Said>,
    channel: &str,
) -> Result<Request, String> {
    let said = said.unwrap_or_default();
    let mut form: Vec<(&str, String)> = vec![("channel", channel.to_owned()), ("text", message.to_owned())];
    for (field, text) in [("attachments", &said.attachments), ("blocks", &said.blocks)] {
        if !text.is_empty() {
            let list: Vec<Value> = serde_json::from_str(text)
                .map_err(|error| format!("slack.{field} is not a list in JSON: {error}"))?;
            form.push((field, Value::Array(list).to_string()));
        }
    }
    let or = |own: String, common: &String| if own.is_empty() { common.clone() } else { own };
    let username = or(said.username, &service.username);
    if !username.is_empty() {
        form.push(("username", username));
    }
    let icon = or(said.icon, &service.icon);
    // What is neither is left out, as in the original.
    if icon.len() > 2 && icon.starts_with(':') && icon.ends_with(':') {
        form.push(("icon_emoji", icon));
    } else if icon.starts_with("http://") || icon.starts_with("https://") {
        form.push(("icon_url", icon));
    }
    if service.disables_unfurl {
        form.push(("unfurl_links", "false".to_owned()));
        form.push(("unfurl_media", "false".to_owned()));
    }
    if said.is_broadcast {
        form.push(("reply_broadcast", "true".to_owned()));
    }
    form.sort_unstable();
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    Ok(Request {
        method: "POST".to_owned(),
        url: format!("{}chat.postMessage", service.api_url),
        headers: vec![
            ("Authorization".to_owned(), format!("Bearer {}", service.token)),
            (
                "Content-Type".to_owned(),
                "application/x-www-form-urlencoded".to_owned(),
            ),
        ],
        basic: None,
        body,
        is_slack: true,
    })
}
