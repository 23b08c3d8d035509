//! The facts about what publishes services: Gateway API's kinds and OpenShift's Route, out of their Go modules.
//!
//! Gateway API's kinds are those of its experimental channel, which has every field of the standard one: what is served in
//! a field is then told in a condition, and nothing that upstream accepts is lost.

use std::fs;

use anyhow::{Context, Result, bail};
use fairway_api::gateway_definitions;
use serde_json::{Value, json};

use super::crd_facts::Writer;
use super::machines::{cleaned, sum, yaml};
use crate::upstream::{self, GATEWAY_API, OPENSHIFT_API};

/// Kinds of Gateway API; UDPRoute is not among them, because no listener speaks UDP.
const KINDS: [&str; 8] = [
    "gatewayclasses",
    "gateways",
    "httproutes",
    "grpcroutes",
    "tlsroutes",
    "tcproutes",
    "referencegrants",
    "backendtlspolicies",
];

/// `cargo xtask codegen gateway [--check]`.
pub(super) fn run(check: bool) -> Result<()> {
    let mut lines = 0;
    for (file, module, kinds) in [
        ("gateway_api", GATEWAY_API, gateway_api()?),
        ("openshift_route", OPENSHIFT_API, vec![route()?]),
    ] {
        let mut table = Writer::default();
        for crd in &kinds {
            table.reserve(crd["spec"]["names"]["kind"].as_str().unwrap_or_default());
        }
        for crd in &kinds {
            table.kind(crd)?;
        }
        let body = format!("{}{}", table.kinds, table.types);
        let text = format!(
            "# Facts about the kinds of {module}. Written by `cargo xtask codegen gateway`; do not edit. sum={:016x}\n{body}",
            sum(&body)
        );
        lines += text.lines().count();
        let path = upstream::root().join(format!("crates/api/data/{file}.facts"));
        if !check {
            fs::write(&path, text)?;
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            bail!("the facts about {module} are out of date: run `cargo xtask codegen gateway`");
        } else {
            // What is built into this program is what was just compared.
            kinds.iter().try_for_each(confirm)?;
        }
    }
    let done = if check { "up to date" } else { "written" };
    println!("{done}: {lines} lines of facts about the kinds of gateways");
    Ok(())
}

fn gateway_api() -> Result<Vec<Value>> {
    let module = upstream::go_module(GATEWAY_API)?;
    let mut found = Vec::new();
    for plural in KINDS {
        let file = format!("config/crd/experimental/gateway.networking.k8s.io_{plural}.yaml");
        let mut crd = cleaned(yaml(&fs::read_to_string(module.join(file))?)?);
        let mut versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
        versions.sort_by_key(|it| it["storage"] != true);
        if plural == "tlsroutes" {
            // The older version asks for less. Objects of both are stored in one form, so the wider one holds.
            let wider = versions.iter().find(|it| it["name"] == "v1alpha2");
            let schema = wider.context("TLSRoute has a version v1alpha2")?["schema"].clone();
            versions.iter_mut().for_each(|it| it["schema"] = schema.clone());
        }
        crd["spec"]["versions"] = json!(versions);
        found.push(crd);
    }
    Ok(found)
}

fn route() -> Result<Value> {
    let file = "route/v1/zz_generated.crd-manifests/routes-Default.crd.yaml";
    let text = fs::read_to_string(upstream::go_module(OPENSHIFT_API)?.join(file))?;
    let mut crd = cleaned(yaml(&text)?);
    either(&mut crd);
    columns(&mut crd);
    Ok(crd)
}

/// Upstream's column is of a field that does not exist, and so always empty; OpenShift's own server shows the termination.
fn columns(crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array_mut();
    for version in versions.into_iter().flatten() {
        let columns = version["additionalPrinterColumns"].as_array_mut();
        let of_tls = columns
            .into_iter()
            .flatten()
            .filter(|it| it["jsonPath"] == ".spec.tls.type");
        of_tls.for_each(|it| it["jsonPath"] = json!(".spec.tls.termination"));
    }
}

/// Writes what is a number or a text as everybody else does.
fn either(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
                let either = json!([{"type": "integer"}, {"type": "string"}]);
                fields.insert("anyOf".to_owned(), either);
            }
            fields.values_mut().for_each(either);
        }
        Value::Array(items) => items.iter_mut().for_each(either),
        _ => {}
    }
}

/// The definitions say what upstream's do.
fn confirm(crd: &Value) -> Result<()> {
    let name = &crd["metadata"]["name"];
    let mut known = gateway_definitions().into_iter().map(|it| cleaned(it.crd()));
    let known = known
        .find(|it| it["metadata"]["name"] == *name)
        .with_context(|| format!("{name} is not among the definitions"))?;
    let theirs = crd["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, theirs) in theirs.iter().enumerate() {
        let ours = &known["spec"]["versions"][at];
        for field in ["schema", "additionalPrinterColumns", "name", "subresources"] {
            let is_of_stored = matches!(field, "additionalPrinterColumns" | "subresources");
            let theirs = theirs.get(field).filter(|it| **it != json!({}));
            if ours.get(field) != theirs && !(is_of_stored && at > 0) {
                bail!("{field} of {name} is not what upstream's definition says");
            }
        }
    }
    for field in ["names", "scope", "group"] {
        if known["spec"][field] != crd["spec"][field] {
            bail!("{field} of {name} is not what upstream's definition says");
        }
    }
    Ok(())
}
