//! `apis.kcp.io/v1alpha1` as `v1alpha2`, and back, without loss.
//!
//! Objects are stored as `v1alpha2`. The older version names schemas in a list (`latestResourceSchemas`) and claims without
//! verbs (`all`, `resourceSelector`). What one version cannot say is kept in annotations, under kcp's names.

use serde_json::{Map, Value, json};

use crate::schema::split_name;

const SCHEMAS: &str = "apis.v1alpha2.kcp.io/resource-schemas";
const CLAIMS: &str = "apis.v1alpha2.kcp.io/permission-claims";
const OLD_CLAIMS: &str = "apis.v1alpha2.kcp.io/v1alpha1-permission-claims";
const ANSWERS: &str = "apis.v1alpha2.kcp.io/acceptable-permission-claims";
const OLD_ANSWERS: &str = "apis.v1alpha2.kcp.io/v1alpha1-acceptable-permission-claims";

/// Writes an APIExport or APIBinding of either version as `v1alpha2`.
pub fn to_v1alpha2(object: &mut Value) {
    if object.get("apiVersion") != Some(&json!("apis.kcp.io/v1alpha1")) {
        return;
    }
    match object.get("kind").and_then(Value::as_str) {
        Some("APIExport") => export_up(object),
        Some("APIBinding") => binding_up(object),
        // The other kinds of the group have one version.
        _ => return,
    }
    object["apiVersion"] = json!("apis.kcp.io/v1alpha2");
}

/// Writes an APIExport or APIBinding of either version as `v1alpha1`.
pub fn to_v1alpha1(object: &mut Value) {
    if object.get("apiVersion") != Some(&json!("apis.kcp.io/v1alpha2")) {
        return;
    }
    match object.get("kind").and_then(Value::as_str) {
        Some("APIExport") => export_down(object),
        Some("APIBinding") => binding_down(object),
        _ => return,
    }
    object["apiVersion"] = json!("apis.kcp.io/v1alpha1");
}

fn export_up(object: &mut Value) {
    let mut resources = take_list(object, "spec", "latestResourceSchemas")
        .iter()
        .filter_map(Value::as_str)
        .filter_map(|schema| {
            let (_, name, group) = split_name(schema)?;
            Some(json!({"name": name, "group": group, "schema": schema, "storage": {"crd": {}}}))
        })
        .collect::<Vec<_>>();
    resources.extend(take_annotation(object, SCHEMAS));
    let old = take_list(object, "spec", "permissionClaims");
    let kept = take_annotation(object, CLAIMS);
    let claims: Vec<Value> = old.iter().map(|claim| claim_up(claim, &kept)).collect();
    keep(
        object,
        OLD_CLAIMS,
        old.iter().filter(|it| !is_plain(it)).cloned().collect(),
    );
    put_list(object, "spec", "resources", resources);
    put_list(object, "spec", "permissionClaims", claims);
}

fn export_down(object: &mut Value) {
    let resources = take_list(object, "spec", "resources");
    let (plain, other): (Vec<_>, Vec<_>) = resources
        .into_iter()
        .partition(|it| it.pointer("/storage/virtual").is_none());
    let claims = take_list(object, "spec", "permissionClaims");
    let old = take_annotation(object, OLD_CLAIMS);
    let downs: Vec<Value> = claims.iter().map(|claim| claim_down(claim, &old)).collect();
    keep(object, SCHEMAS, other);
    keep(
        object,
        CLAIMS,
        claims.into_iter().filter(|it| !is_sayable(it)).collect(),
    );
    let schemas = plain.iter().filter_map(|it| it.get("schema").cloned()).collect();
    put_list(object, "spec", "latestResourceSchemas", schemas);
    put_list(object, "spec", "permissionClaims", downs);
}

fn binding_up(object: &mut Value) {
    let old = take_list(object, "spec", "permissionClaims");
    let kept = take_annotation(object, ANSWERS);
    let answers: Vec<Value> = old.iter().map(|answer| answer_up(answer, &kept)).collect();
    keep(
        object,
        OLD_ANSWERS,
        old.iter().filter(|it| !is_plain(it)).cloned().collect(),
    );
    put_list(object, "spec", "permissionClaims", answers);
    for field in ["appliedPermissionClaims", "exportPermissionClaims"] {
        let claims = take_list(object, "status", field);
        let claims = claims
            .iter()
            .map(|claim| {
                if field == "appliedPermissionClaims" {
                    answer_up(claim, &kept)
                } else {
                    claim_up(claim, &kept)
                }
            })
            .collect();
        put_list(object, "status", field, claims);
    }
}

fn binding_down(object: &mut Value) {
    let answers = take_list(object, "spec", "permissionClaims");
    let old = take_annotation(object, OLD_ANSWERS);
    let downs: Vec<Value> = answers.iter().map(|answer| claim_down(answer, &old)).collect();
    let sayable = |it: &Value| is_sayable(it) && it.pointer("/selector/matchAll") == Some(&json!(true));
    keep(
        object,
        ANSWERS,
        answers.into_iter().filter(|it| !sayable(it)).collect(),
    );
    put_list(object, "spec", "permissionClaims", downs);
    for field in ["appliedPermissionClaims", "exportPermissionClaims"] {
        let claims = take_list(object, "status", field);
        let claims = claims.iter().map(|claim| claim_down(claim, &old)).collect();
        put_list(object, "status", field, claims);
    }
}

/// Whether an older claim says nothing but what a newer one says with all verbs.
fn is_plain(old: &Value) -> bool {
    old.get("all") == Some(&json!(true)) && old.get("resourceSelector").is_none()
}

/// Whether the older version can say what a newer claim says.
fn is_sayable(claim: &Value) -> bool {
    claim.get("verbs") == Some(&json!(["*"])) && claim.get("defaultSelector").is_none()
}

fn same(a: &Value, b: &Value) -> bool {
    let field = |it: &Value, name: &str| {
        it.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    ["group", "resource", "identityHash"]
        .iter()
        .all(|name| field(a, name) == field(b, name))
}

fn claim_up(old: &Value, kept: &[Value]) -> Value {
    let mut claim = old.as_object().cloned().unwrap_or_default();
    claim.shift_remove("all");
    claim.shift_remove("resourceSelector");
    let verbs = kept
        .iter()
        .find(|it| same(it, old))
        .and_then(|it| it.get("verbs"));
    claim.insert("verbs".to_owned(), verbs.cloned().unwrap_or_else(|| json!(["*"])));
    if let Some(selector) = kept
        .iter()
        .find(|it| same(it, old))
        .and_then(|it| it.get("defaultSelector"))
    {
        claim.insert("defaultSelector".to_owned(), selector.clone());
    }
    Value::Object(claim)
}

fn answer_up(old: &Value, kept: &[Value]) -> Value {
    let mut answer = claim_up(old, kept);
    let selector = kept
        .iter()
        .find(|it| same(it, old))
        .and_then(|it| it.get("selector"));
    answer["selector"] = selector.cloned().unwrap_or_else(|| json!({"matchAll": true}));
    answer
}

fn claim_down(claim: &Value, old: &[Value]) -> Value {
    let mut down: Map<String, Value> = claim.as_object().cloned().unwrap_or_default();
    for field in ["verbs", "defaultSelector", "selector"] {
        down.shift_remove(field);
    }
    let before = old.iter().find(|it| same(it, claim));
    match before.and_then(|it| it.get("resourceSelector")) {
        Some(selector) => {
            down.insert("resourceSelector".to_owned(), selector.clone());
            if let Some(all) = before.and_then(|it| it.get("all")) {
                down.insert("all".to_owned(), all.clone());
            }
        }
        None => {
            down.insert("all".to_owned(), json!(true));
        }
    }
    Value::Object(down)
}

fn take_list(object: &mut Value, part: &str, field: &str) -> Vec<Value> {
    let taken = object
        .get_mut(part)
        .and_then(Value::as_object_mut)
        .and_then(|part| part.shift_remove(field));
    match taken {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn put_list(object: &mut Value, part: &str, field: &str, list: Vec<Value>) {
    if !list.is_empty() {
        object[part][field] = Value::Array(list);
    }
}

fn take_annotation(object: &mut Value, key: &str) -> Vec<Value> {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) else {
        return Vec::new();
    };
    let taken = annotations.shift_remove(key);
    if annotations.is_empty() {
        meta.shift_remove("annotations");
    }
    let text = taken.as_ref().and_then(Value::as_str).unwrap_or("[]");
    serde_json::from_str(text).unwrap_or_default()
}

fn keep(object: &mut Value, key: &str, list: Vec<Value>) {
    if !list.is_empty() {
        object["metadata"]["annotations"][key] = json!(Value::Array(list).to_string());
    }
}

#[cfg(test)]
mod tests;
