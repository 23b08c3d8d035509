//! Starting a run: secrets in a Secret, the rest in a Voyage, both written by who starts it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::fairway::VOYAGE;
use fairway_controller::Requests;
use fairway_portal_template::answers::{self, Answers};
use fairway_portal_template::schema::Complaint;
use fairway_portal_template::template::Template;
use serde_json::{Map, Value, json};

use crate::who::collection;

/// The type of Secrets that hold answers.
pub const SECRET_TYPE: &str = "fairway.dev/voyage-secrets";

/// What somebody wants to start.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    /// `template:default/virtual-machine`.
    pub template: String,
    /// In which namespace the Voyage is.
    pub namespace: String,
    /// Answers, without those that are secret.
    pub values: Map<String, Value>,
    /// Answers that are secret, and what else only inputs may see.
    pub secrets: BTreeMap<String, String>,
    /// What was made stays if the run fails.
    pub keep: bool,
    /// What makes the name unlike others.
    pub suffix: String,
}

/// Judges answers and keeps apart what is secret.
pub fn judge(
    template: &Template,
    given: &Map<String, Value>,
    secrets: &BTreeMap<String, String>,
) -> Result<Answers, Vec<Complaint>> {
    let mut all = given.clone();
    for (name, secret) in secrets {
        all.entry(name.clone()).or_insert_with(|| secret.as_str().into());
    }
    let mut answers = answers::judge(template, &all)?;
    for name in secrets.keys() {
        answers.values.shift_remove(name);
    }
    let merged = secrets
        .iter()
        .filter(|(name, _)| !answers.left_out.contains(*name))
        .map(|(name, secret)| (name.clone(), secret.clone()))
        .collect::<Vec<_>>();
    answers.secrets.extend(merged);
    Ok(answers)
}

/// Writes the objects; the Voyage as it was made.
pub async fn submit(requests: &Requests, submission: &Submission) -> Result<Value, String> {
    let short = submission.template.rsplit('/').next().unwrap_or("voyage");
    let short: String = short
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .take(40)
        .collect();
    let name = format!("{}-{}", short.to_lowercase().trim_matches('-'), submission.suffix);
    let mut spec = json!({"template": submission.template, "values": submission.values});
    if submission.keep {
        spec["keepOnFailure"] = true.into();
    }
    let namespace = &submission.namespace;
    if !submission.secrets.is_empty() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
            "metadata": {"name": name, "namespace": namespace}, "stringData": submission.secrets,
        });
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        requests
            .post(&path, &secret)
            .await
            .map_err(|failure| failure.sentence())?;
        spec["secretRef"] = json!({"name": name});
    }
    let object = json!({
        "apiVersion": VOYAGE.api_version(), "kind": VOYAGE.kind,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    });
    let made = requests.post(&collection(VOYAGE, namespace), &object).await;
    let made = match made {
        Ok(made) => made,
        Err(failure) => {
            // Nobody would use the Secret any more. Whoever could make it and may not delete it is told.
            let mut why = failure.sentence();
            if !submission.secrets.is_empty() {
                let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
                if let Err(left) = requests.delete(&path).await {
                    why = format!("{why}; Secret {name} is left behind: {}", left.sentence());
                }
            }
            return Err(why);
        }
    };
    if !submission.secrets.is_empty() {
        // So that it goes with the Voyage. If that fails, the run has begun all the same, and the Secret stays, sealed.
        let owner = json!({"metadata": {"ownerReferences": [{
            "apiVersion": VOYAGE.api_version(), "kind": VOYAGE.kind, "name": name, "uid": made["metadata"]["uid"],
        }]}});
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        if let Err(failure) = requests.merge(&path, &owner).await {
            tracing::warn!(
                secret = name,
                reason = failure.sentence(),
                "the secret of a voyage will not go with it"
            );
        }
    }
    Ok(made)
}

/// The texts of a Secret.
pub(crate) fn decoded(secret: &Value) -> BTreeMap<String, String> {
    let data = secret["data"].as_object();
    let texts = data.into_iter().flatten().filter_map(|(key, value)| {
        let bytes = STANDARD.decode(value.as_str()?).ok()?;
        Some((key.clone(), String::from_utf8(bytes).ok()?))
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_a_page_that_is_not_asked_is_not_kept() {
        let template = Template::read(&json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": [{"action": "debug:log"}], "parameters": [
                {"properties": {"own": {"type": "boolean"}, "token": {"type": "string", "ui:field": "Secret"}}},
                {"when": "${{ parameters.own }}", "required": ["key"], "properties": {"key": {"type": "string", "ui:field": "Secret"}}},
            ]},
        }))
        .unwrap();
        let secrets: BTreeMap<String, String> = ["token", "key", "beside"]
            .map(|name| (name.to_owned(), format!("s3cret-{name}")))
            .into();
        for (own, expected) in [
            (true, vec!["beside", "key", "token"]),
            (false, vec!["beside", "token"]),
        ] {
            let given = Map::from_iter([("own".to_owned(), own.into())]);
            let judged = judge(&template, &given, &secrets).unwrap();
            let kept: Vec<&str> = judged.secrets.keys().map(String::as_str).collect();
            assert_eq!(kept, expected, "{own}");
            assert_eq!(Value::Object(judged.values), json!({"own": own}));
        }
        let given = Map::from_iter([("own".to_owned(), true.into())]);
        assert!(
            judge(&template, &given, &BTreeMap::new()).is_err(),
            "a shown page is asked"
        );
    }
}
