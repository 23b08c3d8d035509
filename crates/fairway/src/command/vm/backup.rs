//! `fairway vm backup`: the disks of a machine that runs, into files here.
//!
//! The directory says itself what it holds (`backup.json`), so the next backup into it copies only what has changed. A backup is in the
//! directory as a whole or not at all: files come first, then the line about them, and only then the machine forgets what it knew
//! for them.

mod index;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};

use super::session::{Located, Refused, Session, judged};
use super::target::Kind;
use crate::cli::vm::storage::Backup;
use index::{Checkpoint, Index, Kept};

/// How often it is looked whether a copy is whole.
const LOOK: Duration = Duration::from_millis(500);
/// How often a transfer that broke off goes on.
const ATTEMPTS: u32 = 10;

pub(super) async fn run(session: &Session, options: &Backup) -> anyhow::Result<()> {
    let machine = session.target(&options.named.name)?;
    let whose = format!("{}/{}", machine.namespace, machine.name);
    let directory = &options.to;
    fs::create_dir_all(directory).with_context(|| format!("{} cannot be made", directory.display()))?;
    let mut index = Index::read(directory)?;
    index.claim(&whose).map_err(anyhow::Error::msg)?;
    if !options.full {
        let is_there = |file: &str| directory.join(file).exists();
        index.check(is_there).map_err(anyhow::Error::msg)?;
    }
    let checkpoint = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let order = index.order(&checkpoint, options.full);
    let since = order["since"].as_str().map(str::to_owned);
    let path = machine.subresource(Kind::Instance, "backup");
    let told = session.ask("PUT", &path, Some(&order)).await;
    let told = told.map_err(|refused| anyhow!("{whose} cannot be backed up: {refused}"))?;
    let told: Value = serde_json::from_slice(&told).context("the server's answer is not JSON")?;
    if told["frozen"] != true {
        println!(
            "The guest's agent did not answer: the backup is what the disks would be after a loss of power."
        );
    }
    let taken = take(session, &machine, &path, directory, &checkpoint, &told, &index).await;
    let taken = match taken {
        Ok(taken) => taken,
        Err(error) => {
            // What nobody has is not what the next one can begin from.
            let _ = session
                .ask("PUT", &format!("{path}/end"), Some(&json!({"keep": false})))
                .await;
            return Err(error.context(format!(
                "the backup of {whose} failed, and is not in {}",
                directory.display()
            )));
        }
    };
    index.checkpoints.push(taken);
    index.write(directory)?;
    let end = json!({"keep": true, "forget": since});
    if let Err(refused) = session.ask("PUT", &format!("{path}/end"), Some(&end)).await {
        println!(
            "The backup is whole, but its node keeps what it needed for it until the next one: {refused}"
        );
    }
    println!("{whose} is backed up to {} as {checkpoint}.", directory.display());
    Ok(())
}

/// Brings the files here.
async fn take(
    session: &Session,
    machine: &Located,
    path: &str,
    directory: &Path,
    checkpoint: &str,
    begun: &Value,
    index: &Index,
) -> anyhow::Result<Checkpoint> {
    let status = loop {
        let status = session.get(path).await.map_err(|refused| anyhow!("{refused}"))?;
        if status["checkpoint"] != checkpoint {
            bail!("somebody else has begun another backup of {}", machine.name);
        }
        if status["done"] == true {
            break status;
        }
        tokio::time::sleep(LOOK).await;
    };
    let mut taken = Checkpoint {
        name: checkpoint.to_owned(),
        ..Checkpoint::default()
    };
    for disk in begun["disks"].as_array().into_iter().flatten() {
        let name = disk["name"].as_str().unwrap_or_default();
        let found = status["disks"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|it| it["name"] == name);
        let bytes = found.and_then(|it| it["bytes"].as_u64());
        let bytes = bytes.with_context(|| format!("the server says nothing of the disk {name}"))?;
        let file = index::file_name(name, checkpoint);
        fetch(
            session,
            &format!("{path}/disks/{name}"),
            &directory.join(&file),
            bytes,
        )
        .await?;
        let behind = disk["since"].as_str().and_then(|_| index.last_file(name));
        match (behind, disk["why"].as_str().unwrap_or_default()) {
            (Some(behind), _) => println!("{name}: {bytes} bytes of changes over {behind}"),
            (None, "") => println!("{name}: everything, {bytes} bytes"),
            (None, why) => println!("{name}: everything, {bytes} bytes: {why}"),
        }
        let kept = Kept {
            file,
            behind: behind.map(str::to_owned),
            size: disk["size"].as_u64().unwrap_or_default(),
        };
        taken.disks.insert(name.to_owned(), kept);
    }
    Ok(taken)
}

/// Fetches a file of a known length, and goes on where it was interrupted.
async fn fetch(session: &Session, path: &str, to: &Path, bytes: u64) -> anyhow::Result<()> {
    let draft = to.with_extension("part");
    let mut file = File::create(&draft).with_context(|| format!("{} cannot be made", draft.display()))?;
    let mut have = 0_u64;
    let mut attempt = 0;
    while have < bytes {
        attempt += 1;
        let before = have;
        let broken = match piece(
            session,
            &format!("{path}?offset={have}"),
            &mut file,
            &mut have,
            bytes,
        )
        .await
        {
            Ok(()) if have < bytes => anyhow!("{have} of {bytes} bytes arrived"),
            Ok(()) => break,
            Err(error) => error,
        };
        if have > before {
            attempt = 0;
        }
        if attempt >= ATTEMPTS {
            let _ = fs::remove_file(&draft);
            return Err(broken.context(format!("{} could not be fetched", to.display())));
        }
        tokio::time::sleep(LOOK).await;
    }
    file.sync_all()
        .and_then(|()| fs::rename(&draft, to))
        .with_context(|| format!("{} cannot be written", to.display()))
}

async fn piece(
    session: &Session,
    path: &str,
    file: &mut File,
    have: &mut u64,
    bytes: u64,
) -> anyhow::Result<()> {
    let request = Request::get(path).body(Body::empty())?;
    let response = session.send(request).await?;
    if !response.status().is_success() {
        let code = response.status().as_u16();
        let said = judged(response).await;
        bail!(said.err().unwrap_or_else(|| Refused::of(code, b"")));
    }
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| anyhow!("the connection broke off: {error}"))?;
        let Ok(data) = frame.into_data() else { continue };
        if *have + data.len() as u64 > bytes {
            bail!("the server sends more than the {bytes} bytes that it announced");
        }
        file.write_all(&data)
            .context("the disk of this host may be full")?;
        *have += data.len() as u64;
    }
    Ok(())
}
