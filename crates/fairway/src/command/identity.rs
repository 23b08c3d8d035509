//! `fairway user`, `group`, `org` and `oidc-client`. People, groups and programs are objects, so this is the API and nothing else;
//! passwords are hashed here, so that the server never sees one that somebody sets.

mod clients;
mod groups;
mod orgs;
mod users;

use std::io::BufRead as _;
use std::process::ExitCode;

use anyhow::{Context, bail};
use fairway_api::identity::workspace_of_realm;
use fairway_api::{Kind, identity};
use fairway_controller::{Failure, Requests};
use fairway_kernel_tenancy::WorkspacePath;
use serde_json::{Value, json};

use super::workspace::reach;
use crate::cli::identity::{Group, InOrg, OidcClient, Org, User};

pub(super) fn run_async<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = super::runtime()?;
    runtime.block_on(work)
}

/// `fairway user`.
pub(crate) fn user(options: &User) -> anyhow::Result<ExitCode> {
    run_async(users::run(&options.command))
}

/// `fairway group`.
pub(crate) fn group(options: &Group) -> anyhow::Result<ExitCode> {
    run_async(groups::run(&options.command))
}

/// `fairway org`.
pub(crate) fn org(options: &Org) -> anyhow::Result<ExitCode> {
    run_async(orgs::run(&options.command))
}

/// `fairway oidc-client`.
pub(crate) fn oidc_client(options: &OidcClient) -> anyhow::Result<ExitCode> {
    run_async(clients::run(&options.command))
}

/// The realm of an organisation, and the way to its objects.
struct Realm {
    name: String,
    requests: Requests,
}

impl Realm {
    async fn of(at: &InOrg) -> anyhow::Result<Self> {
        let path = match &at.org {
            Some(name) => Some(
                WorkspacePath::parse(&workspace_of_realm(name))
                    .with_context(|| format!("{name:?} cannot be the name of an organisation"))?,
            ),
            None => None,
        };
        let (path, client) = reach(&at.place, path.as_ref()).await?;
        let mut steps = path.as_str().split(':');
        let name = match (steps.next(), steps.next(), steps.next()) {
            (Some("root"), None, None) => "root",
            (Some("root"), Some(name), None) => name,
            _ => bail!(
                "{path} is not the workspace of an organisation, so it has no users; name one with --org, such as --org {}",
                path.as_str().split(':').nth(1).unwrap_or("root")
            ),
        };
        Ok(Self {
            name: name.to_owned(),
            requests: Requests::new(client),
        })
    }

    fn collection(kind: Kind) -> String {
        format!("/apis/{}/{}", kind.api_version(), kind.plural)
    }

    fn path(kind: Kind, name: &str) -> String {
        format!("{}/{name}", Self::collection(kind))
    }

    async fn list(&self, kind: Kind) -> anyhow::Result<Vec<Value>> {
        self.requests.list(&Self::collection(kind)).await.map_err(told)
    }

    async fn get(&self, kind: Kind, name: &str) -> anyhow::Result<Value> {
        let found = self
            .requests
            .get(&Self::path(kind, &checked(name)?))
            .await
            .map_err(told)?;
        found.with_context(|| {
            format!(
                "there is no {} {name:?} in the organisation {}",
                kind.kind, self.name
            )
        })
    }

    async fn create(&self, kind: Kind, name: &str, spec: &Value) -> anyhow::Result<()> {
        let object = json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": checked(name)?}, "spec": spec,
        });
        match self
            .requests
            .create(&Self::collection(kind), &object)
            .await
            .map_err(told)?
        {
            true => Ok(()),
            false => bail!(
                "the {} {name:?} exists already in the organisation {}",
                kind.kind,
                self.name
            ),
        }
    }

    /// Changes an object that must be there.
    async fn change(&self, kind: Kind, name: &str, spec: &Value) -> anyhow::Result<()> {
        let patch = json!({"spec": spec});
        let found = self
            .requests
            .merge(&Self::path(kind, &checked(name)?), &patch)
            .await
            .map_err(told)?;
        found.map(drop).with_context(|| {
            format!(
                "there is no {} {name:?} in the organisation {}",
                kind.kind, self.name
            )
        })
    }

    async fn delete(&self, kind: Kind, name: &str) -> anyhow::Result<()> {
        self.get(kind, name).await?;
        self.requests.delete(&Self::path(kind, name)).await.map_err(told)
    }

    /// Sets parts of a Credential, which may not be there yet.
    async fn set_credential(&self, name: &str, spec: &Value) -> anyhow::Result<()> {
        let kind = identity::CREDENTIAL;
        let patch = json!({"spec": spec});
        let found = self
            .requests
            .merge(&Self::path(kind, name), &patch)
            .await
            .map_err(told)?;
        match found {
            Some(_) => Ok(()),
            None => self.create(kind, name, spec).await,
        }
    }

    /// Ends the sessions of a user, or all that a program has.
    async fn end_sessions(&self, field: &str, name: &str) -> anyhow::Result<()> {
        for session in self.list(identity::SESSION).await? {
            if session["spec"][field] == name
                && let Some(session) = session["metadata"]["name"].as_str()
            {
                let path = Self::path(identity::SESSION, session);
                self.requests.delete(&path).await.map_err(told)?;
            }
        }
        Ok(())
    }
}

/// A failure in the server's own words.
#[expect(
    clippy::needless_pass_by_value,
    reason = "it is handed to `map_err`, which gives the failure away"
)]
fn told(failure: Failure) -> anyhow::Error {
    anyhow::anyhow!("{}", failure.sentence())
}

fn checked(name: &str) -> anyhow::Result<String> {
    match fairway_portal_realm::client::is_name(name) {
        true => Ok(name.to_owned()),
        false => bail!(
            "{name:?} is not a name: lower-case letters, digits, dashes and single dots, beginning and ending with a letter \
             or digit"
        ),
    }
}

/// The first line of standard input.
pub(super) fn password_from_stdin() -> anyhow::Result<String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .context("the password could not be read from standard input")?;
    let password = line.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        bail!("standard input has no password in its first line");
    }
    Ok(password.to_owned())
}

/// Random bytes.
fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0; N];
    ring::rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| anyhow::anyhow!("the operating system gives no random numbers"))?;
    Ok(bytes)
}

/// Columns as kubectl aligns them.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let lines = rows.iter().map(|row| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
