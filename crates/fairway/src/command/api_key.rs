//! `fairway api-key`: a key to a published API, from the wish to the key itself.
//!
//! It writes what Kuadrant's developer portal has kinds for (APIKey, APIKeyApproval) and reads the Secret that comes of it. The key is
//! made in the cluster and printed here; nothing of it is in Git.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::gateway::{API_KEY, API_KEY_APPROVAL, API_KEY_REQUEST};
use fairway_gateway_policy::portal;
use serde_json::{Value, json};

use super::gitops::{Session, collection, now, run as run_command, told};
use crate::cli::api_key::{ApiKey, ApiKeyCommand, Named, Request};

/// How often it is looked whether something has come.
const PAUSE: Duration = Duration::from_millis(100);

/// Does what was asked for.
pub(crate) fn run(options: &ApiKey) -> anyhow::Result<ExitCode> {
    run_command(async {
        match &options.command {
            ApiKeyCommand::Request(options) => request(options).await?,
            ApiKeyCommand::Approve(options) => {
                let session = Session::open(&options.place).await?;
                let key = found(&session, options).await?;
                approve(&session, &key, Instant::now() + Duration::from_secs(30)).await?;
                println!("APIKey {}/{} is approved.", options.namespace, options.name);
            }
            ApiKeyCommand::Show(options) => {
                let session = Session::open(&options.place).await?;
                let key = found(&session, options).await?;
                match value(&session, &key).await? {
                    Some(value) => println!("{value}"),
                    None => bail!("{}", waiting(&key)),
                }
            }
            ApiKeyCommand::Delete(options) => {
                let session = Session::open(&options.place).await?;
                found(&session, options).await?;
                let place = path(&options.namespace, &options.name);
                session.requests.delete(&place).await.map_err(told)?;
                println!("APIKey {}/{} is deleted.", options.namespace, options.name);
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn path(namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(API_KEY, Some(namespace)))
}

async fn found(session: &Session, options: &Named) -> anyhow::Result<Value> {
    let place = path(&options.namespace, &options.name);
    let found = session.requests.get(&place).await.map_err(told)?;
    found.with_context(|| {
        format!(
            "there is no APIKey {}/{}; fairway api-key request PRODUCT asks for one",
            options.namespace, options.name
        )
    })
}

async fn request(options: &Request) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let deadline = Instant::now() + options.timeout;
    let (product_namespace, product) = match options.product.split_once('/') {
        Some(pair) => pair,
        None => (options.namespace.as_str(), options.product.as_str()),
    };
    let name = options.name.as_deref().unwrap_or(product);
    let wanted = json!({
        "apiVersion": API_KEY.api_version(), "kind": API_KEY.kind,
        "metadata": {"name": name, "namespace": options.namespace},
        "spec": {
            "apiProductRef": {"name": product, "namespace": product_namespace},
            "planTier": options.plan, "useCase": options.use_case,
            "requestedBy": {"userId": who(&session).await?},
        },
    });
    let all = collection(API_KEY, Some(&options.namespace));
    let is_new = session.requests.create(&all, &wanted).await.map_err(told)?;
    if !is_new {
        let known = session.requests.get(&path(&options.namespace, name)).await;
        let known = known.map_err(told)?.context("the APIKey is gone again")?;
        if let Some(why) = differs(&known, &wanted) {
            bail!(
                "there is an APIKey {0}/{name} already, and {why}; --name asks for another, fairway api-key delete {name} -n {0} gives it back",
                options.namespace
            );
        }
    }
    let mut is_answered = !options.approve;
    loop {
        let key = session.requests.get(&path(&options.namespace, name)).await;
        let key = key.map_err(told)?.context("the APIKey is gone again")?;
        if !is_answered {
            approve(&session, &key, deadline).await?;
            is_answered = true;
        }
        if let Some(value) = value(&session, &key).await? {
            // Alone on the standard output, so that scripts can take it.
            println!("{value}");
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{}", waiting(&key));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What a key that is there was asked for, if that is not what is wanted now. The same wish is the same key: an API that was taken back and
/// made again finds the keys that were asked for before.
fn differs(known: &Value, wanted: &Value) -> Option<String> {
    let of = |key: &Value| {
        let (namespace, name) = portal::product_of(key);
        let plan = key["spec"]["planTier"].as_str().unwrap_or_default().to_owned();
        (format!("{namespace}/{name}"), plan)
    };
    let (product, plan) = of(known);
    ((product.clone(), plan.clone()) != of(wanted))
        .then(|| format!("it is for {product} with the plan {plan}"))
}

/// Answers the request that stands for a key, once it is there.
async fn approve(session: &Session, key: &Value, deadline: Instant) -> anyhow::Result<()> {
    let (namespace, name) = portal::names(key);
    let (product_namespace, product) = portal::product_of(key);
    let request = portal::request_name(namespace, name);
    let place = format!(
        "{}/{request}",
        collection(API_KEY_REQUEST, Some(&product_namespace))
    );
    while session.requests.get(&place).await.map_err(told)?.is_none() {
        if Instant::now() > deadline {
            bail!(
                "the APIKey {namespace}/{name} leads to no request: is there an APIProduct {product_namespace}/{product}? \
                 kubectl describe apikey {name} -n {namespace} tells more"
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
    let answer = json!({
        "apiVersion": API_KEY_APPROVAL.api_version(), "kind": API_KEY_APPROVAL.kind,
        "metadata": {"name": request, "namespace": product_namespace},
        "spec": {
            "apiKeyRequestRef": {"name": request}, "approved": true, "reviewedBy": who(session).await?,
            "reviewedAt": now().to_string(), "reason": "Approved",
        },
    });
    let all = collection(API_KEY_APPROVAL, Some(&product_namespace));
    session.requests.create(&all, &answer).await.map_err(told)?;
    Ok(())
}

/// The key itself, if it was approved and made.
async fn value(session: &Session, key: &Value) -> anyhow::Result<Option<String>> {
    if condition(key).is_none_or(|it| it["type"] != "Approved") {
        return Ok(None);
    }
    let (namespace, _) = portal::names(key);
    let place = format!(
        "/api/v1/namespaces/{namespace}/secrets/{}",
        portal::secret_name(key)
    );
    let secret = session.requests.get(&place).await.map_err(told)?;
    let field = key["spec"]["secretRef"]["key"]
        .as_str()
        .unwrap_or(portal::API_KEY);
    let Some(encoded) = secret.as_ref().and_then(|it| it["data"][field].as_str()) else {
        return Ok(None);
    };
    let bytes = STANDARD
        .decode(encoded)
        .context("the Secret of the key cannot be read")?;
    Ok(Some(String::from_utf8(bytes).context("the key is not text")?))
}

fn condition(key: &Value) -> Option<&Value> {
    let conditions = key["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["status"] == "True")
}

/// Why there is no key, and what to do about it.
fn waiting(key: &Value) -> String {
    let (namespace, name) = portal::names(key);
    let (state, message) = condition(key).map_or(("Pending", ""), |it| {
        (
            it["type"].as_str().unwrap_or("Pending"),
            it["message"].as_str().unwrap_or_default(),
        )
    });
    let next = match state {
        "Pending" | "Approved" => {
            format!(
                "; when the API's owner has run fairway api-key approve {name} -n {namespace}, show prints it"
            )
        }
        _ => String::new(),
    };
    let message = match message {
        "" => String::new(),
        message => format!(" ({message})"),
    };
    format!("the APIKey {namespace}/{name} is {state}{message}{next}")
}

/// Who the server takes us for.
async fn who(session: &Session) -> anyhow::Result<String> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = session.requests.post(path, &review).await.map_err(told)?;
    let name = answer["status"]["userInfo"]["username"].as_str();
    Ok(name.context("the server does not say who we are")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_wish_is_the_same_key() {
        let key = |product: &str, plan: &str| {
            json!({
                "metadata": {"name": "web", "namespace": "user-vms"},
                "spec": {"apiProductRef": {"name": product, "namespace": "user-vms"}, "planTier": plan, "useCase": product},
            })
        };
        for (known, wanted, expected) in [
            (key("web", "free"), key("web", "free"), None),
            (
                key("web", "gold"),
                key("web", "free"),
                Some("it is for user-vms/web with the plan gold"),
            ),
            (
                key("shop", "free"),
                key("web", "free"),
                Some("it is for user-vms/shop with the plan free"),
            ),
        ] {
            assert_eq!(differs(&known, &wanted).as_deref(), expected);
        }
    }

    #[test]
    fn what_is_waited_for_is_told() {
        let key = |r#type: &str, message: &str| {
            json!({
                "metadata": {"name": "web", "namespace": "user-vms"},
                "status": {"conditions": [{"type": r#type, "status": "True", "message": message}]},
            })
        };
        for (key, expected) in [
            (
                key("Pending", ""),
                "the APIKey user-vms/web is Pending; when the API's owner has run",
            ),
            (
                key("Denied", "no reason given"),
                "the APIKey user-vms/web is Denied (no reason given)",
            ),
            (
                json!({"metadata": {"name": "web", "namespace": "user-vms"}}),
                "the APIKey user-vms/web is Pending;",
            ),
        ] {
            let said = waiting(&key);
            assert!(said.starts_with(expected), "{said}");
        }
    }
}
