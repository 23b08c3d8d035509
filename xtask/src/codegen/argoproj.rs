//! The facts about Argo CD's kinds, out of the CustomResourceDefinitions of its Go module.
//!
//! Descriptions are left out: they are upstream's sentences.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fairway_api::definitions;
use serde_json::Value;

use super::crd_facts::{Writer, drop_descriptions};
use crate::upstream;

const FACTS: &str = "crates/api/data/argoproj.facts";
const FILES: [&str; 3] = ["application", "applicationset", "appproject"];

/// `cargo xtask codegen argoproj [--check]`.
pub(super) fn run(check: bool) -> Result<()> {
    let module = upstream::go_module(&format!("{}@{}", upstream::ARGO_CD_MODULE, upstream::ARGO_CD))?;
    let crds = read(&module)?;
    let mut table = Writer::default();
    for crd in &crds {
        table.kind(crd)?;
    }
    let text = format!(
        "# Facts about the kinds of Argo CD {}. Written by `cargo xtask codegen argoproj`; do not edit.\n{}{}",
        upstream::ARGO_CD,
        table.kinds,
        table.types
    );
    let file = upstream::root().join(FACTS);
    let lines = text.lines().count();
    if check {
        if fs::read_to_string(&file).unwrap_or_default() != text {
            bail!("the facts about Argo CD's kinds are out of date: run `cargo xtask codegen argoproj`");
        }
        // What is built into this program is what was just compared.
        confirm(&crds)?;
        println!("up to date: {lines} lines of facts about Argo CD's kinds");
    } else {
        fs::write(&file, text)?;
        println!("written: {lines} lines of facts about Argo CD's kinds");
    }
    Ok(())
}

fn read(module: &Path) -> Result<Vec<Value>> {
    let read = |name: &&str| {
        let path = module.join(format!("manifests/crds/{name}-crd.yaml"));
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut crd = fairway_text_yaml::from_str(&text, fairway_text_yaml::Limits::default())
            .with_context(|| format!("parsing {}", path.display()))?;
        for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
            drop_descriptions(&mut version["schema"]["openAPIV3Schema"]);
        }
        Ok(crd)
    };
    FILES.iter().map(read).collect()
}

/// The definitions say what upstream's do.
fn confirm(crds: &[Value]) -> Result<()> {
    for crd in crds {
        let name = &crd["metadata"]["name"];
        let known = definitions().into_iter().map(|it| it.crd());
        let mut known = known
            .into_iter()
            .find(|it| it["metadata"]["name"] == *name)
            .with_context(|| format!("{name} is not among the definitions"))?;
        let ours = &mut known["spec"]["versions"][0];
        drop_descriptions(&mut ours["schema"]["openAPIV3Schema"]);
        let theirs = &crd["spec"]["versions"][0];
        for field in ["schema", "additionalPrinterColumns", "name", "served", "storage"] {
            if ours.get(field) != theirs.get(field) {
                bail!("{field} of {name} is not what upstream's definition says");
            }
        }
        let has_status = |version: &Value| version["subresources"].get("status").is_some();
        if has_status(ours) != has_status(theirs) || known["spec"]["names"] != crd["spec"]["names"] {
            bail!("names or subresources of {name} are not what upstream's definition says");
        }
    }
    Ok(())
}
