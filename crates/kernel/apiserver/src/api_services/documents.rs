//! How services are shown: discovery in both forms, and OpenAPI.

use fairway_apiservice::Resource;
use serde_json::{Map, Value, json};

use super::{ApiServices, Registered};
use crate::registry::api_version;

impl ApiServices {
    /// The entries of a legacy `APIResourceList`.
    pub(crate) fn legacy(&self, group: &str, version: &str) -> Vec<Value> {
        self.of(group, version)
            .flat_map(|service| &service.resources)
            .map(|resource| {
                let mut entry = json!({
                    "name": resource.name, "singularName": resource.singular,
                    "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs,
                });
                add_names(&mut entry, resource);
                entry
            })
            .collect()
    }

    /// Adds to the resources of a version in aggregated discovery. A subresource whose parent is of another group gets an
    /// entry without verbs to stand under, as upstream does.
    pub(crate) fn aggregate(&self, group: &str, version: &str, resources: &mut Vec<Value>) {
        for resource in self.of(group, version).flat_map(|service| &service.resources) {
            let (name, sub) = resource.split();
            let kind = json!({"group": group, "version": version, "kind": resource.kind});
            let scope = if resource.namespaced {
                "Namespaced"
            } else {
                "Cluster"
            };
            if sub.is_empty() {
                let mut entry = json!({
                    "resource": name, "responseKind": kind, "scope": scope,
                    "singularResource": resource.singular, "verbs": resource.verbs,
                });
                add_names(&mut entry, resource);
                resources.push(entry);
                continue;
            }
            let at = resources
                .iter()
                .position(|entry| entry["resource"] == name)
                .unwrap_or_else(|| {
                    resources.push(json!({
                        "resource": name, "responseKind": {"group": "", "version": "", "kind": ""},
                        "scope": scope, "singularResource": "", "verbs": [],
                    }));
                    resources.len() - 1
                });
            let entry = json!({"subresource": sub, "responseKind": kind, "verbs": resource.verbs});
            match resources[at]["subresources"].as_array_mut() {
                Some(known) => known.push(entry),
                None => resources[at]["subresources"] = json!([entry]),
            }
        }
    }

    /// What an OpenAPI document of a version depends on; empty where no service is.
    pub(crate) fn state(&self, group: &str, version: &str) -> String {
        self.of(group, version).map(|service| service.state()).collect()
    }

    /// The same for all.
    pub(crate) fn whole_state(&self) -> String {
        self.iter().map(|service| service.state()).collect()
    }

    /// Adds paths and schemas to an OpenAPI v3 document.
    pub(crate) fn add_openapi(&self, group: &str, version: &str, document: &mut Value) {
        for service in self.of(group, version) {
            let (paths, schemas) = service.openapi_parts();
            for (path, item) in paths {
                document["paths"][path] = item;
            }
            for (name, schema) in schemas {
                document["components"]["schemas"][name] = schema;
            }
        }
    }
}

impl Registered {
    fn state(&self) -> String {
        let names: Vec<&str> = self.resources.iter().map(|r| r.name.as_str()).collect();
        let openapi = self.openapi.as_ref().map(Value::to_string).unwrap_or_default();
        format!(
            ";{}:{}:{}",
            api_version(&self.group, &self.version),
            names.join(","),
            crate::openapi::hash(openapi.as_bytes())
        )
    }

    /// Paths and schemas of the service's own document, or the paths that follow from its resources.
    pub(crate) fn openapi_parts(&self) -> (Map<String, Value>, Map<String, Value>) {
        let object = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
        match &self.openapi {
            Some(document) => (
                object(document.get("paths")),
                object(document.pointer("/components/schemas")),
            ),
            None => (
                self.resources
                    .iter()
                    .map(|resource| self.path_item(resource))
                    .collect(),
                Map::new(),
            ),
        }
    }

    fn path_item(&self, resource: &Resource) -> (String, Value) {
        let (name, sub) = resource.split();
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{root}/{}", api_version(&self.group, &self.version));
        let text = |name: &str, what: String| {
            json!({"name": name, "in": "path", "required": true, "description": what,
                "schema": {"type": "string", "uniqueItems": true}})
        };
        let mut parameters = Vec::new();
        if resource.namespaced {
            path.push_str("/namespaces/{namespace}");
            parameters.push(text(
                "namespace",
                "object name and auth scope, such as for teams and projects".to_owned(),
            ));
        }
        path.push_str(&format!("/{name}/{{name}}"));
        parameters.push(text("name", format!("name of the {}", resource.kind)));
        if !sub.is_empty() {
            path.push_str(&format!("/{sub}"));
        }
        let mut item = Map::new();
        for (method, action) in [
            ("get", "get"),
            ("put", "update"),
            ("post", "create"),
            ("patch", "patch"),
            ("delete", "delete"),
        ] {
            if !resource.verbs.iter().any(|verb| verb == action) {
                continue;
            }
            let operation = json!({
                "description": format!("{action} {} of {}", resource.name, resource.kind),
                "operationId": operation_id(action, &self.group, &self.version, &resource.name),
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind":
                    {"group": self.group, "version": self.version, "kind": resource.kind},
                "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
            });
            item.insert(method.to_owned(), operation);
        }
        item.insert("parameters".to_owned(), parameters.into());
        (path, item.into())
    }
}

/// Unique and made of letters, as clients generate code from it.
fn operation_id(action: &str, group: &str, version: &str, resource: &str) -> String {
    let mut id = action.to_owned();
    for word in [group, version, resource]
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
    {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.push_str(letters.as_str());
    }
    id
}

fn add_names(entry: &mut Value, resource: &Resource) {
    for (field, names) in [
        ("shortNames", &resource.short_names),
        ("categories", &resource.categories),
    ] {
        if !names.is_empty() {
            entry[field] = json!(names);
        }
    }
}
