//! `fairway group`.

use std::process::ExitCode;

use anyhow::bail;
use fairway_api::identity::{EVERYONE, GROUP_KIND, USER};
use fairway_controller::requests::version;
use serde_json::{Value, json};

use super::{Realm, table, told};
use crate::cli::identity::{GroupCommand, GroupMembers, GroupNamed, UserList};

/// How often a write is tried again because somebody else was quicker.
const ATTEMPTS: usize = 10;

pub(super) async fn run(command: &GroupCommand) -> anyhow::Result<ExitCode> {
    match command {
        GroupCommand::List(options) => list(options).await?,
        GroupCommand::Create(options) => create(options).await?,
        GroupCommand::Delete(options) => {
            let realm = Realm::of(&options.at).await?;
            realm.delete(GROUP_KIND, &options.name).await?;
            println!("Group {}/{} deleted.", realm.name, options.name);
        }
        GroupCommand::Add(options) => members(options, true).await?,
        GroupCommand::Remove(options) => members(options, false).await?,
    }
    Ok(ExitCode::SUCCESS)
}

fn members_of(group: &Value) -> Vec<String> {
    let members = group["spec"]["members"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    members
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The groups that a user is in.
pub(super) fn of_user(groups: &[Value], user: &str) -> Vec<String> {
    let of = groups
        .iter()
        .filter(|group| members_of(group).iter().any(|it| it == user));
    of.filter_map(|group| group["metadata"]["name"].as_str())
        .map(str::to_owned)
        .collect()
}

async fn list(options: &UserList) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    let mut rows = vec![["NAME", "FOR RBAC", "MEMBERS"].map(str::to_owned).to_vec()];
    let mut all = Vec::new();
    for group in realm.list(GROUP_KIND).await? {
        let name = group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let (members, rbac) = (members_of(&group), format!("{}/{name}", realm.name));
        all.push(json!({"name": name, "rbac": rbac, "members": members}));
        rows.push(vec![name, rbac, members.join(",")]);
    }
    options.output.print(&json!(all), &table(&rows));
    Ok(())
}

async fn create(options: &GroupNamed) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    if options.name == EVERYONE {
        bail!(
            "everybody is in the group {}/{EVERYONE} already; choose another name",
            realm.name
        );
    }
    realm
        .create(GROUP_KIND, &options.name, &json!({"members": []}))
        .await?;
    println!(
        "Group {}/{} created. Bind it in any workspace of the organisation, such as:\n  kubectl create clusterrolebinding NAME \
         --clusterrole=view --group={}/{}",
        realm.name, options.name, realm.name, options.name
    );
    Ok(())
}

async fn members(options: &GroupMembers, join: bool) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    if join {
        for user in &options.users {
            realm.get(USER, user).await?;
        }
    }
    change(&realm, &options.name, &options.users, join).await?;
    let (users, group) = (
        options.users.join(", "),
        format!("{}/{}", realm.name, options.name),
    );
    match join {
        true => println!("{users} joined {group}."),
        false => println!("{users} left {group}."),
    }
    Ok(())
}

/// Adds users to a group, or takes them out.
pub(super) async fn change(realm: &Realm, name: &str, users: &[String], join: bool) -> anyhow::Result<()> {
    for _ in 0..ATTEMPTS {
        let group = realm.get(GROUP_KIND, name).await?;
        let mut members = members_of(&group);
        members.retain(|member| !users.contains(member));
        if join {
            members.extend(users.iter().cloned());
        }
        members.sort_unstable();
        members.dedup();
        let patch = json!({"metadata": {"resourceVersion": version(&group)}, "spec": {"members": members}});
        match realm.requests.merge(&Realm::path(GROUP_KIND, name), &patch).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => bail!("the group {name:?} is gone"),
            Err(failure) if failure.is_conflict() => {}
            Err(failure) => return Err(told(failure)),
        }
    }
    bail!("the group {name:?} changes too often; try again")
}
