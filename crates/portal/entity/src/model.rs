//! The kinds of upstream's catalog: which versions of each are read, what their `spec` holds, and what follows from its references.
//!
//! A table, because the kinds differ in nothing else. Fields that are not listed are kept: `spec` is open in upstream's schemas.

use serde_json::Value;

/// What a field of a `spec` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// A text that is not empty.
    Text,
    /// Texts that are not empty.
    Texts,
    /// A map.
    Map,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// Anything: somebody else judges it.
    Anything,
    /// A schema, or one for each page of a form.
    Pages,
    /// Steps of a template: maps with an action.
    Steps,
}

/// A field of a `spec`.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// What it holds.
    pub holds: Holds,
}

/// References that lead to relations, both ways.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The field of `spec`.
    pub field: &'static str,
    /// The kind that is meant by a reference without one.
    pub kind: Option<&'static str>,
    /// What the entity is to the other.
    pub forth: &'static str,
    /// What the other is to the entity.
    pub back: &'static str,
}

/// A kind.
#[derive(Clone, Copy, Debug)]
pub struct KindModel {
    /// Its name.
    pub kind: &'static str,
    /// The versions in which it is read.
    pub api_versions: &'static [&'static str],
    /// Fields of its `spec` that have rules.
    pub fields: &'static [Field],
    /// Which of them are references.
    pub links: &'static [Link],
}

const fn must(name: &'static str, holds: Holds) -> Field {
    Field {
        name,
        required: true,
        holds,
    }
}

const fn may(name: &'static str, holds: Holds) -> Field {
    Field {
        name,
        required: false,
        holds,
    }
}

const fn link(
    field: &'static str,
    kind: Option<&'static str>,
    forth: &'static str,
    back: &'static str,
) -> Link {
    Link {
        field,
        kind,
        forth,
        back,
    }
}

const BACKSTAGE: &[&str] = &["backstage.io/v1alpha1", "backstage.io/v1beta1"];
const OWNER: Link = link("owner", Some("Group"), "ownedBy", "ownerOf");
const SYSTEM: Link = link("system", Some("System"), "partOf", "hasPart");
const DEPENDS_ON: Link = link("dependsOn", None, "dependsOn", "dependencyOf");
const DEPENDENCY_OF: Link = link("dependencyOf", None, "dependencyOf", "dependsOn");

/// All of them.
pub static KINDS: &[KindModel] = &[
    KindModel {
        kind: "API",
        api_versions: BACKSTAGE,
        fields: &[
            must("type", Holds::Text),
            must("lifecycle", Holds::Text),
            must("owner", Holds::Text),
            must("definition", Holds::Text),
            may("system", Holds::Text),
        ],
        links: &[OWNER, SYSTEM],
    },
    KindModel {
        kind: "Component",
        api_versions: BACKSTAGE,
        fields: &[
            must("type", Holds::Text),
            must("lifecycle", Holds::Text),
            must("owner", Holds::Text),
            may("system", Holds::Text),
            may("subcomponentOf", Holds::Text),
            may("providesApis", Holds::Texts),
            may("consumesApis", Holds::Texts),
            may("dependsOn", Holds::Texts),
            may("dependencyOf", Holds::Texts),
        ],
        links: &[
            OWNER,
            link("subcomponentOf", Some("Component"), "partOf", "hasPart"),
            link("providesApis", Some("API"), "providesApi", "apiProvidedBy"),
            link("consumesApis", Some("API"), "consumesApi", "apiConsumedBy"),
            DEPENDS_ON,
            DEPENDENCY_OF,
            SYSTEM,
        ],
    },
    KindModel {
        kind: "Domain",
        api_versions: BACKSTAGE,
        fields: &[
            must("owner", Holds::Text),
            may("subdomainOf", Holds::Text),
            may("type", Holds::Text),
        ],
        links: &[OWNER, link("subdomainOf", Some("Domain"), "partOf", "hasPart")],
    },
    KindModel {
        kind: "Group",
        api_versions: BACKSTAGE,
        fields: &[
            must("type", Holds::Text),
            must("children", Holds::Texts),
            may("profile", Holds::Map),
            may("parent", Holds::Text),
            may("members", Holds::Texts),
        ],
        links: &[
            link("parent", Some("Group"), "childOf", "parentOf"),
            link("children", Some("Group"), "parentOf", "childOf"),
            link("members", Some("User"), "hasMember", "memberOf"),
        ],
    },
    KindModel {
        kind: "Location",
        api_versions: BACKSTAGE,
        fields: &[
            may("type", Holds::Text),
            may("target", Holds::Text),
            may("targets", Holds::Texts),
            may("presence", Holds::OneOf(&["required", "optional"])),
        ],
        links: &[],
    },
    KindModel {
        kind: "Resource",
        api_versions: BACKSTAGE,
        fields: &[
            must("type", Holds::Text),
            must("owner", Holds::Text),
            may("dependsOn", Holds::Texts),
            may("dependencyOf", Holds::Texts),
            may("system", Holds::Text),
        ],
        links: &[OWNER, DEPENDS_ON, DEPENDENCY_OF, SYSTEM],
    },
    KindModel {
        kind: "System",
        api_versions: BACKSTAGE,
        fields: &[
            must("owner", Holds::Text),
            may("domain", Holds::Text),
            may("type", Holds::Text),
        ],
        links: &[OWNER, link("domain", Some("Domain"), "partOf", "hasPart")],
    },
    KindModel {
        kind: "Template",
        api_versions: &["scaffolder.backstage.io/v1beta3"],
        fields: &[
            must("type", Holds::Text),
            must("steps", Holds::Steps),
            may("owner", Holds::Text),
            may("parameters", Holds::Pages),
            may("output", Holds::Map),
            may("lifecycle", Holds::Text),
            may("presentation", Holds::Map),
        ],
        links: &[OWNER],
    },
    KindModel {
        kind: "User",
        api_versions: BACKSTAGE,
        fields: &[may("memberOf", Holds::Texts), may("profile", Holds::Map)],
        links: &[link("memberOf", Some("Group"), "memberOf", "hasMember")],
    },
];

/// The kind of an entity, if upstream's catalog reads it in this version.
pub fn model_of(entity: &Value) -> Option<&'static KindModel> {
    let (version, kind) = (entity["apiVersion"].as_str()?, entity["kind"].as_str()?);
    KINDS
        .iter()
        .find(|model| model.kind == kind && model.api_versions.contains(&version))
}

/// What is wrong with a `spec`, in the words of upstream's schema validator; the first problem.
pub fn spec_problem(model: &KindModel, entity: &Value) -> Option<String> {
    let Some(spec) = entity.get("spec") else {
        return Some(missing("<root>", "spec"));
    };
    let Some(spec) = spec.as_object() else {
        return Some(wrong_type("/spec", "object"));
    };
    if let Some(field) = model
        .fields
        .iter()
        .find(|field| field.required && !spec.contains_key(field.name))
    {
        return Some(missing("/spec", field.name));
    }
    model.fields.iter().find_map(|field| {
        let value = spec.get(field.name)?;
        held(&format!("/spec/{}", field.name), value, field.holds)
    })
}

fn held(path: &str, value: &Value, holds: Holds) -> Option<String> {
    match holds {
        Holds::Text => text(path, value),
        Holds::Texts => {
            let Some(items) = value.as_array() else {
                return Some(wrong_type(path, "array"));
            };
            items
                .iter()
                .enumerate()
                .find_map(|(at, item)| text(&format!("{path}/{at}"), item))
        }
        Holds::Map => (!value.is_object()).then(|| wrong_type(path, "object")),
        Holds::OneOf(allowed) => match value.as_str() {
            None => Some(wrong_type(path, "string")),
            Some(text) if allowed.contains(&text) => None,
            Some(_) => Some(format!(
                "{path} must be equal to one of the allowed values - allowedValues: {}",
                allowed.join(",")
            )),
        },
        Holds::Anything => None,
        Holds::Pages => {
            let pages = match value {
                Value::Array(pages) => pages.iter().all(Value::is_object),
                other => other.is_object(),
            };
            (!pages).then(|| format!("{path} must match exactly one schema in oneOf - passingSchemas: null"))
        }
        Holds::Steps => {
            let Some(steps) = value.as_array() else {
                return Some(wrong_type(path, "array"));
            };
            steps.iter().enumerate().find_map(|(at, step)| {
                let path = format!("{path}/{at}");
                match (step.is_object(), step.get("action")) {
                    (false, _) => Some(wrong_type(&path, "object")),
                    (true, None) => Some(missing(&path, "action")),
                    (true, Some(action)) => {
                        (!action.is_string()).then(|| wrong_type(&format!("{path}/action"), "string"))
                    }
                }
            })
        }
    }
}

fn text(path: &str, value: &Value) -> Option<String> {
    match value.as_str() {
        None => Some(wrong_type(path, "string")),
        Some("") => Some(format!("{path} must NOT have fewer than 1 characters - limit: 1")),
        Some(_) => None,
    }
}

pub(crate) fn missing(path: &str, field: &str) -> String {
    format!("{path} must have required property '{field}' - missingProperty: {field}")
}

pub(crate) fn wrong_type(path: &str, expected: &str) -> String {
    format!("{path} must be {expected} - type: {expected}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(kind: &str, spec: Value, expected: Option<&str>) {
        let model = KINDS.iter().find(|model| model.kind == kind).unwrap();
        let mut entity = json!({"kind": kind});
        entity["spec"] = spec;
        assert_eq!(spec_problem(model, &entity).as_deref(), expected, "{entity}");
    }

    #[test]
    fn specs_are_judged_in_upstream_s_words() {
        let whole = json!({"type": "service", "lifecycle": "production", "owner": "team", "more": [1]});
        check("Component", whole, None);
        let cases = [
            (
                "Component",
                json!({"type": "service", "lifecycle": "production"}),
                "/spec must have required property 'owner' - missingProperty: owner",
            ),
            (
                "Component",
                json!({"type": "", "lifecycle": "x", "owner": "y"}),
                "/spec/type must NOT have fewer than 1 characters - limit: 1",
            ),
            (
                "Component",
                json!({"type": "a", "lifecycle": "x", "owner": "y", "dependsOn": "z"}),
                "/spec/dependsOn must be array - type: array",
            ),
            (
                "Component",
                json!({"type": "a", "lifecycle": "x", "owner": "y", "dependsOn": [1]}),
                "/spec/dependsOn/0 must be string - type: string",
            ),
            (
                "Group",
                json!({"type": "team"}),
                "/spec must have required property 'children' - missingProperty: children",
            ),
            (
                "Location",
                json!({"presence": "maybe"}),
                "/spec/presence must be equal to one of the allowed values - allowedValues: required,optional",
            ),
            (
                "Template",
                json!({"type": "a", "steps": [{"name": "x"}]}),
                "/spec/steps/0 must have required property 'action' - missingProperty: action",
            ),
            (
                "Template",
                json!({"type": "a", "steps": [], "parameters": "x"}),
                "/spec/parameters must match exactly one schema in oneOf - passingSchemas: null",
            ),
            ("Domain", json!([]), "/spec must be object - type: object"),
        ];
        for (kind, spec, expected) in cases {
            check(kind, spec, Some(expected));
        }
        check("User", json!({}), None);
        check(
            "Template",
            json!({"type": "vm", "steps": [], "parameters": [{}]}),
            None,
        );
    }

    #[test]
    fn versions_are_those_of_upstream() {
        for (version, kind, known) in [
            ("backstage.io/v1alpha1", "Component", true),
            ("backstage.io/v1beta1", "API", true),
            ("scaffolder.backstage.io/v1beta3", "Template", true),
            ("backstage.io/v1beta2", "Template", false),
            ("backstage.io/v1alpha1", "component", false),
            ("v1", "Pod", false),
        ] {
            let entity = json!({"apiVersion": version, "kind": kind});
            assert_eq!(model_of(&entity).is_some(), known, "{version} {kind}");
        }
    }
}
