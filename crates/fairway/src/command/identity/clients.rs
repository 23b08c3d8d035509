//! `fairway oidc-client`.

use std::process::ExitCode;

use anyhow::bail;
use fairway_api::identity::{CREDENTIAL, OIDC_CLIENT};
use fairway_portal_realm::{Client, secret};
use serde_json::json;

use super::{Realm, random, table, told};
use crate::cli::identity::{OidcClientCommand, OidcClientCreate, UserList};

fn credential(client: &str) -> String {
    format!("client.{client}")
}

pub(super) async fn run(command: &OidcClientCommand) -> anyhow::Result<ExitCode> {
    match command {
        OidcClientCommand::List(options) => list(options).await?,
        OidcClientCommand::Create(options) => create(options).await?,
        OidcClientCommand::NewSecret(options) => {
            let realm = Realm::of(&options.at).await?;
            let client = realm.get(OIDC_CLIENT, &options.name).await?;
            if client["spec"]["public"] == true {
                bail!("{} is public: it has no secret", options.name);
            }
            new_secret(&realm, &options.name).await?;
        }
        OidcClientCommand::Delete(options) => {
            let realm = Realm::of(&options.at).await?;
            realm.delete(OIDC_CLIENT, &options.name).await?;
            let path = Realm::path(CREDENTIAL, &credential(&options.name));
            realm.requests.delete(&path).await.map_err(told)?;
            realm.end_sessions("client", &options.name).await?;
            println!("OIDC client {:?} deleted from {}.", options.name, realm.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(options: &UserList) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    let found = realm.list(OIDC_CLIENT).await?;
    let mut rows = vec![
        ["NAME", "KIND", "ACCESS", "REDIRECT URIS"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for object in &found {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let client = Client::read(name, object);
        let access = [(client.api_access, "api"), (client.device_flow, "device")];
        let access: Vec<&str> = access
            .iter()
            .filter(|(may, _)| *may)
            .map(|(_, what)| *what)
            .collect();
        rows.push(vec![
            name.to_owned(),
            if client.public { "public" } else { "with a secret" }.to_owned(),
            access.join(","),
            client.redirect_uris.join(" "),
        ]);
    }
    options.output.print(&json!(found), &table(&rows));
    Ok(())
}

async fn create(options: &OidcClientCreate) -> anyhow::Result<()> {
    let realm = Realm::of(&options.at).await?;
    if Client::is_built_in(&options.name) {
        bail!(
            "{:?} is a client of Fairway's own; choose another name",
            options.name
        );
    }
    let spec = json!({
        "displayName": options.display_name.as_deref().unwrap_or(&options.name), "public": options.public,
        "redirectURIs": options.redirect_uris, "postLogoutRedirectURIs": options.post_logout_redirect_uris,
        "apiAccess": options.api_access, "deviceFlow": options.device_flow,
    });
    let client = Client::read(&options.name, &json!({"spec": spec}));
    if let Some(wrong) = options
        .redirect_uris
        .iter()
        .find(|uri| !client.may_redirect_to(uri))
    {
        bail!("{wrong:?} is not an address that a browser can be sent to: a whole URI without a fragment");
    }
    realm.create(OIDC_CLIENT, &options.name, &spec).await?;
    println!("OIDC client {:?} created in {}.", options.name, realm.name);
    match options.public {
        true => Ok(()),
        false => new_secret(&realm, &options.name).await,
    }
}

async fn new_secret(realm: &Realm, client: &str) -> anyhow::Result<()> {
    let chosen = secret::text(&random()?);
    let spec = json!({"secretDigest": secret::digest(&chosen)});
    realm.set_credential(&credential(client), &spec).await?;
    println!("Secret: {chosen}   (shown this once)");
    Ok(())
}
