//! What of kcp's kinds is kept and not acted on. Whoever writes it is told, in a warning that kubectl prints.

use serde_json::Value;

use crate::names::{APIS, TENANCY};

/// What to tell whoever writes an object of one of kcp's kinds.
pub fn warnings(group: &str, resource: &str, object: &Value) -> Vec<String> {
    let is_set = |pointer: &str| match object.pointer(pointer) {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(_) => true,
    };
    let told: &[(bool, &str)] = match (group, resource) {
        (TENANCY, "workspaces") => &[(
            is_set("/spec/mount"),
            "spec.mount: workspaces of other servers are not mounted here; this one stays unavailable",
        )],
        (TENANCY, "workspacetypes") => &[(
            is_set("/spec/authenticationConfigurations"),
            "spec.authenticationConfigurations: a workspace has no issuers of its own here; tokens are those that the server \
             trusts (--authentication-config)",
        )],
        (TENANCY, "workspaceauthenticationconfigurations") => &[(
            true,
            "a workspace has no issuers of its own here; tokens are those that the server trusts (--authentication-config)",
        )],
        (APIS, "apiconversions") => &[(
            true,
            "versions of a schema are converted by changing apiVersion alone; the rules of an APIConversion are not applied",
        )],
        _ => &[],
    };
    let told = told.iter().filter(|(applies, _)| *applies);
    told.map(|(_, text)| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_not_acted_on_is_warned_about() {
        for (group, resource, object, begins) in [
            (TENANCY, "workspaces", json!({"spec": {"type": {}}}), None),
            (TENANCY, "workspaces", json!({"spec": {"mount": null}}), None),
            (
                TENANCY,
                "workspaces",
                json!({"spec": {"mount": {"ref": {}}}}),
                Some("spec.mount:"),
            ),
            (
                TENANCY,
                "workspacetypes",
                json!({"spec": {"authenticationConfigurations": []}}),
                None,
            ),
            (
                TENANCY,
                "workspacetypes",
                json!({"spec": {"authenticationConfigurations": [{"name": "a"}]}}),
                Some("spec.authenticationConfigurations:"),
            ),
            (
                TENANCY,
                "workspaceauthenticationconfigurations",
                json!({}),
                Some("a workspace has no issuers"),
            ),
            (APIS, "apiconversions", json!({}), Some("versions of a schema")),
            (APIS, "apibindings", json!({"spec": {"mount": {}}}), None),
        ] {
            let told = warnings(group, resource, &object);
            assert_eq!(told.len(), usize::from(begins.is_some()), "{resource} {object}");
            assert!(
                begins.is_none_or(|begins| told[0].starts_with(begins)),
                "{told:?}"
            );
        }
    }
}
