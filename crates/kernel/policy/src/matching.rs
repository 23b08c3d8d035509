//! Which requests a policy or a binding is about: `matchConstraints` and `matchResources`.

use fairway_kernel_kinds::read::{list, part, text, texts};
use fairway_kernel_kinds::selector;
use serde_json::Value;

/// A resource in one of its versions, and its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
    /// Kind.
    pub kind: String,
}

/// What a request is about.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// What the URL names.
    pub resource: Resource,
    /// The same resource in its other versions.
    pub equivalents: Vec<Resource>,
    /// The subresource, or nothing.
    pub subresource: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The object's namespace; a namespace is its own.
    pub namespace: &'a str,
    /// The labels of that namespace.
    pub namespace_labels: &'a Value,
    /// The object as it shall be; null if it shall not be.
    pub object: &'a Value,
    /// The object as it was; null if it was not.
    pub old_object: &'a Value,
}

impl Target<'_> {
    fn is_namespace(&self) -> bool {
        self.resource.group.is_empty() && self.resource.resource == "namespaces"
    }
}

/// The resource by which the criteria match, if they do: the request's own, or an equivalent that the policy was written
/// for. No criteria match everything.
pub fn matches<'t>(criteria: &Value, target: &'t Target<'_>) -> Option<&'t Resource> {
    if criteria.is_null() {
        return Some(&target.resource);
    }
    if !namespace_matches(part(criteria, "namespaceSelector"), target)
        || !object_matches(part(criteria, "objectSelector"), target)
    {
        return None;
    }
    let exact = text(criteria, "matchPolicy") == "Exact";
    if by_rules(list(criteria, "excludeResourceRules"), target, exact).is_some() {
        return None;
    }
    match list(criteria, "resourceRules") {
        [] => Some(&target.resource),
        rules => by_rules(rules, target, exact),
    }
}

fn namespace_matches(wanted: &Value, target: &Target<'_>) -> bool {
    // What belongs to no namespace cannot be let off by its labels.
    (target.namespace.is_empty() && !target.is_namespace())
        || selector::is_empty(wanted)
        || selector::matches(wanted, target.namespace_labels)
}

fn object_matches(wanted: &Value, target: &Target<'_>) -> bool {
    selector::is_empty(wanted)
        || [target.object, target.old_object].into_iter().any(|object| {
            !object.is_null() && selector::matches(wanted, part(part(object, "metadata"), "labels"))
        })
}

fn by_rules<'t>(rules: &[Value], target: &'t Target<'_>, exact: bool) -> Option<&'t Resource> {
    let find = |resource: &Resource| rules.iter().any(|rule| rule_matches(rule, target, resource));
    if find(&target.resource) {
        return Some(&target.resource);
    }
    target
        .equivalents
        .iter()
        .find(|resource| !exact && find(resource))
}

fn rule_matches(rule: &Value, target: &Target<'_>, resource: &Resource) -> bool {
    let one_of = |field: &str, wanted: &str| texts(rule, field).any(|item| item == "*" || item == wanted);
    let names_it = |item: &str| {
        let (name, sub) = item.split_once('/').unwrap_or((item, ""));
        (name == "*" || name == resource.resource) && (sub == "*" || sub == target.subresource)
    };
    let cluster = target.is_namespace() || target.namespace.is_empty();
    let in_scope = match text(rule, "scope") {
        "Namespaced" => !cluster,
        "Cluster" => cluster,
        _ => true,
    };
    in_scope
        && one_of("operations", target.operation)
        && one_of("apiGroups", &resource.group)
        && one_of("apiVersions", &resource.version)
        && texts(rule, "resources").any(names_it)
        && (list(rule, "resourceNames").is_empty()
            || texts(rule, "resourceNames").any(|name| name == target.name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Resource, Target, matches};

    fn resource(group: &str, version: &str, plural: &str, kind: &str) -> Resource {
        Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: plural.to_owned(),
            kind: kind.to_owned(),
        }
    }

    #[test]
    fn criteria_choose_requests() {
        let (labels, null) = (json!({"team": "a"}), Value::Null);
        let object = json!({"metadata": {"labels": {"app": "x"}}});
        let widget = Target {
            operation: "CREATE",
            resource: resource("example.com", "v2", "widgets", "Widget"),
            equivalents: vec![resource("example.com", "v1", "widgets", "Widget")],
            subresource: "",
            name: "w",
            namespace: "n",
            namespace_labels: &labels,
            object: &object,
            old_object: &null,
        };
        let status = Target {
            subresource: "status",
            ..widget.clone()
        };
        let node = Target {
            resource: resource("", "v1", "nodes", "Node"),
            equivalents: Vec::new(),
            namespace: "",
            namespace_labels: &null,
            ..widget.clone()
        };
        let namespace = Target {
            resource: resource("", "v1", "namespaces", "Namespace"),
            equivalents: Vec::new(),
            namespace: "n",
            ..widget.clone()
        };
        let rule = |version: &str, resources: &[&str]| json!({"apiGroups": ["example.com"], "apiVersions": [version], "operations": ["CREATE"], "resources": resources});
        let all = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]});
        let with = |mut rule: Value, field: &str, value: Value| {
            rule[field] = value;
            rule
        };
        for (name, criteria, target, want) in [
            ("nothing is asked", json!(null), &widget, Some("v2")),
            ("no rules", json!({}), &widget, Some("v2")),
            (
                "by its version",
                json!({"resourceRules": [rule("v2", &["widgets"])]}),
                &widget,
                Some("v2"),
            ),
            (
                "by another",
                json!({"resourceRules": [rule("v1", &["widgets"])]}),
                &widget,
                Some("v1"),
            ),
            (
                "not by another",
                json!({"matchPolicy": "Exact", "resourceRules": [rule("v1", &["widgets"])]}),
                &widget,
                None,
            ),
            (
                "by none",
                json!({"resourceRules": [rule("v3", &["widgets"])]}),
                &widget,
                None,
            ),
            (
                "another resource",
                json!({"resourceRules": [rule("*", &["gadgets"])]}),
                &widget,
                None,
            ),
            (
                "a resource is not its status",
                json!({"resourceRules": [rule("*", &["widgets"])]}),
                &status,
                None,
            ),
            (
                "a status",
                json!({"resourceRules": [rule("*", &["widgets/status"])]}),
                &status,
                Some("v2"),
            ),
            (
                "any subresource",
                json!({"resourceRules": [rule("*", &["widgets/*"])]}),
                &status,
                Some("v2"),
            ),
            (
                "everything",
                json!({"resourceRules": [rule("*", &["*/*"])]}),
                &widget,
                Some("v2"),
            ),
            (
                "excluded",
                json!({"resourceRules": [all], "excludeResourceRules": [rule("v1", &["widgets"])]}),
                &widget,
                None,
            ),
            (
                "by name",
                json!({"resourceRules": [with(all.clone(), "resourceNames", json!(["w"]))]}),
                &widget,
                Some("v2"),
            ),
            (
                "by another name",
                json!({"resourceRules": [with(all.clone(), "resourceNames", json!(["v"]))]}),
                &widget,
                None,
            ),
            (
                "another operation",
                json!({"resourceRules": [with(all.clone(), "operations", json!(["DELETE"]))]}),
                &widget,
                None,
            ),
            (
                "in a namespace",
                json!({"resourceRules": [with(all.clone(), "scope", json!("Namespaced"))]}),
                &widget,
                Some("v2"),
            ),
            (
                "of the cluster",
                json!({"resourceRules": [with(all.clone(), "scope", json!("Cluster"))]}),
                &widget,
                None,
            ),
            (
                "a node is of the cluster",
                json!({"resourceRules": [with(all.clone(), "scope", json!("Cluster"))]}),
                &node,
                Some("v1"),
            ),
            (
                "so is a namespace",
                json!({"resourceRules": [with(all, "scope", json!("Namespaced"))]}),
                &namespace,
                None,
            ),
            (
                "labels of the namespace",
                json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}),
                &widget,
                Some("v2"),
            ),
            (
                "other labels",
                json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}),
                &widget,
                None,
            ),
            (
                "a node has no namespace",
                json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}),
                &node,
                Some("v1"),
            ),
            (
                "a namespace is its own",
                json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}),
                &namespace,
                None,
            ),
            (
                "labels of the object",
                json!({"objectSelector": {"matchLabels": {"app": "x"}}}),
                &widget,
                Some("v2"),
            ),
            (
                "other labels of it",
                json!({"objectSelector": {"matchLabels": {"app": "y"}}}),
                &widget,
                None,
            ),
        ] {
            let found = matches(&criteria, target).map(|resource| resource.version.as_str());
            assert_eq!(found, want, "{name}");
        }
    }
}
