//! `fairway backup`: create, restore, inspect.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use fairway_kernel_backup::FORMAT;
use serde_json::json;

use super::running::Running;
use crate::backup::create::{self, Keys, Source};
use crate::backup::restore::{SealedObjects, Target};
use crate::backup::{self, Checked, keys};
use crate::cli::backup::{Backup, BackupCommand, Create, Inspect, Restore};
use crate::data_dir::DataDir;

const NOT_IN_IT: &str = "Settings (config.yaml), logs and disks of virtual machines are not in it.";

/// Does what was typed.
pub(crate) fn run(options: &Backup) -> anyhow::Result<ExitCode> {
    match &options.command {
        BackupCommand::Create(options) => create(options),
        BackupCommand::Restore(options) => restore(options),
        BackupCommand::Inspect(options) => inspect(options),
    }
    .map(|()| ExitCode::SUCCESS)
}

fn create(options: &Create) -> anyhow::Result<()> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    backup::refuse_unfinished(&data)?;
    let path = std::path::absolute(&options.file)
        .with_context(|| format!("{} is not a usable path", options.file.display()))?;
    let keys = match &options.passphrase_file {
        None => None,
        Some(file) => Some(Keys {
            passphrase: keys::passphrase(file)?,
            files: keys::read(data.path())?,
        }),
    };
    let source = match Running::find(&data)? {
        Some(_) => Source::Running,
        None => Source::Stopped,
    };
    let (header, totals, repositories) = create::create(&data, &source, &path, keys.as_ref())?;
    println!(
        "{} holds revision {}: {} keys and {repositories} Git repositories.",
        path.display(),
        header.revision,
        totals.entries
    );
    if totals.leased > 0 {
        println!(
            "{} keys that live only while their lease is renewed are not in it.",
            totals.leased
        );
    }
    match keys {
        Some(_) => {
            println!("The installation's keys and certificates are in it, wrapped by your passphrase.");
        }
        None => println!(
            "The installation's keys and certificates are NOT in it: {} encrypted objects (Secrets) can be read only beside \
             the keys in {}, and a restored server has new certificates. Use --passphrase-file to include them.",
            totals.sealed,
            data.path().display()
        ),
    }
    println!("{NOT_IN_IT}");
    Ok(())
}

fn restore(options: &Restore) -> anyhow::Result<()> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    if let Some(running) = Running::find(&data)? {
        bail!(
            "Fairway is running on {} (process {}); a restore makes a new data directory, name one with --data DIR",
            data.path().display(),
            running.pid
        );
    }
    // All of it is read before anything is written: a damaged backup or a wrong passphrase leaves no trace.
    let checked = backup::check(&options.file)?;
    let sealed = sealed_objects(options, &checked)?;
    let restored = Target::claim(&data)?.fill(&options.file, &sealed)?;
    println!(
        "{} holds {} keys and {} Git repositories as of revision {} ({}).",
        data.path().display(),
        restored.entries,
        restored.repositories,
        checked.header.revision,
        checked.header.created
    );
    println!(
        "Revisions go on from {}: clients that remember older ones are told to list again.",
        restored.revision
    );
    match sealed {
        SealedObjects::Open(_) => {
            println!("Keys and certificates are those of the old installation; kubeconfigs stay valid.");
        }
        SealedObjects::Drop => println!(
            "{} encrypted objects (Secrets) were left out. New keys and certificates are made at the next start: take the new \
             kubeconfig, and expect old tokens to be refused.",
            restored.dropped
        ),
    }
    println!(
        "{NOT_IN_IT}\nStart it with: fairway up --data {}",
        data.path().display()
    );
    Ok(())
}

fn sealed_objects(options: &Restore, checked: &Checked) -> anyhow::Result<SealedObjects> {
    let file = options.file.display();
    if options.drop_sealed {
        return Ok(SealedObjects::Drop);
    }
    if let Some(directory) = &options.keys_from {
        return keys::read(directory).map(SealedObjects::Open);
    }
    match (&checked.keys, &options.passphrase_file) {
        (Some(keys), Some(passphrase)) => {
            let files = keys
                .open(&keys::passphrase(passphrase)?)
                .with_context(|| format!("{file} cannot be used"))?;
            Ok(SealedObjects::Open(files))
        }
        (Some(_), None) => bail!(
            "the keys in {file} are wrapped by a passphrase; give it with --passphrase-file FILE (or restore without keys and \
             Secrets: --drop-sealed)"
        ),
        (None, Some(_)) => bail!(
            "there are no keys in {file}, so there is nothing to open with a passphrase; use --keys-from DIR or --drop-sealed"
        ),
        (None, None) if checked.totals.sealed == 0 => Ok(SealedObjects::Drop),
        (None, None) => bail!(
            "there are no keys in {file}, and {} of its objects (Secrets) are encrypted; name the data directory that has the \
             keys with --keys-from DIR, or leave those objects out with --drop-sealed",
            checked.totals.sealed
        ),
    }
}

fn inspect(options: &Inspect) -> anyhow::Result<()> {
    let Checked {
        header,
        totals,
        keys,
        repositories,
        bytes,
    } = backup::check(&options.file)?;
    let objects: u64 = totals.kinds.values().sum();
    let value = json!({
        "file": options.file.display().to_string(), "bytes": bytes, "format": FORMAT, "fairway": header.fairway,
        "revision": header.revision, "created": header.created, "keysIncluded": keys.is_some(),
        "entries": totals.entries, "encrypted": totals.sealed, "leftOut": totals.leased, "objects": objects,
        "repositories": repositories, "repositoryBytes": totals.file_bytes,
        "kinds": totals.kinds,
    });
    options.output.print(&value, &describe(&options.file, &value));
    Ok(())
}

fn describe(file: &Path, value: &serde_json::Value) -> String {
    let mut text = format!("{} is whole.\n", file.display());
    for (name, field) in [
        ("format", "format"),
        ("made by Fairway", "fairway"),
        ("made at", "created"),
        ("revision", "revision"),
        ("bytes", "bytes"),
        ("objects", "objects"),
        ("encrypted objects", "encrypted"),
        ("Git repositories", "repositories"),
    ] {
        let shown = value[field]
            .as_str()
            .map_or_else(|| value[field].to_string(), str::to_owned);
        text.push_str(&format!("  {name:<18} {shown}\n"));
    }
    let keys = if value["keysIncluded"] == true {
        "inside, wrapped by a passphrase"
    } else {
        "not inside"
    };
    text.push_str(&format!("  {:<18} {keys}\n\n", "keys"));
    for (kind, count) in value["kinds"].as_object().into_iter().flatten() {
        text.push_str(&format!("  {:>8}  {kind}\n", count.to_string()));
    }
    text.trim_end().to_owned()
}
