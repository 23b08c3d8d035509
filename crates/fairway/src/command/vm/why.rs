//! `fairway vm why`: collects what `plan::why` judges, and shows the chain. What cannot be read is left out, and the chain says
//! that it is not known.

use std::process::ExitCode;

use fairway_machines_plan::why::{self, Facts, Link, State};
use futures::future::join_all;
use serde_json::{Value, json};

use super::session::{Located, Refused, Session};
use super::target::Kind;
use crate::cli::vm::show::Why;

/// How much of the console is read.
const TAIL: usize = 64 << 10;
/// Where images are published, for every workspace, in the root of all.
const IMAGES: &str = "fairway-images";

pub(super) async fn run(session: &Session, options: &Why) -> anyhow::Result<ExitCode> {
    let machine = session.target(&options.named.name)?;
    let facts = collect(session, &machine).await?;
    let links = why::chain(&facts);
    let text = why::text(&facts);
    options.output.print(&described(&facts, &links), text.trim_end());
    let is_broken = links.last().is_some_and(|it| it.state == State::Broken);
    Ok(match is_broken {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

async fn collect(session: &Session, machine: &Located) -> anyhow::Result<Facts> {
    let Located { namespace, name, .. } = machine;
    let core = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let (vm, vmi) = (machine.object(Kind::Machine), machine.object(Kind::Instance));
    let data_volumes = format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datavolumes");
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    let tail = machine.subresource(Kind::Instance, &format!("console/tail?bytes={TAIL}"));
    let lists = [
        data_volumes,
        core("persistentvolumeclaims"),
        core("services"),
        slices,
        core("events"),
        "/api/v1/nodes".to_owned(),
    ];
    let (vm, vmi, console, lists) = tokio::join!(
        session.get(&vm),
        session.get(&vmi),
        session.ask("GET", &tail, None),
        join_all(lists.iter().map(|path| session.list(path))),
    );
    let mut lists = lists.into_iter().map(Result::ok);
    let mut next = || lists.next().flatten();
    let mut facts = Facts {
        namespace: namespace.clone(),
        name: name.clone(),
        // Without these two there is nothing to judge.
        vm: there(vm)?,
        vmi: there(vmi)?,
        data_volumes: next(),
        claims: next(),
        services: next(),
        endpoint_slices: next(),
        events: next().unwrap_or_default(),
        // A workspace has no nodes of its own; those of the root are not for everybody to see.
        nodes: next().filter(|it| !it.is_empty()),
        data_sources: None,
        console: console.ok().map(|it| String::from_utf8_lossy(&it).into_owned()),
    };
    facts.data_sources = sources(session, facts.data_volumes.as_deref().unwrap_or_default()).await;
    Ok(facts)
}

/// What is there, or is known not to be.
fn there(found: Result<Value, Refused>) -> anyhow::Result<Option<Value>> {
    match found {
        Ok(object) => Ok(Some(object)),
        Err(refused) if refused.is_not_found() => Ok(None),
        Err(refused) => Err(refused.into()),
    }
}

/// The DataSources that DataVolumes name, as far as they exist; nothing if that cannot be known.
async fn sources(session: &Session, data_volumes: &[Value]) -> Option<Vec<Value>> {
    let mut found = Vec::new();
    for volume in data_volumes {
        let reference = &volume["spec"]["sourceRef"];
        let Some(name) = reference["name"].as_str() else {
            continue;
        };
        let own = volume["metadata"]["namespace"].as_str().unwrap_or_default();
        let namespace = reference["namespace"].as_str().unwrap_or(own);
        let path = format!("/apis/cdi.kubevirt.io/v1beta1/namespaces/{namespace}/datasources/{name}");
        let mut source = session.get(&path).await;
        if source.as_ref().is_err_and(Refused::is_not_found) && namespace == IMAGES {
            source = session.root().ok()?.get(&path).await;
        }
        match source {
            Ok(source) => found.push(source),
            Err(refused) if refused.is_not_found() => {}
            Err(_) => return None,
        }
    }
    Some(found)
}

/// The same for programs.
fn described(facts: &Facts, links: &[Link]) -> Value {
    let link = |it: &Link| {
        json!({
            "link": it.name, "state": it.state.word().to_lowercase(), "finding": it.finding,
            "evidence": it.evidence, "advice": it.advice,
        })
    };
    json!({
        "namespace": facts.namespace, "name": facts.name, "verdict": why::verdict(links),
        "links": links.iter().map(link).collect::<Vec<_>>(),
    })
}
