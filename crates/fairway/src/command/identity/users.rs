//! `fairway user`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fairway_api::identity::{GROUP_KIND, REALM, USER};
use fairway_portal_realm::{Settings, password, totp};
use serde_json::{Value, json};

use super::{Realm, groups, password_from_stdin, random, table, told};
use crate::cli::identity::{SetPassword, UserCommand, UserCreate, UserList, UserNamed};

/// How long the server may take to clear away what was a user's.
const CLEARED: Duration = Duration::from_secs(30);

pub(super) async fn run(command: &UserCommand) -> anyhow::Result<ExitCode> {
    match command {
        UserCommand::List(options) => list(options).await?,
        UserCommand::Create(options) => create(options).await?,
        UserCommand::Delete(options) => delete(options).await?,
        UserCommand::Disable(options) => set_disabled(options, true).await?,
        UserCommand::Enable(options) => set_disabled(options, false).await?,
        UserCommand::SetPassword(options) => set_password(options).await?,
        UserCommand::EnableTotp(options) => enable_totp(options).await?,
        UserCommand::DisableTotp(options) => {
            let realm = Realm::of(&options.at).await?;
            realm.get(USER, &options.name).await?;
            let none = json!({"totpSeed": null, "totpLastStep": null});
            realm.set_credential(&credential(&options.name), &none).await?;
            println!("{}/{} signs in without one-time codes.", realm.name, options.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn credential(user: &str) -> String {
    format!("user.{user}")
}

async fn list(options: &UserList) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    let (users, groups) = (realm.list(USER).await?, realm.list(GROUP_KIND).await?);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut rows = vec![
        ["NAME", "DISPLAY NAME", "EMAIL", "STATE", "GROUPS", "LAST SIGN-IN"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut all = Vec::new();
    for user in &users {
        let name = text(&user["metadata"]["name"]);
        let of = groups::of_user(&groups, &name);
        let is_disabled = user["spec"]["disabled"] == true;
        rows.push(vec![
            name.clone(),
            text(&user["spec"]["displayName"]),
            text(&user["spec"]["email"]),
            if is_disabled { "disabled" } else { "active" }.to_owned(),
            of.join(","),
            text(&user["status"]["lastSignIn"]),
        ]);
        all.push(json!({
            "name": name, "username": format!("{}/{name}", realm.name), "displayName": user["spec"]["displayName"],
            "email": user["spec"]["email"], "disabled": is_disabled, "groups": of,
            "lastSignIn": user["status"]["lastSignIn"],
        }));
    }
    options.output.print(&json!(all), &table(&rows));
    Ok(())
}

async fn create(options: &UserCreate) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    let (chosen, is_made) = choose(&realm, &options.name, options.password_stdin).await?;
    // Before anything is made: a group that is not there is a mistake.
    for group in &options.groups {
        realm.get(GROUP_KIND, group).await?;
    }
    let mut spec = json!({});
    if let Some(name) = &options.display_name {
        spec["displayName"] = json!(name);
    }
    if let Some(email) = &options.email {
        spec["email"] = json!(email);
    }
    realm.create(USER, &options.name, &spec).await?;
    keep(&realm, &options.name, &chosen).await?;
    for group in &options.groups {
        groups::change(&realm, group, std::slice::from_ref(&options.name), true).await?;
    }
    println!("User {}/{} created.", realm.name, options.name);
    if is_made {
        println!("Password: {chosen}   (shown this once)");
    }
    Ok(())
}

/// A password that fits the realm: typed, or made.
async fn choose(realm: &Realm, user: &str, from_stdin: bool) -> anyhow::Result<(String, bool)> {
    if !from_stdin {
        return Ok((password::generate(&random()?), true));
    }
    let settings = realm
        .requests
        .get(&Realm::path(REALM, "realm"))
        .await
        .map_err(told)?;
    let settings = settings.as_ref().map(Settings::read).unwrap_or_default();
    let typed = password_from_stdin()?;
    password::judge(&typed, user, settings.password_min).context("this password is not taken")?;
    Ok((typed, false))
}

async fn keep(realm: &Realm, user: &str, chosen: &str) -> anyhow::Result<()> {
    let hash = fairway_portal_identity::password::hash(chosen)?;
    realm
        .set_credential(&credential(user), &json!({"passwordHash": hash}))
        .await
}

async fn set_password(options: &SetPassword) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    realm.get(USER, &options.name).await?;
    let (chosen, is_made) = choose(&realm, &options.name, options.password_stdin).await?;
    keep(&realm, &options.name, &chosen).await?;
    // Whoever knew the old one may be signed in somewhere.
    realm.end_sessions("user", &options.name).await?;
    println!(
        "The password of {}/{} is set; all sessions were ended.",
        realm.name, options.name
    );
    if is_made {
        println!("Password: {chosen}   (shown this once)");
    }
    Ok(())
}

/// Deletes a user. The server clears away what was his; until that is done the name is not free.
async fn delete(options: &UserNamed) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    realm.delete(USER, &options.name).await?;
    let path = Realm::path(USER, &options.name);
    let begun = Instant::now();
    while realm.requests.get(&path).await.map_err(told)?.is_some() {
        if begun.elapsed() > CLEARED {
            bail!(
                "{}/{} is out, but something of his is still there after {} seconds; the server's log says why",
                realm.name,
                options.name,
                CLEARED.as_secs()
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("User {}/{} deleted.", realm.name, options.name);
    Ok(())
}

async fn set_disabled(options: &UserNamed, disabled: bool) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    realm
        .change(USER, &options.name, &json!({"disabled": disabled}))
        .await?;
    if disabled {
        realm.end_sessions("user", &options.name).await?;
    }
    let done = if disabled {
        "disabled; all sessions were ended"
    } else {
        "enabled"
    };
    println!("User {}/{} {done}.", realm.name, options.name);
    Ok(())
}

async fn enable_totp(options: &UserNamed) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    realm.get(USER, &options.name).await?;
    let seed = totp::encode(&random::<{ totp::SEED }>()?);
    let spec = json!({"totpSeed": seed, "totpLastStep": null});
    realm.set_credential(&credential(&options.name), &spec).await?;
    println!(
        "{}/{} now signs in with a one-time code. Tell an authenticator app (shown this once):",
        realm.name, options.name
    );
    println!("{}", totp::uri(&realm.name, &options.name, &seed));
    Ok(())
}
