//! An API that is offered: what its product says of the route, and the policies that decide who is let in.

use serde_json::Value;

use crate::Facts;
use crate::gateway::{self, fault, is_stale};
use crate::key;
use crate::link::{Evidence, Link, State};
use crate::object::{condition, field, items, title, told};

/// Why there is no product to judge.
fn nobody(facts: &Facts, link: &'static str) -> Link {
    let wanted = facts
        .object
        .as_ref()
        .map_or("", |it| field(it, "/spec/apiProductRef/name"));
    match facts.unreadable.get("apiproducts") {
        Some(why) => Link::new(link, State::Unknown, "APIProducts cannot be read").shown_by([Evidence::new(
            "answer to reading APIProducts",
            "",
            why,
        )]),
        None if facts.asked.kind == "APIProduct" || facts.object.is_none() => {
            Link::new(link, State::Waiting, format!("there is no {} yet", facts.asked))
        }
        None => Link::new(
            link,
            State::Broken,
            format!("the key is for the APIProduct {wanted}, which does not exist"),
        )
        .advised("correct spec.apiProductRef: `kubectl get apiproducts -A` shows what there is"),
    }
}

/// Whether the API is offered.
pub(crate) fn product(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("product", state, finding);
    if let Some(said) = key::failure(facts, &["APIProductNotFound", "APIProductDeleting"]) {
        let advice = "correct spec.apiProductRef: `kubectl get apiproducts -A` shows what there is";
        return key::broken(facts, "product", said, advice);
    }
    let Some(product) = &facts.product else {
        return nobody(facts, "product");
    };
    let titled = title(product);
    if !product["metadata"]["deletionTimestamp"].is_null() {
        return link(State::Off, format!("{titled} is being deleted"))
            .since(field(product, "/metadata/deletionTimestamp"));
    }
    let conditions = items(product, "/status/conditions");
    if let Some(bad) = fault(product, conditions, &["Ready", "OpenAPISpecReady"]) {
        return link(State::Broken, format!("{titled}: {}", field(bad, "/message")))
            .shown_by([told(bad, &titled)])
            .advised(match field(bad, "/type") {
                "Ready" => "correct spec.targetRef, or put right what keeps the route from its Gateway: `fairway why httproute/NAME` says it",
                _ => "correct spec.documentation.openAPISpecURL: it has to lead to a document that can be read from here",
            });
    }
    match condition(product, "Ready").filter(|it| !is_stale(product, it)) {
        Some(ready) => link(State::Good, format!("{titled}: {}", field(ready, "/message")))
            .since(field(ready, "/lastTransitionTime")),
        None => link(State::Waiting, format!("{titled} has not been looked at yet")),
    }
}

/// Whether the policies of the API let keys in and keep others out.
pub(crate) fn policy(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("policy", state, finding);
    let faults = [
        "AuthSchemeNotFound",
        "APIKeyAuthSchemeNotFound",
        "SelectorNotSupported",
    ];
    if let Some(said) = key::failure(facts, &faults) {
        let advice = "an AuthPolicy on the product's route, or on its Gateway, has to ask for API keys and select them by matchLabels";
        return key::broken(facts, "policy", said, advice);
    }
    let Some(product) = &facts.product else {
        return match nobody(facts, "policy") {
            it if it.state == State::Broken => link(State::Waiting, "there is no API to guard".to_owned()),
            other => other,
        };
    };
    let said = |kind: &str| condition(product, kind).filter(|it| !is_stale(product, it));
    // The policies themselves say more than the product does of them.
    if let Some(found) = gateway::policies(facts) {
        return Link {
            name: "policy",
            ..found
        };
    }
    let auth = said("AuthPolicyDiscovered");
    if let Some(bad) = auth.filter(|it| it["status"] == "False" && it["reason"] != "NotFound") {
        return link(State::Broken, field(bad, "/message").to_owned())
            .shown_by([told(bad, &title(product))])
            .advised("`kubectl get authpolicies -A` shows the policy, and `fairway why authpolicy/NAME` what is wrong with it");
    }
    let found = |it: Option<&Value>| it.is_some_and(|it| it["status"] == "True");
    let plan = said("PlanPolicyDiscovered");
    let told: Vec<&str> = [auth, plan]
        .into_iter()
        .flatten()
        .filter(|it| it["status"] == "True")
        .map(|it| field(it, "/message"))
        .collect();
    match (auth, found(auth)) {
        (Some(auth), true) => link(State::Good, told.join("; ")).since(field(auth, "/lastTransitionTime")),
        (Some(auth), false) => link(
            State::Unused,
            "no AuthPolicy guards it: whoever knows the address is let in".to_owned(),
        )
        .since(field(auth, "/lastTransitionTime")),
        (None, _) => link(State::Waiting, "nobody has looked for policies yet".to_owned()),
    }
}
