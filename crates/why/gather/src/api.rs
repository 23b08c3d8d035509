//! An API that was asked about, or that a key is for; with the requests and approvals of that key, as far as the owner of the API lets them
//! be seen.

use fairway_why_chain::Facts;
use serde_json::Value;

use crate::entry::Entry;
use crate::read::{Reader, collection, text};

const PORTAL: &str = "devportal.kuadrant.io/v1alpha1";

/// Finds them.
pub(crate) async fn find(reader: &Reader, entry: &Entry, facts: &mut Facts) {
    let Some(object) = &entry.object else {
        return;
    };
    match entry.kind.as_str() {
        "APIProduct" => facts.product = Some(object.clone()),
        "APIKey" => of_key(reader, object, facts).await,
        _ => {}
    }
}

async fn of_key(reader: &Reader, key: &Value, facts: &mut Facts) {
    let own = text(key, "/metadata/namespace");
    let space = Some(text(key, "/spec/apiProductRef/namespace"))
        .filter(|it| !it.is_empty())
        .unwrap_or(own);
    let product = format!(
        "{}/{}",
        collection(PORTAL, "apiproducts", space),
        text(key, "/spec/apiProductRef/name")
    );
    let (product, requests, approvals) = tokio::join!(
        reader.get("apiproducts", &product),
        reader.list_in("apikeyrequests", PORTAL, space),
        reader.list_in("apikeyapprovals", PORTAL, space),
    );
    facts.product = product;
    facts.key_requests = requests.unwrap_or_default();
    facts.key_requests.retain(|it| stands_for(it, key));
    let requests = &facts.key_requests;
    facts.key_approvals = approvals.unwrap_or_default();
    facts.key_approvals.retain(|approval| {
        let named = text(approval, "/spec/apiKeyRequestRef/name");
        requests.iter().any(|it| text(it, "/metadata/name") == named)
    });
}

/// Whether a request is that of a key.
fn stands_for(request: &Value, key: &Value) -> bool {
    text(request, "/spec/apiKeyRef/name") == text(key, "/metadata/name")
        && text(request, "/spec/apiKeyRef/namespace") == text(key, "/metadata/namespace")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::stands_for;

    #[test]
    fn a_request_stands_for_the_key_that_it_names() {
        let key = json!({"metadata": {"name": "mine", "namespace": "shop"}});
        for (reference, expected) in [
            (json!({"name": "mine", "namespace": "shop"}), true),
            (json!({"name": "mine", "namespace": "other"}), false),
            (json!({"name": "yours", "namespace": "shop"}), false),
        ] {
            let request = json!({"spec": {"apiKeyRef": reference}});
            assert_eq!(stands_for(&request, &key), expected, "{request}");
        }
    }
}
