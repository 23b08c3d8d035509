//! `fairway keys`: list, rotate, prune.
//!
//! While a server runs, it does the work: this writes the key file, and the server says in `keys/rotation.json` how far it
//! is. While none runs, this opens the store and does the work itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use fairway_kernel_apiserver::authn::token::PublicKey;
use fairway_kernel_apiserver::chance::{Clock, rfc3339};
use fairway_kernel_store::value::{KeyRing, key_file, reseal};
use fairway_kernel_store::{EmbeddedStore, Options, Store};
use serde_json::json;

use super::running::Running;
use crate::cli::keys::{KeyKind, Keys, KeysCommand, Prune, Rotate};
use crate::data_dir::DataDir;
use crate::server::keys::{OBJECTS, RotationStatus, left};
use crate::signing_keys;

/// Carries out the command.
pub(crate) fn run(options: &Keys) -> anyhow::Result<ExitCode> {
    match &options.command {
        None => list(options),
        Some(KeysCommand::Rotate(rotate)) => self::rotate(
            &find(rotate.data.dir.as_deref().or(options.data.dir.as_deref()))?,
            rotate,
        ),
        Some(KeysCommand::Prune(Prune { data })) => {
            prune(&find(data.dir.as_deref().or(options.data.dir.as_deref()))?)
        }
    }
}

fn find(dir: Option<&std::path::Path>) -> anyhow::Result<DataDir> {
    let data = DataDir::find(dir)?;
    if !data.encryption_keys().exists() {
        bail!(
            "there are no keys in {}; they are made when the server is first started (fairway up)",
            data.path().display()
        );
    }
    Ok(data)
}

/// How far a rotation is; `None`: the server that runs has not said it yet.
fn status(data: &DataDir) -> anyhow::Result<Option<RotationStatus>> {
    if let Some(running) = Running::find(data)? {
        let current = current(data)?;
        let said = RotationStatus::read(data)?;
        return Ok(said.filter(|s| s.pid == running.pid && s.current == current));
    }
    let entries = key_file::list(&data.encryption_keys())?;
    let current = entries.iter().find(|e| e.current).map_or(0, |e| e.id);
    let mut status = RotationStatus {
        current: format!("{current:08x}"),
        ..RotationStatus::default()
    };
    if entries.len() > 1 && data.store().exists() {
        let survey = with_store(data, async |store| Ok(reseal::survey(store, OBJECTS).await?))?;
        status.left = left(&survey, current);
        status.in_history = true;
    }
    Ok(Some(status))
}

fn current(data: &DataDir) -> anyhow::Result<String> {
    let entries = key_file::list(&data.encryption_keys())?;
    let current = entries.iter().find(|entry| entry.current);
    Ok(current.map_or_else(String::new, |entry| format!("{:08x}", entry.id)))
}

/// Opens the store of a server that does not run.
fn with_store<T>(
    data: &DataDir,
    work: impl AsyncFnOnce(&dyn Store) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")?;
    runtime.block_on(async {
        let store = EmbeddedStore::open(&data.store(), &Options::default())
            .with_context(|| format!("the state in {} could not be opened", data.store().display()))?;
        let result = work(&store).await;
        store.close().await.context("the store could not be closed")?;
        result
    })
}

fn list(options: &Keys) -> anyhow::Result<ExitCode> {
    let data = find(options.data.dir.as_deref())?;
    let status = status(&data)?;
    let now = Clock.unix();
    let mut rows = Vec::new();
    for entry in key_file::list(&data.encryption_keys())? {
        let id = format!("{:08x}", entry.id);
        let created = entry
            .created
            .and_then(|time| i64::try_from(time).ok())
            .map_or_else(|| "-".to_owned(), rfc3339);
        let (state, values) = match &status {
            _ if entry.current => ("encrypts", None),
            None => ("unknown", None),
            Some(status) => match status.left.get(&id).copied().unwrap_or(0) {
                0 if status.in_history => ("in history", Some(0)),
                0 => ("unused", Some(0)),
                values => ("decrypts", Some(values)),
            },
        };
        rows.push(("encryption", id, created, state, values, None));
    }
    let signing = PublicKey::of(&signing_keys::load_or_create(&data)?).map_err(|e| anyhow!(e))?;
    let made = std::fs::metadata(data.token_key())
        .and_then(|m| m.modified())
        .ok();
    let made = made.and_then(|m| m.duration_since(std::time::UNIX_EPOCH).ok());
    let made = made.and_then(|m| i64::try_from(m.as_secs()).ok());
    let made = made.map_or_else(|| "-".to_owned(), rfc3339);
    let signing_id = signing.id.clone();
    rows.push(("service-account", signing.id, made, "signs", None, None));
    for retired in signing_keys::retired(&data)? {
        let id = retired.key()?.id;
        if id != signing_id {
            let state = if retired.until > now { "verifies" } else { "unused" };
            let until = Some(rfc3339(retired.until));
            rows.push(("service-account", id, "-".to_owned(), state, None, until));
        }
    }
    let mut text = format!(
        "{:<16} {:<44} {:<21} {:<11} {:>7}  {}",
        "KIND", "ID", "CREATED", "STATE", "VALUES", "UNTIL"
    );
    let mut items = Vec::new();
    for (kind, id, created, state, values, until) in &rows {
        let count = values.map_or_else(|| "-".to_owned(), |n: u64| n.to_string());
        let shown = until.as_deref().unwrap_or("-");
        let _ = write!(
            text,
            "\n{kind:<16} {id:<44} {created:<21} {state:<11} {count:>7}  {shown}"
        );
        items.push(json!({
            "kind": kind, "id": id, "created": created, "state": state, "values": values, "until": until,
        }));
    }
    options.output.print(&json!({"keys": items}), &text);
    Ok(ExitCode::SUCCESS)
}

fn rotate(data: &DataDir, options: &Rotate) -> anyhow::Result<ExitCode> {
    if options.only != Some(KeyKind::Encryption) {
        signing_keys::rotate(data, Clock.unix())?;
        println!(
            "A new key signs service-account tokens. Tokens of the old one stay valid until they expire."
        );
    }
    if options.only == Some(KeyKind::ServiceAccount) {
        return Ok(ExitCode::SUCCESS);
    }
    let id = key_file::rotate(&data.encryption_keys())?;
    println!("Key {id:08x} encrypts from now on.");
    if Running::find(data)?.is_none() {
        if data.store().exists() {
            let keys = KeyRing::load_or_create(&data.encryption_keys())?;
            let done = with_store(data, async |store| {
                Ok(reseal::reseal(store, &keys, OBJECTS).await?)
            })?;
            println!("{done} values were encrypted again. Drop the old key with: fairway keys prune");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let give_up = Instant::now() + Duration::from_secs(options.timeout);
    loop {
        match status(data)? {
            Some(status) if status.left.is_empty() => {
                println!(
                    "Every value is encrypted with it. History needs the old key for some minutes more; then drop it \
                     with: fairway keys prune"
                );
                return Ok(ExitCode::SUCCESS);
            }
            Some(_) if !options.wait => {
                println!("The server is encrypting the values again; `fairway keys` shows how far it is.");
                return Ok(ExitCode::SUCCESS);
            }
            _ if Instant::now() > give_up => bail!(
                "the server has not finished after {} s; `fairway keys` shows how far it is, its log says what holds it up",
                options.timeout
            ),
            _ => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn prune(data: &DataDir) -> anyhow::Result<ExitCode> {
    let signing = signing_keys::prune(data, Clock.unix())?;
    let entries = key_file::list(&data.encryption_keys())?;
    let old: Vec<u32> = entries.iter().filter(|e| !e.current).map(|e| e.id).collect();
    if !old.is_empty() {
        let refuse = |left: &BTreeMap<String, u64>| {
            let values: u64 = left.values().sum();
            anyhow!(
                "{values} values still need an old key; wait for the server, or run `fairway keys rotate` again"
            )
        };
        if Running::find(data)?.is_some() {
            match status(data)? {
                None => bail!("the server has not looked at its values yet; try again in a moment"),
                Some(status) if !status.left.is_empty() => return Err(refuse(&status.left)),
                Some(status) if status.in_history => {
                    bail!("history may still need an old key; try again in some minutes")
                }
                Some(_) => {}
            }
        } else if data.store().exists() {
            let keys = KeyRing::load_or_create(&data.encryption_keys())?;
            let survey = with_store(data, async |store| {
                // A rotation that was broken off is finished first. Clients that come back read everything again.
                reseal::reseal(store, &keys, OBJECTS).await?;
                store.compact(store.revision().await?).await?;
                Ok(reseal::survey(store, OBJECTS).await?)
            })?;
            let left = left(&survey, keys.current());
            if !left.is_empty() {
                return Err(refuse(&left));
            }
        }
        key_file::remove(&data.encryption_keys(), &old)?;
    }
    println!(
        "{} encryption keys and {signing} signing keys were dropped.",
        old.len()
    );
    Ok(ExitCode::SUCCESS)
}
