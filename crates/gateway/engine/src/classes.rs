//! The GatewayClasses that every workspace has. Those of the root are made at the start, those of other workspaces when a
//! Gateway names one, so that workspaces without Gateways hold nothing. Pure.

use std::collections::{BTreeMap, BTreeSet};

use fairway_api::gateway::GATEWAY_CLASS;
use fairway_controller::WorkspaceId;
use fairway_gateway_routes::observed::{Name, Observed};
use fairway_gateway_routes::settings::CONTROLLER;
use serde_json::{Value, json};

/// Names, and what people are told about them.
const CLASSES: [(&str, &str); 2] = [
    ("fairway", "Served by Fairway's own data plane."),
    ("istio", "Served by Fairway, for manifests that name this class."),
];

/// Controllers' names that are served here. Classes with a name of Istio's or OpenShift's come with manifests that were written
/// for those, and nobody else in an installation of Fairway serves them.
pub(crate) const CONTROLLERS: [&str; 3] = [
    CONTROLLER,
    "istio.io/gateway-controller",
    "openshift.io/gateway-controller/v1",
];

/// The classes by name, with the controller of each.
pub(crate) fn known() -> BTreeMap<String, String> {
    let all = CLASSES.iter();
    all.map(|(name, _)| ((*name).to_owned(), CONTROLLER.to_owned()))
        .collect()
}

/// Classes that are to be made, by workspace.
pub(crate) fn missing(observed: &Observed) -> BTreeSet<(WorkspaceId, &'static str)> {
    let mut found = BTreeSet::new();
    let root = WorkspaceId::root();
    let in_root = observed.workspaces.get(root.as_str());
    for (class, _) in CLASSES {
        if in_root.is_none_or(|held| !held.classes.contains_key(&Name::new("", class))) {
            found.insert((root.clone(), class));
        }
    }
    for (id, held) in &observed.workspaces {
        let Ok(workspace) = WorkspaceId::parse(id) else {
            continue;
        };
        for (class, _) in CLASSES {
            let mut gateways = held.gateways.values().filter_map(|it| it.known());
            let is_named = gateways.any(|gateway| gateway.class == class);
            if is_named && !held.classes.contains_key(&Name::new("", class)) {
                found.insert((workspace.clone(), class));
            }
        }
    }
    found
}

pub(crate) fn object(class: &str) -> Value {
    let said = CLASSES.iter().find(|(name, _)| *name == class);
    json!({
        "apiVersion": GATEWAY_CLASS.api_version(), "kind": GATEWAY_CLASS.kind,
        "metadata": {"name": class},
        "spec": {"controllerName": CONTROLLER, "description": said.map(|(_, words)| *words)},
    })
}

#[cfg(test)]
mod tests {
    use fairway_gateway_routes::observed::Kind;

    use super::*;

    #[test]
    fn what_is_said_fits() {
        for (class, words) in CLASSES {
            assert!(words.len() <= 64, "{class}: upstream's limit");
        }
    }

    #[test]
    fn classes_are_made_where_they_are_named() {
        let mut observed = Observed::default();
        let names = |observed: &Observed| -> Vec<String> {
            let all = missing(observed).into_iter();
            all.map(|(workspace, class)| format!("{workspace} {class}"))
                .collect()
        };
        assert_eq!(names(&observed), ["root fairway", "root istio"]);
        let gateway = |class: &str| json!({"metadata": {"namespace": "n", "name": "g"}, "spec": {"gatewayClassName": class, "listeners": []}});
        observed.put("team", Kind::Gateway, &gateway("istio"));
        observed.put("other", Kind::Gateway, &gateway("somebodys"));
        observed.put("root", Kind::GatewayClass, &object("istio"));
        assert_eq!(names(&observed), ["root fairway", "team istio"]);
    }
}
