//! Whether a machine may copy what it wants to start from.
//!
//! DataVolumes of templates are made in our name, so that nobody asks whether the machine's author may read the disk that
//! is copied. As upstream does, the service account of the machine is asked about.

use fairway_api::kubevirt::{CDI_GROUP, DATA_SOURCE};
use fairway_controller::{Attempt as _, Failure, Requests};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::Value;

use crate::objects::{IMAGES, items, path, read, text};

/// Why a DataVolume may not be made for a machine; nothing if it may.
pub(super) async fn refusal(
    vm: &Value,
    data_volume: &Value,
    client: Client,
    requests: &Requests,
) -> Result<Option<String>, Failure> {
    let own = text(vm, "/metadata/namespace");
    let Some(source) = source_namespace(data_volume, own, requests).await? else {
        return Ok(None);
    };
    if source == own {
        return Ok(None);
    }
    let user = format!("system:serviceaccount:{own}:{}", account(vm));
    let api: Api<SubjectAccessReview> = Api::all(client);
    // Whoever may run something beside a claim may read it anyway.
    for (group, resource, subresource) in [(CDI_GROUP, "datavolumes", Some("source")), ("", "pods", None)] {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.clone()),
                groups: Some(vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{own}"),
                    "system:authenticated".to_owned(),
                ]),
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(source.clone()),
                    verb: Some("create".to_owned()),
                    group: Some(group.to_owned()),
                    resource: Some(resource.to_owned()),
                    subresource: subresource.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let answer = api.create(&PostParams::default(), &review).await;
        let answer = answer.attempting(format!("ask what {user} may do in namespace {source}"))?;
        if answer.status.is_some_and(|it| it.allowed) {
            return Ok(None);
        }
    }
    Ok(Some(format!(
        "User {user} has insufficient permissions in clone source namespace {source}"
    )))
}

/// The service account of a machine.
fn account(vm: &Value) -> &str {
    let mut volumes = items(vm, "/spec/template/spec/volumes");
    let named = volumes.find_map(|it| it.pointer("/serviceAccount/serviceAccountName"));
    named
        .and_then(Value::as_str)
        .filter(|it| !it.is_empty())
        .unwrap_or("default")
}

/// The namespace of the claim or snapshot that a DataVolume is a copy of. What is no copy needs no leave.
async fn source_namespace(
    data_volume: &Value,
    own: &str,
    requests: &Requests,
) -> Result<Option<String>, Failure> {
    let spec = &data_volume["spec"];
    let copied = |source: &Value, near: &str| {
        let parts = ["pvc", "snapshot"].into_iter();
        let part = parts.map(|part| &source[part]).find(|it| it.is_object())?;
        let there = part["namespace"].as_str().filter(|it| !it.is_empty());
        Some(there.unwrap_or(near).to_owned())
    };
    let reference = &spec["sourceRef"];
    if !reference.is_object() || reference["kind"] != "DataSource" {
        return Ok(copied(&spec["source"], own));
    }
    let there = text(reference, "/namespace");
    let there = if there.is_empty() { own } else { there };
    if there == IMAGES {
        return Ok(None);
    }
    let found = read(requests, &path(&DATA_SOURCE, there, text(reference, "/name"))).await?;
    // One that does not exist yet is waited for; what it will lead to is anybody's guess, so that its own place counts.
    Ok(match found {
        Some(found) => copied(&found["spec"]["source"], there),
        None => Some(there.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use fairway_controller::fake::Script;
    use serde_json::json;

    use super::*;

    const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews?";

    fn vm() -> Value {
        json!({"metadata": {"name": "web", "namespace": "vms"}, "spec": {"template": {"spec": {"volumes": [
            {"name": "token", "serviceAccount": {"serviceAccountName": "robot"}},
        ]}}}})
    }

    async fn asked(spec: Value, script: Script) -> (Option<String>, Vec<Value>) {
        let (client, requests) = (script.client(), Requests::new(script.client()));
        let data_volume = json!({"spec": spec});
        let refusal = refusal(&vm(), &data_volume, client, &requests).await.unwrap();
        let calls = script.finish().into_iter().map(|it| it.body);
        (refusal, calls.collect())
    }

    fn answer(allowed: bool) -> Value {
        json!({"metadata": {}, "spec": {}, "status": {"allowed": allowed}})
    }

    #[tokio::test]
    async fn what_is_no_copy_of_anothers_disk_needs_no_leave() {
        for spec in [
            json!({"source": {"blank": {}}}),
            json!({"source": {"http": {"url": "http://x"}}}),
            json!({"source": {"pvc": {"name": "a", "namespace": "vms"}}}),
            json!({"source": {"pvc": {"name": "a"}}}),
            json!({"sourceRef": {"kind": "DataSource", "name": "tiny", "namespace": IMAGES}}),
        ] {
            let (refusal, calls) = asked(spec.clone(), Script::new()).await;
            assert_eq!((refusal, calls.len()), (None, 0), "{spec}");
        }
    }

    #[tokio::test]
    async fn the_account_of_the_machine_is_asked_about() {
        let spec = json!({"source": {"pvc": {"name": "a", "namespace": "golden"}}});
        let script = Script::new().expect("POST", REVIEWS, 201, answer(true));
        let (refusal, calls) = asked(spec.clone(), script).await;
        assert_eq!(refusal, None);
        let asked_about = &calls[0]["spec"];
        assert_eq!(asked_about["user"], "system:serviceaccount:vms:robot");
        assert_eq!(asked_about["resourceAttributes"]["namespace"], "golden");
        assert_eq!(asked_about["resourceAttributes"]["subresource"], "source");
        let script = Script::new().expect("POST", REVIEWS, 201, answer(false)).expect(
            "POST",
            REVIEWS,
            201,
            answer(false),
        );
        let (refusal, _) = asked(spec, script).await;
        let expected = "User system:serviceaccount:vms:robot has insufficient permissions in clone source namespace golden";
        assert_eq!(refusal.as_deref(), Some(expected));
    }

    #[tokio::test]
    async fn a_source_by_name_is_followed() {
        let place = "/apis/cdi.kubevirt.io/v1beta1/namespaces/golden/datasources/fedora";
        let source = json!({"spec": {"source": {"pvc": {"name": "f", "namespace": "vms"}}}});
        let spec = json!({"sourceRef": {"kind": "DataSource", "name": "fedora", "namespace": "golden"}});
        let script = Script::new().expect("GET", place, 200, source);
        assert_eq!(asked(spec, script).await.0, None);
    }
}
