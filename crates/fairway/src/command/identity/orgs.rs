//! `fairway org`: organisations are workspaces right below the root, of the type `organization`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fairway_api::identity::{GROUP_KIND, USER};
use fairway_controller::Requests;
use fairway_kernel_tenancy::WorkspacePath;
use serde_json::{Value, json};

use super::{InOrg, Realm, checked, reach, table, told};
use crate::cli::identity::{OrgCommand, OrgDelete, OrgList, OrgNamed, OrgShow};
use crate::cli::workspace::Where;
use crate::command::running::Running;
use crate::data_dir::DataDir;

/// How long an organisation may take to be ready.
const READY: Duration = Duration::from_secs(60);
/// How long its end may take.
const GONE: Duration = Duration::from_secs(300);
const INTERVAL: Duration = Duration::from_millis(100);
const WORKSPACES: &str = "/apis/tenancy.kcp.io/v1alpha1/workspaces";

pub(super) async fn run(command: &OrgCommand) -> anyhow::Result<ExitCode> {
    match command {
        OrgCommand::List(options) => list(options).await?,
        OrgCommand::Create(options) => create(options).await?,
        OrgCommand::Show(options) => show(options).await?,
        OrgCommand::Delete(options) => delete(options).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn root(place: &Where) -> anyhow::Result<Requests> {
    let root = WorkspacePath::parse("root").context("the root workspace has a name")?;
    Ok(Requests::new(reach(place, Some(&root)).await?.1))
}

fn is_organization(workspace: &Value) -> bool {
    workspace
        .pointer("/spec/type/name")
        .is_some_and(|it| it == "organization")
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

async fn list(options: &OrgList) -> anyhow::Result<()> {
    let all = root(&options.place).await?.list(WORKSPACES).await.map_err(told)?;
    let found: Vec<&Value> = all.iter().filter(|it| is_organization(it)).collect();
    let mut rows = vec![["NAME", "WORKSPACE", "PHASE"].map(str::to_owned).to_vec()];
    for it in &found {
        let name = text(it, "/metadata/name");
        rows.push(vec![
            name.to_owned(),
            format!("root:{name}"),
            text(it, "/status/phase").to_owned(),
        ]);
    }
    let value: Vec<Value> = found
        .iter()
        .map(|it| {
            let name = text(it, "/metadata/name");
            json!({"name": name, "workspace": format!("root:{name}"), "phase": text(it, "/status/phase")})
        })
        .collect();
    options.output.print(&json!(value), &table(&rows));
    Ok(())
}

async fn create(options: &OrgNamed) -> anyhow::Result<()> {
    let name = checked(&options.name)?;
    if name == "root" {
        bail!("root is the realm of the platform's administrators; choose another name");
    }
    let requests = root(&options.place).await?;
    let object = json!({
        "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"type": {"name": "organization", "path": "root"}},
    });
    if !requests.create(WORKSPACES, &object).await.map_err(told)? {
        bail!("there is a workspace root:{name} already");
    }
    let begun = Instant::now();
    let path = format!("{WORKSPACES}/{name}");
    loop {
        let now = requests.get(&path).await.map_err(told)?.unwrap_or_default();
        if text(&now, "/status/phase") == "Ready" {
            break;
        }
        if begun.elapsed() > READY {
            bail!(
                "the organisation {name:?} is not ready after {} seconds; look at kubectl get workspace {name} -o yaml",
                READY.as_secs()
            );
        }
        tokio::time::sleep(INTERVAL).await;
    }
    println!(
        "Organisation {name:?} created: workspace root:{name}.\nNext:\n  fairway user create NAME --org {name}\n  fairway login \
         --org {name}"
    );
    Ok(())
}

async fn show(options: &OrgShow) -> anyhow::Result<()> {
    let name = checked(&options.name)?;
    let at = InOrg {
        org: Some(name.clone()),
        place: options.place.clone(),
    };
    let realm = Realm::of(&at).await?;
    let (users, groups) = (realm.list(USER).await?, realm.list(GROUP_KIND).await?);
    let data = DataDir::find(options.place.data.dir.as_deref())?;
    let sign_in = Running::find(&data)?.and_then(|it| it.sign_in());
    let issuer = sign_in.map(|base| format!("{base}/realms/{name}"));
    let active = users
        .iter()
        .filter(|user| user["spec"]["disabled"] != true)
        .count();
    let workspace = fairway_api::identity::workspace_of_realm(&name);
    let value = json!({
        "name": name, "workspace": workspace, "issuer": issuer, "users": users.len(), "activeUsers": active,
        "groups": groups.len(),
    });
    let shown = format!(
        "Organisation   {name}\nWorkspace      {workspace}\nIssuer         {}\nUsers          {} ({active} active)\nGroups         {}",
        issuer.as_deref().unwrap_or("not known here"),
        users.len(),
        groups.len()
    );
    options.output.print(&value, &shown);
    Ok(())
}

async fn delete(options: &OrgDelete) -> anyhow::Result<()> {
    let name = checked(&options.name)?;
    let requests = root(&options.place).await?;
    let path = format!("{WORKSPACES}/{name}");
    let found = requests.get(&path).await.map_err(told)?;
    let found = found
        .filter(is_organization)
        .with_context(|| format!("there is no organisation {name:?}"))?;
    if !options.yes {
        bail!(
            "everything in root:{name} would be deleted, its people, machines and repositories included; if you mean it, add --yes"
        );
    }
    requests.delete_read(&path, &found).await.map_err(told)?;
    let (begun, uid) = (Instant::now(), text(&found, "/metadata/uid").to_owned());
    while requests
        .get(&path)
        .await
        .map_err(told)?
        .is_some_and(|it| text(&it, "/metadata/uid") == uid)
    {
        if begun.elapsed() > GONE {
            bail!(
                "the organisation {name:?} is being deleted, but not gone after {} seconds",
                GONE.as_secs()
            );
        }
        tokio::time::sleep(INTERVAL).await;
    }
    println!("Organisation {name:?} deleted.");
    Ok(())
}
