//! The paths under which a resource is served, with the operations of each.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::operations::{
    Answers, DELETE, Identity, LIST, Operation, Parameter, Request, WRITE, operation, path_item,
};
use super::schemas::Schemas;
use super::{need, schema_ref};
use crate::builtin::table::{Format, Gvk};

/// A resource as it is served: built in or defined by a CRD.
pub(super) struct Resource<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    pub(super) namespaced: bool,
    pub(super) verbs: &'a [&'a str],
    /// Full name of the type of its objects.
    pub(super) object: String,
    /// Full name of the type of its lists.
    pub(super) list: Option<String>,
    pub(super) returns_deleted: bool,
    /// Built-in kinds know strategic merge and protobuf.
    pub(super) built_in: bool,
    pub(super) subresources: Vec<Subresource<'a>>,
}

/// A subresource as it is served.
pub(super) struct Subresource<'a> {
    pub(super) name: &'a str,
    pub(super) gvk: Gvk<'a>,
    pub(super) verbs: &'a [&'a str],
    /// Full name of the type of its objects; `None` for connections and text.
    pub(super) object: Option<String>,
    pub(super) query: &'a [(&'static str, Format)],
}

/// Receives the paths.
pub(super) type Sink<'a> = &'a mut dyn FnMut(&str, Value);

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const OK: (&str, &str) = ("200", "OK");
const CREATED: (&str, &str) = ("201", "Created");
const ACCEPTED: (&str, &str) = ("202", "Accepted");
const MEDIA: [&str; 3] = [
    "application/json",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
];
const CUSTOM_MEDIA: [&str; 2] = ["application/json", "application/yaml"];
const WATCH_MEDIA: [&str; 5] = [
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const PATCH_MEDIA: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The path that lists the resources of a group-version.
pub(super) fn discovery(group: &str, version: &str, roots: &mut BTreeSet<String>, sink: Sink<'_>) {
    let names = Names::new(group, version);
    let identity = Identity {
        id: format!("get{}APIResources", names.camel),
        description: "get available resources".to_owned(),
        tag: &names.tag,
        action: None,
    };
    let list = format!("{META}APIResourceList");
    let schema = schema_ref(need(roots, &list));
    let body = operation(
        identity,
        None,
        &Answers {
            codes: &[OK],
            media: &MEDIA,
            schema,
        },
    );
    let operations = vec![Operation {
        method: "get",
        parameters: Vec::new(),
        body,
    }];
    sink(&format!("{}/", names.prefix), path_item(operations));
}

/// All paths of a resource.
pub(super) fn resource(
    resource: &Resource<'_>,
    schemas: &Schemas<'_>,
    roots: &mut BTreeSet<String>,
    sink: Sink<'_>,
) {
    let names = Names::new(resource.group, resource.version);
    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let collection = format!("{}{scope}/{}", names.prefix, resource.name);
    let watched = format!("{}/watch{scope}/{}", names.prefix, resource.name);
    let mut builder = Builder {
        resource,
        schemas,
        roots,
        names,
    };

    let operations = builder.collection();
    emit(sink, &collection, operations);
    if resource.namespaced && builder.has("list") {
        let path = format!("{}/{}", builder.names.prefix, resource.name);
        let operations = vec![builder.list(false)];
        emit(sink, &path, operations);
    }
    let operations = builder.item();
    emit(sink, &format!("{collection}/{{name}}"), operations);
    if builder.has("watch") && resource.built_in {
        let operations = vec![builder.watch("watchlist", resource.namespaced)];
        emit(sink, &watched, operations);
        let operations = vec![builder.watch("watch", resource.namespaced)];
        emit(sink, &format!("{watched}/{{name}}"), operations);
        if resource.namespaced {
            let operations = vec![builder.watch("watchlist", false)];
            emit(
                sink,
                &format!("{}/watch/{}", builder.names.prefix, resource.name),
                operations,
            );
        }
    }
    for sub in &resource.subresources {
        let path = format!("{collection}/{{name}}/{}", sub.name);
        if sub.is_connection() {
            let operations = builder.connections(sub, false);
            emit(sink, &path, operations);
            if sub.verbs.contains(&"delete") {
                let operations = builder.connections(sub, true);
                emit(sink, &format!("{path}/{{path}}"), operations);
            }
        } else {
            let operations = builder.subresource(sub);
            emit(sink, &path, operations);
        }
    }
}

fn emit(sink: Sink<'_>, path: &str, operations: Vec<Operation>) {
    if !operations.is_empty() {
        sink(path, path_item(operations));
    }
}

impl Subresource<'_> {
    fn is_connection(&self) -> bool {
        self.object.is_none()
    }
}

/// What a group-version is called in paths, tags and operation ids.
struct Names {
    prefix: String,
    tag: String,
    camel: String,
}

impl Names {
    fn new(group: &str, version: &str) -> Self {
        let prefix = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        let words = if group.is_empty() {
            "core"
        } else {
            group.trim_end_matches(".k8s.io")
        };
        let camel: String = words.split(['.', '-']).map(capital).collect();
        let mut lower = camel.clone();
        if let Some(first) = lower.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Self {
            prefix,
            tag: format!("{lower}_{version}"),
            camel: format!("{camel}{}", capital(version)),
        }
    }
}

fn capital(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    word
}

struct Builder<'a, 'b> {
    resource: &'a Resource<'a>,
    schemas: &'a Schemas<'a>,
    roots: &'b mut BTreeSet<String>,
    names: Names,
}

/// What an operation does, beyond where.
struct Plan<'a> {
    method: &'static str,
    action: &'static str,
    gvk: Gvk<'a>,
    id: String,
    description: String,
    named: bool,
    namespaced: bool,
    query: Vec<&'static str>,
    body: Option<&'a str>,
    codes: &'a [(&'static str, &'static str)],
    answer: &'a str,
}

impl<'a> Builder<'a, '_> {
    fn has(&self, verb: &str) -> bool {
        self.resource.verbs.contains(&verb)
    }

    fn gvk(&self) -> Gvk<'a> {
        Gvk {
            group: self.resource.group,
            version: self.resource.version,
            kind: self.resource.kind,
        }
    }

    /// `createAppsV1NamespacedDeployment`.
    fn id(&self, verb: &str, middle: &str, end: &str) -> String {
        let scope = if self.resource.namespaced {
            "Namespaced"
        } else {
            ""
        };
        format!(
            "{verb}{}{middle}{scope}{}{end}",
            self.names.camel, self.resource.kind
        )
    }

    fn collection(&mut self) -> Vec<Operation> {
        let resource = self.resource;
        let mut operations = Vec::new();
        if self.has("list") {
            operations.push(self.list(resource.namespaced));
        }
        if self.has("create") {
            let plan = Plan {
                method: "post",
                action: "post",
                gvk: self.gvk(),
                id: self.id("create", "", ""),
                description: format!("create an object of kind {}", resource.kind),
                named: false,
                namespaced: resource.namespaced,
                query: WRITE.to_vec(),
                body: Some(&resource.object),
                codes: &[OK, CREATED, ACCEPTED],
                answer: &resource.object,
            };
            operations.push(self.build(plan));
        }
        if self.has("deletecollection") {
            // The documents of custom kinds show it as if it took the parameters of a list and nothing else.
            let mut query = LIST.to_vec();
            if resource.built_in {
                query.extend(DELETE);
                query.retain(|name| !matches!(*name, "allowWatchBookmarks" | "watch"));
            }
            let (body, answer) = (format!("{META}DeleteOptions"), format!("{META}Status"));
            let plan = Plan {
                method: "delete",
                action: "deletecollection",
                gvk: self.gvk(),
                id: self.id("delete", "Collection", ""),
                description: format!("delete several objects of kind {}", resource.kind),
                named: false,
                namespaced: resource.namespaced,
                query,
                body: resource.built_in.then_some(&body),
                codes: &[OK],
                answer: &answer,
            };
            operations.push(self.build(plan));
        }
        operations
    }

    fn list(&mut self, namespaced: bool) -> Operation {
        let resource = self.resource;
        let id = if resource.namespaced && !namespaced {
            format!("list{}{}ForAllNamespaces", self.names.camel, resource.kind)
        } else {
            self.id("list", "", "")
        };
        let plan = Plan {
            method: "get",
            action: "list",
            gvk: self.gvk(),
            id,
            description: format!("list or watch objects of kind {}", resource.kind),
            named: false,
            namespaced,
            query: LIST.to_vec(),
            body: None,
            codes: &[OK],
            answer: resource.list.as_deref().unwrap_or(&resource.object),
        };
        self.build(plan)
    }

    fn item(&mut self) -> Vec<Operation> {
        let resource = self.resource;
        let mut operations = self.read_and_write(resource.verbs, self.gvk(), &resource.object, "");
        if self.has("delete") {
            let (body, status) = (format!("{META}DeleteOptions"), format!("{META}Status"));
            let plan = Plan {
                method: "delete",
                action: "delete",
                gvk: self.gvk(),
                id: self.id("delete", "", ""),
                description: format!("delete an object of kind {}", resource.kind),
                named: true,
                namespaced: resource.namespaced,
                query: DELETE.to_vec(),
                body: Some(&body),
                codes: &[OK, ACCEPTED],
                answer: if resource.returns_deleted {
                    &resource.object
                } else {
                    &status
                },
            };
            operations.push(self.build(plan));
        }
        operations
    }

    /// Reading, replacing and patching, which objects and most subresources have in common.
    fn read_and_write(&mut self, verbs: &[&str], gvk: Gvk<'_>, object: &str, sub: &str) -> Vec<Operation> {
        let resource = self.resource;
        let what = if sub.is_empty() {
            String::new()
        } else {
            format!("{sub} of ")
        };
        let patch = format!("{META}Patch");
        let known: [(&str, &'static str, &str, &str, Option<&str>); 3] = [
            ("get", "get", "read", "read", None),
            ("update", "put", "replace", "replace", Some(object)),
            ("patch", "patch", "patch", "partly change", Some(&patch)),
        ];
        let mut operations = Vec::new();
        for (verb, method, word, description, body) in known {
            if !verbs.contains(&verb) {
                continue;
            }
            let mut query = match body {
                Some(_) => WRITE.to_vec(),
                None if resource.built_in => Vec::new(),
                None => vec!["resourceVersion"],
            };
            query.extend((verb == "patch").then_some("force"));
            let plan = Plan {
                method,
                action: method,
                gvk,
                id: self.id(word, "", &capital(sub)),
                description: format!("{description} {what}an object of kind {}", resource.kind),
                named: true,
                namespaced: resource.namespaced,
                query,
                body,
                codes: match verb {
                    "get" => &[OK],
                    "patch" if !resource.built_in => &[OK],
                    _ => &[OK, CREATED],
                },
                answer: object,
            };
            operations.push(self.build(plan));
        }
        operations
    }

    fn watch(&mut self, action: &'static str, namespaced: bool) -> Operation {
        let resource = self.resource;
        let list = action == "watchlist";
        let id = match (list, resource.namespaced && !namespaced) {
            (true, true) => format!("watch{}{}ListForAllNamespaces", self.names.camel, resource.kind),
            (true, false) => self.id("watch", "", "List"),
            (false, _) => self.id("watch", "", ""),
        };
        let answer = format!("{META}WatchEvent");
        let plan = Plan {
            method: "get",
            action,
            gvk: self.gvk(),
            id,
            description: format!(
                "deprecated way to watch objects of kind {}; list them with the parameter watch instead",
                resource.kind
            ),
            named: !list,
            namespaced,
            query: LIST.to_vec(),
            body: None,
            codes: &[OK],
            answer: &answer,
        };
        self.build(plan)
    }

    fn subresource(&mut self, sub: &Subresource<'_>) -> Vec<Operation> {
        let object = sub.object.as_deref().unwrap_or_default();
        if sub.name == "log" {
            return vec![self.log(sub)];
        }
        let mut operations = self.read_and_write(sub.verbs, sub.gvk, object, sub.name);
        if sub.verbs.contains(&"create") {
            let plan = Plan {
                method: "post",
                action: "post",
                gvk: sub.gvk,
                id: self.id("create", "", &capital(sub.name)),
                description: format!("create {} of an object of kind {}", sub.name, self.resource.kind),
                named: true,
                namespaced: self.resource.namespaced,
                query: WRITE.to_vec(),
                body: Some(object),
                codes: &[OK, CREATED, ACCEPTED],
                answer: object,
            };
            operations.push(self.build(plan));
        }
        operations
    }

    /// Logs are text.
    fn log(&mut self, sub: &Subresource<'_>) -> Operation {
        let identity = Identity {
            id: self.id("read", "", "Log"),
            description: format!("read the log of an object of kind {}", self.resource.kind),
            tag: &self.names.tag,
            action: Some(("get", sub.gvk)),
        };
        let media = [MEDIA[0], MEDIA[1], MEDIA[2], "text/plain"];
        let answers = Answers {
            codes: &[OK],
            media: &media,
            schema: json!({"type": "string"}),
        };
        let mut parameters = self.own_query(sub);
        parameters.extend(self.path_parameters(sub.gvk.kind, true, self.resource.namespaced));
        parameters.push(Parameter::common("pretty", self.schemas));
        Operation {
            method: "get",
            parameters,
            body: operation(identity, None, &answers),
        }
    }

    /// Subresources that open a connection take every method that their verbs allow.
    fn connections(&mut self, sub: &Subresource<'_>, with_path: bool) -> Vec<Operation> {
        let methods: &[&'static str] = if sub.verbs.contains(&"delete") {
            &["delete", "get", "head", "options", "patch", "post", "put"]
        } else {
            &["get", "post"]
        };
        let end = format!("{}{}", capital(sub.name), if with_path { "WithPath" } else { "" });
        let mut operations = Vec::new();
        for &method in methods {
            let identity = Identity {
                id: self.id("connect", &capital(method), &end),
                description: format!(
                    "connect {} requests to {} of an object of kind {}",
                    method.to_uppercase(),
                    sub.name,
                    self.resource.kind
                ),
                tag: &self.names.tag,
                action: Some(("connect", sub.gvk)),
            };
            let answers = Answers {
                codes: &[OK],
                media: &["*/*"],
                schema: json!({"type": "string"}),
            };
            let mut parameters = self.own_query(sub);
            parameters.extend(self.path_parameters(sub.gvk.kind, true, self.resource.namespaced));
            if with_path {
                parameters.push(Parameter::path("path", "path to the resource"));
            }
            operations.push(Operation {
                method,
                parameters,
                body: operation(identity, None, &answers),
            });
        }
        operations
    }

    fn own_query(&self, sub: &Subresource<'_>) -> Vec<Parameter> {
        let owner = format!("query {}/{}", self.resource.name, sub.name);
        sub.query
            .iter()
            .map(|(name, format)| Parameter::query(name, *format, &owner, self.schemas))
            .collect()
    }

    fn path_parameters(&self, kind: &str, named: bool, namespaced: bool) -> Vec<Parameter> {
        let name = named.then(|| Parameter::path("name", &format!("name of the {kind}")));
        let namespace = namespaced.then(|| Parameter::path("namespace", "name of the namespace"));
        name.into_iter().chain(namespace).collect()
    }

    fn build(&mut self, plan: Plan<'_>) -> Operation {
        let built_in = self.resource.built_in;
        let mut parameters = self.path_parameters(plan.gvk.kind, plan.named, plan.namespaced);
        parameters.push(Parameter::common("pretty", self.schemas));
        parameters.extend(plan.query.iter().map(|name| match (plan.action, *name) {
            // It is required for apply, which is described there only.
            ("patch", "fieldManager") => Parameter::query(name, Format::String, "query patch", self.schemas),
            _ => Parameter::common(name, self.schemas),
        }));
        let watches = matches!(plan.action, "list" | "watch" | "watchlist");
        let media: &[&str] = match (built_in, watches) {
            (false, _) => &CUSTOM_MEDIA,
            (true, true) => &WATCH_MEDIA,
            (true, false) => &MEDIA,
        };
        let patch_media = if built_in {
            &PATCH_MEDIA[..]
        } else {
            &PATCH_MEDIA[..3]
        };
        let request = plan.body.map(|type_name| Request {
            media: match plan.action {
                "patch" => patch_media,
                _ if built_in => &["*/*"],
                _ => &CUSTOM_MEDIA,
            },
            type_name: need(self.roots, type_name),
            required: plan.method != "delete",
        });
        let schema = schema_ref(need(self.roots, plan.answer));
        let identity = Identity {
            id: plan.id,
            description: plan.description,
            tag: &self.names.tag,
            action: Some((plan.action, plan.gvk)),
        };
        let answers = Answers {
            codes: plan.codes,
            media,
            schema,
        };
        Operation {
            method: plan.method,
            parameters,
            body: operation(identity, request.as_ref(), &answers),
        }
    }
}
