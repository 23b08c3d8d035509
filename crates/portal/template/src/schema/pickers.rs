//! What pickers of Backstage's forms allow. There the form alone sees to it; here an answer may come from anywhere, so that it is judged.
//!
//! Only what can be told from the answer itself is a rule: which hosts, owners and repositories, and which kinds of entities. Whether there
//! is such an entity is not asked.

use serde_json::{Map, Value};

use crate::names::{EntityRef, RepoUrl};

/// Fields that forms know here; others are asked for as their type says.
const KNOWN: [&str; 11] = [
    "DataSourcePicker",
    "EntityNamePicker",
    "EntityPicker",
    "EntityTagsPicker",
    "MultiEntityPicker",
    "MyGroupsPicker",
    "OwnedEntityPicker",
    "OwnerPicker",
    "RepoBranchPicker",
    "RepoUrlPicker",
    "Secret",
];
/// Options of Backstage's pickers that nothing here heeds.
const UNREAD: [&str; 2] = ["branchOptions", "requestUserCredentials"];
/// Parts of a repository's address, and the options that say what they may be.
const PARTS: [(&str, &str, &str); 5] = [
    ("host", "allowedHosts", "on one of the hosts"),
    ("owner", "allowedOwners", "of one of the owners"),
    ("repo", "allowedRepos", "one of"),
    (
        "organization",
        "allowedOrganizations",
        "of one of the organizations",
    ),
    ("project", "allowedProjects", "of one of the projects"),
];

/// An option of a form, in either of the ways of writing it.
fn option<'s>(fields: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    let options = fields.get("ui:options").and_then(|options| options.get(name));
    options.or_else(|| fields.get(&format!("ui:{name}")))
}

fn field(fields: &Map<String, Value>) -> Option<&str> {
    option(fields, "field")?.as_str()
}

/// Texts of an option; none are no rule.
fn texts(fields: &Map<String, Value>, name: &str) -> Vec<String> {
    let found = option(fields, name).map(all).unwrap_or_default();
    found.into_iter().map(str::to_owned).collect()
}

fn all(value: &Value) -> Vec<&str> {
    match value {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// What is wrong with an answer by the options of its picker.
pub(super) fn complaint(fields: &Map<String, Value>, value: &Value) -> Option<String> {
    match field(fields)? {
        "RepoUrlPicker" => repository(fields, value.as_str()?),
        "EntityPicker" | "MultiEntityPicker" | "OwnedEntityPicker" | "OwnerPicker" => {
            let kinds = kinds(fields);
            let found = all(value);
            found
                .into_iter()
                .filter(|text| !text.is_empty())
                .find_map(|text| entity(fields, &kinds, text))
        }
        _ => None,
    }
}

fn repository(fields: &Map<String, Value>, text: &str) -> Option<String> {
    let rules = PARTS.map(|(part, name, words)| (part, texts(fields, name), words));
    if text.is_empty() || rules.iter().all(|(_, allowed, _)| allowed.is_empty()) {
        return None;
    }
    let url = match RepoUrl::parse(text) {
        Ok(url) => url.to_json(),
        Err(why) => return Some(why),
    };
    let broken = rules.iter().find(|(part, allowed, _)| {
        let found = url[part].as_str().unwrap_or_default();
        // Names of hosts have no case.
        let is_same = |one: &String| one == found || (*part == "host" && one.eq_ignore_ascii_case(found));
        !allowed.is_empty() && !allowed.iter().any(is_same)
    });
    broken.map(|(_, allowed, words)| format!("the repository must be {words} {}", allowed.join(", ")))
}

/// The kinds that may be picked; none are all. A filter counts for more than the older list, as in Backstage.
fn kinds(fields: &Map<String, Value>) -> Vec<String> {
    let filters: Vec<&Value> = match option(fields, "catalogFilter") {
        Some(Value::Array(several)) => several.iter().collect(),
        Some(one @ Value::Object(_)) => vec![one],
        _ => return texts(fields, "allowedKinds"),
    };
    let named = filters.iter().map(|filter| filter.get("kind").map(all));
    // One that does not speak of kinds lets all of them through.
    let named: Option<Vec<Vec<&str>>> = named.collect();
    let named = named.unwrap_or_default().into_iter().flatten();
    named.map(str::to_owned).collect()
}

fn entity(fields: &Map<String, Value>, kinds: &[String], text: &str) -> Option<String> {
    let default = option(fields, "defaultKind").and_then(Value::as_str);
    let is_free = option(fields, "allowArbitraryValues") != Some(&Value::Bool(false));
    match EntityRef::parse(text, default, None) {
        Ok(named) if kinds.is_empty() || kinds.iter().any(|kind| kind.eq_ignore_ascii_case(&named.kind)) => {
            None
        }
        Ok(named) => Some(format!(
            "a {} cannot be picked here, only {}",
            named.kind.to_lowercase(),
            kinds.join(", ")
        )),
        // A name alone, or any text.
        Err(_) if is_free => None,
        Err(_) => Some(format!(
            "{text:?} is no reference to an entity, such as component:default/web, and nothing else can be picked here"
        )),
    }
}

/// What is said of a question's form and heeded by nothing.
pub fn unheeded(question: &Value) -> Vec<String> {
    let Some(fields) = question.as_object() else {
        return Vec::new();
    };
    let Some(field) = field(fields) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if !KNOWN.contains(&field) {
        found.push(format!("ui:field {field}"));
    }
    let options = UNREAD.iter().filter(|name| option(fields, name).is_some());
    found.extend(options.map(|name| format!("ui:options.{name}")));
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::check;

    fn said(question: &Value, answer: &Value) -> String {
        let found = check(&json!({"properties": {"a": question}}), &json!({"a": answer}));
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        texts.join("; ")
    }

    #[test]
    fn repositories_are_where_they_may_be() {
        let question = json!({"type": "string", "ui:field": "RepoUrlPicker", "ui:options": {
            "allowedHosts": ["fairway", "Git.Example.com"], "allowedOwners": ["acme"], "allowedRepos": [],
        }});
        for (answer, expected) in [
            ("fairway?owner=acme&repo=web", ""),
            ("git.example.com?owner=acme&repo=web", ""),
            (
                "evil.example?owner=acme&repo=web",
                "a: the repository must be on one of the hosts fairway, Git.Example.com",
            ),
            (
                "fairway?owner=other&repo=web",
                "a: the repository must be of one of the owners acme",
            ),
            (
                "fairway?repo=web",
                "a: the repository must be of one of the owners acme",
            ),
            (
                "web",
                "a: \"web\" is not the address of a repository (it has no question mark): write HOST?owner=OWNER&repo=NAME",
            ),
        ] {
            assert_eq!(said(&question, &json!(answer)), expected, "{answer}");
        }
        // In the other way of writing, and beside a reference.
        let question =
            json!({"$ref": "#/definitions/x", "ui:field": "RepoUrlPicker", "ui:allowedRepos": ["web"]});
        let page = json!({"definitions": {"x": {"type": "string"}}, "properties": {"a": question}});
        assert!(check(&page, &json!({"a": "fairway?repo=web"})).is_empty());
        assert_eq!(
            check(&page, &json!({"a": "fairway?repo=x"}))[0].message,
            "the repository must be one of web"
        );
        // Without rules anything is good that the question's own words allow.
        let question = json!({"type": "string", "ui:field": "RepoUrlPicker"});
        assert_eq!(said(&question, &json!("web")), "");
    }

    #[test]
    fn entities_are_of_the_kinds_that_may_be_picked() {
        let of = |field: &str, options: Value| json!({"ui:field": field, "ui:options": options});
        let groups = json!({"allowedKinds": ["Group"]});
        let cases = [
            (
                of("OwnerPicker", groups.clone()),
                json!("group:default/team"),
                true,
            ),
            (of("OwnerPicker", groups.clone()), json!("team"), true),
            (
                of("OwnerPicker", groups.clone()),
                json!("user:default/eve"),
                false,
            ),
            (
                of("MultiEntityPicker", groups.clone()),
                json!(["group:team", "Component:default/web"]),
                false,
            ),
            (of("EntityPicker", json!({})), json!("any text at all"), true),
            (
                of("EntityPicker", json!({"allowArbitraryValues": false})),
                json!("any text"),
                false,
            ),
            (
                of("EntityPicker", json!({"allowArbitraryValues": false})),
                json!("web"),
                false,
            ),
            (
                of(
                    "EntityPicker",
                    json!({"allowArbitraryValues": false, "defaultKind": "Component"}),
                ),
                json!("web"),
                true,
            ),
            (
                of(
                    "EntityPicker",
                    json!({"catalogFilter": {"kind": ["System"]}, "allowedKinds": ["Group"]}),
                ),
                json!("system:default/all"),
                true,
            ),
            (
                of(
                    "EntityPicker",
                    json!({"catalogFilter": [{"kind": "System"}, {"kind": "API"}]}),
                ),
                json!("group:default/team"),
                false,
            ),
            (
                of(
                    "EntityPicker",
                    json!({"catalogFilter": [{"kind": "System"}, {"spec.type": "team"}]}),
                ),
                json!("group:default/team"),
                true,
            ),
            (of("EntityTagsPicker", groups), json!(["user:default/eve"]), true),
        ];
        for (question, answer, is_good) in cases {
            assert_eq!(
                said(&question, &answer).is_empty(),
                is_good,
                "{question}: {answer}"
            );
        }
    }

    #[test]
    fn what_nothing_heeds_is_named() {
        for (question, expected) in [
            (
                json!({"ui:field": "RepoUrlPicker", "ui:options": {"allowedHosts": ["x"], "requestUserCredentials": {}}}),
                "ui:options.requestUserCredentials",
            ),
            (
                json!({"ui:field": "GitLabRepoPicker"}),
                "ui:field GitLabRepoPicker",
            ),
            (
                json!({"ui:field": "RepoBranchPicker", "ui:branchOptions": "x"}),
                "ui:options.branchOptions",
            ),
            (
                json!({"ui:field": "EntityPicker", "ui:defaultNamespace": "x"}),
                "",
            ),
            (
                json!({"ui:field": "OwnerPicker", "ui:options": {"allowedKinds": []}}),
                "",
            ),
            (json!({"type": "string", "ui:widget": "textarea"}), ""),
        ] {
            assert_eq!(unheeded(&question).join(", "), expected, "{question}");
        }
    }
}
