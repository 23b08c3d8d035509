//! Templates that are part of the program: their files, and the Template object that they are registered as.

use fairway_api::backstage::{DESCRIPTION_ANNOTATION, TAGS_ANNOTATION, TEMPLATE, TITLE_ANNOTATION};
use fairway_controller::{ClientFactory, Requests};
use fairway_portal_template::files::{File, Files};
use serde_json::{Map, Value, json};
use tracing::{debug, warn};

use crate::who::collection;
use crate::{USER, now};

/// What the source of a built-in template begins with.
pub(crate) const SCHEME: &str = "builtin:";

/// The domain of host names in the files as they are in Git.
pub const DOMAIN: &str = "apps.fairway.localhost";
const TEMPLATE_FILE: &str = "template.yaml";

/// A template that is part of the program.
#[derive(Clone, Debug)]
pub struct Builtin {
    /// By which it is found.
    pub name: String,
    /// `template.yaml` and what is beside it.
    pub files: Files,
}

impl Builtin {
    /// Takes files by path.
    pub fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let mut tree = Files::default();
        for (path, content) in files {
            if let Err(error) = tree.write(path, File::new(*content)) {
                warn!(name, %error, "a file of a built-in template is left out");
            }
        }
        Self {
            name: name.to_owned(),
            files: tree,
        }
    }

    /// The same where host names that nobody chose end with this domain.
    #[must_use]
    pub fn below(mut self, domain: &str) -> Self {
        let text = self.files.get(TEMPLATE_FILE).and_then(File::text);
        let Some(text) = text.map(|text| text.replace(DOMAIN, domain)) else {
            return self;
        };
        if let Err(error) = self.files.write(TEMPLATE_FILE, File::new(text.into_bytes())) {
            warn!(name = self.name, %error, "a built-in template keeps the domain that it has in Git");
        }
        self
    }

    /// The Template, with where its files are.
    pub fn template(&self) -> Option<Value> {
        let text = self.files.get(TEMPLATE_FILE)?.text()?;
        let mut object = fairway_text_yaml::from_str(text, fairway_text_yaml::Limits::default()).ok()?;
        let source = format!("{SCHEME}{}/", self.name);
        object["metadata"]["annotations"]["backstage.io/source-location"] = source.into();
        Some(object)
    }
}

/// A Template as an object: what metadata of Kubernetes have no field for goes to annotations.
pub fn to_object(template: &Value, namespace: &str) -> Value {
    let metadata = &template["metadata"];
    let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    let tags: Vec<&str> = metadata["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let texts = [
        (
            TITLE_ANNOTATION,
            metadata["title"].as_str().unwrap_or("").to_owned(),
        ),
        (
            DESCRIPTION_ANNOTATION,
            metadata["description"].as_str().unwrap_or("").to_owned(),
        ),
        (TAGS_ANNOTATION, tags.join(",")),
    ];
    for (key, text) in texts {
        if !text.is_empty() {
            annotations.insert(key.to_owned(), text.into());
        }
    }
    let mut object = json!({
        "apiVersion": template["apiVersion"], "kind": "Template",
        "metadata": {"name": metadata["name"], "namespace": namespace, "annotations": annotations},
        "spec": template["spec"],
    });
    if let Some(labels) = metadata["labels"].as_object() {
        object["metadata"]["labels"] = Value::Object(labels.clone());
    }
    object
}

/// A Template as Backstage writes it, from its object.
pub fn to_entity(object: &Value) -> Value {
    let mut entity = object.clone();
    let Some(metadata) = entity.get_mut("metadata").and_then(Value::as_object_mut) else {
        return entity;
    };
    let annotations = metadata
        .get("annotations")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let text = |key: &str| annotations.get(key).and_then(Value::as_str).map(str::to_owned);
    for (field, key) in [
        ("title", TITLE_ANNOTATION),
        ("description", DESCRIPTION_ANNOTATION),
    ] {
        if let (Some(text), false) = (text(key), metadata.contains_key(field)) {
            metadata.insert(field.to_owned(), text.into());
        }
    }
    if let (Some(tags), false) = (text(TAGS_ANNOTATION), metadata.contains_key("tags")) {
        let tags: Vec<Value> = tags.split(',').map(Value::from).collect();
        metadata.insert("tags".to_owned(), Value::Array(tags));
    }
    metadata.shift_remove("managedFields");
    let kept: Map<String, Value> = annotations
        .into_iter()
        .filter(|(key, _)| {
            ![TITLE_ANNOTATION, DESCRIPTION_ANNOTATION, TAGS_ANNOTATION].contains(&key.as_str())
        })
        .collect();
    metadata.insert("annotations".to_owned(), Value::Object(kept));
    entity
}

/// Registers them in the root workspace, if they are not there or are older than the program. A Template of the same name that
/// somebody else has put there is left alone.
pub async fn register(clients: &ClientFactory, builtins: &[Builtin]) {
    let requests = Requests::new(clients.clients(USER).root());
    for builtin in builtins {
        let Some(template) = builtin.template() else {
            warn!(name = builtin.name, "a built-in template cannot be read");
            continue;
        };
        let object = to_object(&template, "default");
        let path = format!("{}/{}", collection(TEMPLATE, "default"), builtin.name);
        let source = "/metadata/annotations/backstage.io~1source-location";
        match requests.get(&path).await {
            Ok(Some(known)) if known.pointer(source) != object.pointer(source) => {
                debug!(
                    name = builtin.name,
                    "another template has the name of a built-in one"
                );
            }
            Ok(_) => {
                if let Err(failure) = requests.apply(&path, &object, "fairway-scaffolder", true).await {
                    let reason = failure.sentence();
                    warn!(
                        name = builtin.name,
                        reason,
                        at = now(),
                        "a built-in template is not registered"
                    );
                }
            }
            Err(failure) => warn!(reason = failure.sentence(), "templates cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_end_with_the_domain_of_the_installation() {
        let text = b"kind: Template
metadata: {name: x, annotations: {}}
spec: {help: NAME.apps.fairway.localhost}
";
        let files = [
            ("template.yaml", &text[..]),
            ("skeleton/a", &b"apps.fairway.localhost"[..]),
        ];
        let builtin = Builtin::new("x", &files);
        for domain in ["apps.fairway.localhost", "apps.example.com"] {
            let below = builtin.clone().below(domain);
            let template = below.template().unwrap();
            assert_eq!(template["spec"]["help"], format!("NAME.{domain}"));
            let other = below.files.get("skeleton/a").and_then(File::text);
            assert_eq!(other, Some("apps.fairway.localhost"), "an answer may say so");
        }
    }
}
