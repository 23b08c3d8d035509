//! What the expressions of admission policies and webhooks may refer to. Whoever validates them and whoever evaluates them
//! must see the same.

use std::sync::{Arc, OnceLock};

use fairway_text_cel::{DeclType, Env, Program, Type};
use serde_json::{Value, json};

/// Which variables an expression sees beside the request and its objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sight {
    /// `params`, in a policy with a kind of parameters.
    pub params: bool,
    /// `authorizer`, everywhere but in messages.
    pub authorizer: bool,
}

/// An environment without the policy's own variables.
pub fn environment(sight: Sight) -> Env {
    let mut env = Env::new()
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("request", request_type())
        .with_schema_variable("namespaceObject", namespace_type());
    if sight.params {
        env = env.with_variable("params", Type::Dyn);
    }
    if sight.authorizer {
        env = env
            .with_variable("authorizer", Type::authorizer())
            .with_variable("authorizer.requestResource", Type::resource_check());
    }
    env
}

/// The name under which expressions see a variable of the policy.
pub fn variable_name(name: &str) -> String {
    format!("variables.{name}")
}

/// Compiles an expression whose result must be of one of these types; none: any will do.
pub fn compile(env: &Env, source: &str, results: &[Type]) -> Result<Program, String> {
    let program = env.compile(source).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("compilation failed: {}", texts.join("\n"))
    })?;
    if results.is_empty() || results.contains(program.result_type()) {
        return Ok(program);
    }
    let got = program.result_type().declared();
    let names: Vec<String> = results.iter().map(Type::declared).collect();
    Err(match names.as_slice() {
        [one] => format!("must evaluate to {one} but got {got}"),
        several => format!("must evaluate to one of [{}] but got {got}", several.join(" ")),
    })
}

fn request_type() -> Type {
    let object = |name: &str, fields: &[(&str, Type)]| {
        Type::object(
            name,
            fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())),
        )
    };
    let texts = |name: &str, names: &[&str]| {
        Type::object(name, names.iter().map(|name| ((*name).to_owned(), Type::String)))
    };
    let kind = texts("kubernetes.GroupVersionKind", &["group", "version", "kind"]);
    let resource = texts(
        "kubernetes.GroupVersionResource",
        &["group", "version", "resource"],
    );
    let user = object(
        "kubernetes.UserInfo",
        &[
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", Type::list(Type::String)),
            ("extra", Type::map(Type::String, Type::list(Type::String))),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

/// What expressions see of the request's namespace.
pub fn namespace_type() -> &'static Arc<DeclType> {
    static TYPE: OnceLock<Arc<DeclType>> = OnceLock::new();
    TYPE.get_or_init(|| {
        let text = json!({"type": "string"});
        let time = json!({"type": "string", "format": "date-time"});
        let texts = json!({"type": "array", "items": {"type": "string"}});
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let number = json!({"type": "integer"});
        let object = |fields: Value| json!({"type": "object", "properties": fields});
        let schema = object(json!({
            "metadata": object(json!({
                "name": text, "generateName": text, "namespace": text, "uid": text, "resourceVersion": text,
                "labels": map, "annotations": map, "finalizers": texts, "generation": number,
                "creationTimestamp": time, "deletionTimestamp": time, "deletionGracePeriodSeconds": number,
            })),
            "spec": object(json!({"finalizers": texts})),
            "status": object(json!({"phase": text})),
        }));
        // The schema above has a type everywhere, so it is visible.
        DeclType::from_json_schema(&schema, false).unwrap_or_else(|| unreachable!("the schema has types"))
    })
}
