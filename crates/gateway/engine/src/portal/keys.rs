//! APIKeys: from a wish to a Secret that lets somebody in, and back. In this order, so that a pass that ends in the middle
//! leaves nobody with more than he should have: approvals are bound to requests, what is not wanted goes, what is wanted
//! comes, and at the end it is told.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairway_api::Kind;
use fairway_api::gateway::{API_KEY, API_KEY_APPROVAL, API_KEY_REQUEST};
use fairway_api::identity::SEPARATOR;
use fairway_controller::commit::difference;
use fairway_controller::{Failure, ObjectKey, Outcome, Requests};
use fairway_gateway_policy::portal::{
    Around, Decided, ENFORCEMENT, Own, approval_condition, consumers_secret, decide, enforcement_name, names,
    owner_reference, product_of, request_name, secret_name,
};
use fairway_gateway_routes::observed::Kind as Observable;
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value, json};
use tracing::warn;

use super::products::target;
use super::{Portal, SYSTEM_NAMESPACE, status, tell};
use crate::kinds::{collection, path, served};
use crate::statuses::{MANAGER, now};

/// The longest time until a key is looked at again: an alarm a year away needs no precision.
const DAY: i64 = 86_400;

impl Portal {
    pub(super) async fn key(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let requests = self.requests(&key.workspace);
        let object = self.seen.keys.get(key);
        let present = object
            .as_deref()
            .filter(|it| it["metadata"]["deletionTimestamp"].is_null());
        let Some(object) = present else {
            return self.gone(key, &requests).await;
        };
        let (namespace, name) = product_of(object);
        let product_key = ObjectKey::new(&key.workspace, &namespace, &name);
        let product = self.seen.products.get(&product_key);
        let route = (product.as_deref()).and_then(|it| self.seen.routes.get(&target(&product_key, it)));
        let hostname = route
            .as_deref()
            .and_then(|it| it["spec"]["hostnames"][0].as_str());
        let secret_key = ObjectKey::new(&key.workspace, &key.namespace, &secret_name(object));
        let secret = requests.get(&path(&secrets(), &secret_key)).await?;
        let standing = self.standing(key);
        let standing: Vec<&Value> = standing.iter().map(|(_, request)| &**request).collect();
        let approvals = self.seen.approvals.of_namespace(&key.workspace, &namespace);
        let approvals: Vec<&Value> = approvals.iter().map(|(_, approval)| &**approval).collect();
        let timestamp = now();
        let decided = decide(
            object,
            &Around {
                product: product.as_deref(),
                secret: secret.as_ref(),
                requests: &standing,
                approvals: &approvals,
                hostname,
                requester_is_out: requester(object).is_some_and(|user| self.realms.is_out(user)),
                system_namespace: SYSTEM_NAMESPACE,
                now: Timestamp::now().as_second(),
                timestamp: &timestamp,
            },
        );
        let pass = Pass {
            requests: &requests,
            key,
            object,
            secret: secret.as_ref(),
            standing: &standing,
            approvals: &approvals,
        };
        pass.act(&decided).await?;
        let left = decided.again_in.map(|left| left.clamp(1, DAY).unsigned_abs());
        Ok(left.map_or(Outcome::Done, |left| Outcome::Again(Duration::from_secs(left))))
    }

    /// The requests that say that they stand for a key.
    fn standing(&self, key: &ObjectKey) -> Vec<(ObjectKey, std::sync::Arc<Value>)> {
        let all = self.seen.requests.of_workspace(&key.workspace).into_iter();
        all.filter(|(_, request)| {
            let of = &request["spec"]["apiKeyRef"];
            of["namespace"] == key.namespace.as_str() && of["name"] == key.name.as_str()
        })
        .collect()
    }

    /// A key that is gone lets nobody in. Its consumer's Secret goes with it, and approvals with the request.
    async fn gone(&self, key: &ObjectKey, requests: &Requests) -> Result<Outcome, Failure> {
        enforce(requests, key, None).await?;
        for (place, _) in self.standing(key) {
            requests.delete(&path(&API_KEY_REQUEST, &place)).await?;
        }
        Ok(Outcome::Done)
    }

    pub(super) async fn approval(&self, key: &ObjectKey) -> Result<Outcome, Failure> {
        let Some(approval) = self.seen.approvals.get(key) else {
            return Ok(Outcome::Done);
        };
        let named = approval["spec"]["apiKeyRequestRef"]["name"]
            .as_str()
            .unwrap_or("");
        let request = ObjectKey::new(&key.workspace, &key.namespace, named);
        let request = self.seen.requests.get(&request);
        let condition = approval_condition(&approval, request.as_deref());
        let generation = approval["metadata"]["generation"].clone();
        let rest = Map::from_iter([("observedGeneration".to_owned(), generation)]);
        let told = status(&approval, &[condition], rest);
        let requests = self.requests(&key.workspace);
        tell(&requests, &path(&API_KEY_APPROVAL, key), &approval, told).await?;
        Ok(Outcome::Done)
    }
}

/// One look at a key.
struct Pass<'a> {
    requests: &'a Requests,
    key: &'a ObjectKey,
    object: &'a Value,
    /// The consumer's Secret.
    secret: Option<&'a Value>,
    /// The requests that stand for the key.
    standing: &'a [&'a Value],
    approvals: &'a [&'a Value],
}

impl Pass<'_> {
    async fn act(&self, decided: &Decided) -> Result<(), Failure> {
        self.adopt(&decided.adopted).await?;
        if decided.secret.is_none() {
            enforce(self.requests, self.key, None).await?;
        }
        self.own_secret(decided.own).await?;
        for (namespace, name) in &decided.surplus {
            let place = ObjectKey::new(&self.key.workspace, namespace, name);
            self.requests.delete(&path(&API_KEY_REQUEST, &place)).await?;
        }
        if let Some(request) = &decided.request {
            self.make(&API_KEY_REQUEST, request).await?;
        }
        if let Some(approval) = &decided.approval {
            self.make(&API_KEY_APPROVAL, approval).await?;
        }
        if decided.secret.is_some() {
            enforce(self.requests, self.key, decided.secret.as_ref()).await?;
        }
        let told = status(
            self.object,
            std::slice::from_ref(&decided.condition),
            decided.status.clone(),
        );
        self.tell_request(&told).await?;
        tell(self.requests, &path(&API_KEY, self.key), self.object, told).await
    }

    async fn make(&self, kind: &Kind, object: &Value) -> Result<(), Failure> {
        let all = collection(kind, names(object).0);
        let all = format!("{all}?fieldManager={MANAGER}");
        self.requests.create(&all, object).await.map(drop)
    }

    /// Binds approvals to the request that they are for, as it is now.
    async fn adopt(&self, adopted: &[String]) -> Result<(), Failure> {
        let place = request_name(&self.key.namespace, &self.key.name);
        let Some(request) = self.standing.iter().find(|it| names(it).1 == place) else {
            return Ok(());
        };
        let namespace = names(request).0;
        for approval in self.approvals {
            let (of, name) = names(approval);
            if of != namespace || !adopted.iter().any(|it| it == name) {
                continue;
            }
            let owners = approval["metadata"]["ownerReferences"].as_array();
            let mut owners = owners.cloned().unwrap_or_default();
            owners.push(owner_reference(request));
            let patch = json!({"metadata": {
                "uid": approval["metadata"]["uid"], "resourceVersion": approval["metadata"]["resourceVersion"],
                "ownerReferences": owners,
            }});
            let place = ObjectKey::new(&self.key.workspace, of, name);
            let place = format!("{}?fieldManager={MANAGER}", path(&API_KEY_APPROVAL, &place));
            self.requests.merge(&place, &patch).await?;
        }
        Ok(())
    }

    async fn own_secret(&self, own: Own) -> Result<(), Failure> {
        match (own, self.secret) {
            (Own::Make, _) => {
                let Some(value) = random_key() else {
                    warn!(key = %self.key, "there is no randomness for a key; it is tried again");
                    return Ok(());
                };
                self.make(&secrets(), &consumers_secret(self.object, &value))
                    .await
            }
            (Own::Remove, Some(secret)) => {
                let place = ObjectKey::new(&self.key.workspace, &self.key.namespace, names(secret).1);
                self.requests.delete_read(&path(&secrets(), &place), secret).await
            }
            _ => Ok(()),
        }
    }

    /// The owner of the API sees the same conditions as the consumer.
    async fn tell_request(&self, told: &Value) -> Result<(), Failure> {
        let wanted = request_name(&self.key.namespace, &self.key.name);
        let Some(request) = self.standing.iter().find(|it| names(it).1 == wanted) else {
            return Ok(());
        };
        let place = ObjectKey::new(&self.key.workspace, names(request).0, &wanted);
        let told = json!({"conditions": told["conditions"]});
        let is_said = request["status"]["conditions"] == told["conditions"];
        if is_said || !request["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        tell(self.requests, &path(&API_KEY_REQUEST, &place), request, told).await
    }
}

/// Who asked for a key, if it may be a user of a realm.
pub(super) fn requester(key: &Value) -> Option<&str> {
    let user = key["spec"]["requestedBy"]["userId"].as_str()?;
    user.contains(SEPARATOR).then_some(user)
}

fn secrets() -> Kind {
    served(Observable::Secret)
}

/// Brings the Secret that lets a key in to where it should be; none: it goes.
async fn enforce(requests: &Requests, key: &ObjectKey, wanted: Option<&Value>) -> Result<(), Failure> {
    let name = enforcement_name(&key.namespace, &key.name);
    let place = path(
        &secrets(),
        &ObjectKey::new(&key.workspace, SYSTEM_NAMESPACE, &name),
    );
    let there = requests.get(&place).await?;
    match (there, wanted) {
        (None, None) => Ok(()),
        (Some(there), None) => match there["metadata"]["labels"][ENFORCEMENT] == "true" {
            true => requests.delete_read(&place, &there).await,
            false => Ok(()),
        },
        (None, Some(wanted)) => {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE},
            });
            let namespaces = collection(&served(Observable::Namespace), "");
            requests.create(&namespaces, &namespace).await?;
            let all = collection(&secrets(), SYSTEM_NAMESPACE);
            requests
                .create(&format!("{all}?fieldManager={MANAGER}"), wanted)
                .await
                .map(drop)
        }
        (Some(there), Some(wanted)) => match correction(&there, wanted) {
            Some(patch) => {
                let place = format!("{place}?fieldManager={MANAGER}");
                requests.merge(&place, &patch).await.map(drop)
            }
            None => Ok(()),
        },
    }
}

/// The patch from a Secret to how it should be, if it is not.
fn correction(there: &Value, wanted: &Value) -> Option<Value> {
    let mut patch = json!({"metadata": {"resourceVersion": there["metadata"]["resourceVersion"]}});
    let mut differs = false;
    for field in ["labels", "annotations"] {
        // The API adds annotations of its own.
        let after = &wanted["metadata"][field];
        let change = match field {
            "labels" => difference(&there["metadata"][field], after),
            _ => missing(&there["metadata"][field], after),
        };
        if let Some(change) = change {
            patch["metadata"][field] = change;
            differs = true;
        }
    }
    if let Some(change) = difference(&there["data"], &wanted["data"]) {
        patch["data"] = change;
        differs = true;
    }
    differs.then_some(patch)
}

/// The fields that are not yet as they should be; others stay.
fn missing(there: &Value, wanted: &Value) -> Option<Value> {
    let wanted = wanted.as_object()?;
    let missing: Map<String, Value> = wanted
        .iter()
        .filter(|(field, value)| there[field.as_str()] != **value)
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    (!missing.is_empty()).then_some(Value::Object(missing))
}

/// A key that nobody can guess: 256 bits.
fn random_key() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_corrected() {
        let wanted = json!({
            "metadata": {"labels": {"a": "1"}, "annotations": {"plan": "gold"}}, "data": {"api_key": "eA=="},
        });
        let mut there = wanted.clone();
        there["metadata"]["annotations"]["kcp.io/cluster"] = json!("team");
        assert_eq!(correction(&there, &wanted), None);
        there["metadata"]["annotations"]["plan"] = json!("free");
        there["metadata"]["labels"]["b"] = json!("2");
        there["data"]["api_key"] = json!("eQ==");
        let patch = correction(&there, &wanted).unwrap();
        assert_eq!(patch["metadata"]["annotations"], json!({"plan": "gold"}));
        assert_eq!(patch["metadata"]["labels"], json!({"b": null}));
        assert_eq!(patch["data"], json!({"api_key": "eA=="}));
    }

    #[test]
    fn keys_differ() {
        let (one, other) = (random_key().unwrap(), random_key().unwrap());
        assert_eq!(one.len(), 43);
        assert_ne!(one, other);
    }
}
