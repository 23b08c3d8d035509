//! A machine as it would be without instancetype and preference: what they give it is in it.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use fairway_text_yaml as yaml;
use serde_json::Value;

use super::session::{Refused, Session};
use super::target::Kind;
use crate::cli::vm::show::Expand;

/// The most of a file that is read: no manifest of a machine is larger than an object may be.
const MOST: u64 = 3 << 20;

pub(super) async fn run(session: &Session, options: &Expand) -> anyhow::Result<()> {
    let is_json = match options.output.as_str() {
        "yaml" => false,
        "json" => true,
        other => return Err(anyhow!("error not supported output format defined: {other}")),
    };
    let expanded = match (&options.name, &options.file) {
        (Some(name), _) => by_name(session, name).await?,
        (None, Some(file)) => given(session, file).await?,
        (None, None) => {
            return Err(anyhow!(
                "error invalid arguments - VirtualMachine name or file must be provided"
            ));
        }
    };
    match is_json {
        true => println!("{expanded:#}"),
        false => print!("{}", yaml::to_string(&expanded)),
    }
    Ok(())
}

/// One that the server has.
async fn by_name(session: &Session, name: &str) -> anyhow::Result<Value> {
    let machine = session.target(name)?;
    let told = session
        .get(&machine.subresource(Kind::Machine, "expand-spec"))
        .await;
    told.map_err(|error| failed(&machine.name, &machine.namespace, &error))
}

/// One that a file has; it need not be on the server, and is judged as one of the namespace that is meant.
async fn given(session: &Session, file: &Path) -> anyhow::Result<Value> {
    let text = read(file).map_err(|error| anyhow!("error reading file {error:#}"))?;
    let machine = yaml::from_slice(&text, yaml::Limits::default())
        .map_err(|error| anyhow!("error decoding VirtualMachine {error}"))?;
    if !machine.is_object() {
        return Err(anyhow!(
            "error decoding VirtualMachine {} has no object in it",
            file.display()
        ));
    }
    let name = machine["metadata"]["name"].as_str().unwrap_or_default();
    let namespace = session.namespace();
    let path = format!("/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/expand-vm-spec");
    let told = session.ask("PUT", &path, Some(&machine)).await;
    let told = told.map_err(|error| failed(name, namespace, &error))?;
    serde_json::from_slice(&told).context("the server's answer is not JSON")
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    match file == Path::new("-") {
        true => std::io::stdin().take(MOST).read_to_end(&mut text)?,
        false => {
            let opened = std::fs::File::open(file);
            let opened = opened.map_err(|error| anyhow!("open {}: {}", file.display(), cause(&error)))?;
            opened.take(MOST).read_to_end(&mut text)?
        }
    };
    Ok(text)
}

/// What Go says of a file that cannot be opened.
fn cause(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn failed(name: &str, namespace: &str, error: &Refused) -> anyhow::Error {
    anyhow!("error expanding VirtualMachine - {name} in namespace - {namespace}: {error}")
}
