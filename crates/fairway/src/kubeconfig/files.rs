//! The user's kubeconfig on disk: one file, or several that are read as one, as kubectl does it.
//!
//! Nothing is lost: a file is written whole or not at all, keeps its mode and its place behind a symbolic link, is locked
//! against kubectl meanwhile, and is written only where an entry of it has changed.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fairway_text_yaml::Limits;
use serde_json::{Value, json};

use super::contexts::{entry, set_entry};
use crate::data_dir::{read_if_there, write_whole};

/// How long somebody else may hold the lock.
const PATIENCE: Duration = Duration::from_secs(5);

const SECTIONS: [&str; 3] = ["clusters", "users", "contexts"];

/// The files of a kubeconfig.
pub(crate) struct Files {
    all: Vec<(PathBuf, Value)>,
    merged: Value,
}

/// Which files make up the kubeconfig: what was asked for, `$KUBECONFIG`, `~/.kube/config`, or the installation's own.
pub(crate) fn find(asked: Option<&Path>, own: PathBuf) -> Vec<PathBuf> {
    if let Some(path) = asked {
        return vec![path.to_owned()];
    }
    if let Some(list) = std::env::var_os("KUBECONFIG") {
        let paths: Vec<PathBuf> = std::env::split_paths(&list)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        if !paths.is_empty() {
            return paths;
        }
    }
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    match home {
        Some(path) if path.exists() => vec![path],
        _ => vec![own],
    }
}

impl Files {
    /// Reads them. Those that do not exist are empty, unless none does.
    pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        let mut found = false;
        for path in paths {
            let content = read_if_there(path)?;
            found |= content.is_some();
            all.push((path.clone(), parse(path, content.as_deref())?));
        }
        if !found {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            bail!(
                "there is no kubeconfig at {}; `fairway kubeconfig --merge FILE` makes one for a Fairway on this machine",
                names.join(", ")
            );
        }
        let merged = merged(&all);
        Ok(Self { all, merged })
    }

    /// What the files say together. References to other files are absolute where there are several.
    pub(crate) fn merged(&self) -> &Value {
        &self.merged
    }

    /// The same for a client, with every reference to another file absolute.
    pub(crate) fn for_client(&self) -> Value {
        match &self.all[..] {
            [(path, config)] => {
                let mut config = config.clone();
                make_absolute(&mut config, path);
                config
            }
            _ => self.merged.clone(),
        }
    }

    /// Changes the whole, and writes the files that this touches. They are read again under the lock, so that a change by
    /// somebody else in between is not undone.
    pub(crate) fn change<T>(
        paths: &[PathBuf],
        edit: impl FnOnce(&mut Value) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut locks = Vec::new();
        for path in paths {
            locks.push(Lock::take(path)?);
        }
        let mut files = Self::read(paths)?;
        let mut after = files.merged.clone();
        let result = edit(&mut after)?;
        for index in distribute(&mut files.all, &files.merged, &after) {
            let (path, config) = &files.all[index];
            write_keeping_mode(path, fairway_text_yaml::to_string(config).as_bytes())?;
        }
        Ok(result)
    }
}

fn parse(path: &Path, content: Option<&[u8]>) -> anyhow::Result<Value> {
    let Some(content) = content else {
        return Ok(Value::Null);
    };
    let config = fairway_text_yaml::from_slice(content, Limits::default()).with_context(|| {
        format!(
            "{} is not a kubeconfig that can be read, so it was left alone",
            path.display()
        )
    })?;
    if !config.is_null() && !config.is_object() {
        bail!("{} is not a kubeconfig, so it was left alone", path.display());
    }
    Ok(config)
}

/// Several files as one: of each name the first entry counts, and the first current context.
fn merged(all: &[(PathBuf, Value)]) -> Value {
    if let [(_, config)] = all {
        return if config.is_null() {
            json!({"apiVersion": "v1", "kind": "Config"})
        } else {
            config.clone()
        };
    }
    let mut whole = json!({"apiVersion": "v1", "kind": "Config"});
    for (path, config) in all {
        let mut config = config.clone();
        make_absolute(&mut config, path);
        for section in SECTIONS {
            for item in config[section].as_array().into_iter().flatten() {
                let name = item["name"].as_str().unwrap_or_default();
                if entry(&whole, section, name).is_none() {
                    push(&mut whole, section, item.clone());
                }
            }
        }
        if text(&whole, "current-context").is_empty() && !text(&config, "current-context").is_empty() {
            whole["current-context"] = config["current-context"].clone();
        }
    }
    whole
}

fn text<'a>(config: &'a Value, key: &str) -> &'a str {
    config[key].as_str().unwrap_or_default()
}

fn push(config: &mut Value, section: &str, item: Value) {
    match config[section].as_array_mut() {
        Some(items) => items.push(item),
        None => config[section] = json!([item]),
    }
}

/// Puts what has changed into the files where it was, and what is new into the one of the current context. Returns which
/// files have changed.
fn distribute(all: &mut [(PathBuf, Value)], before: &Value, after: &Value) -> Vec<usize> {
    let home = all
        .iter()
        .position(|(_, config)| !text(config, "current-context").is_empty())
        .or_else(|| all.iter().position(|(_, config)| !config.is_null()))
        .unwrap_or(0);
    let mut touched = std::collections::BTreeSet::new();
    for section in SECTIONS {
        for item in after[section].as_array().into_iter().flatten() {
            let name = text(item, "name");
            let body = entry(after, section, name);
            let (Some(body), false) = (body, entry(before, section, name) == body) else {
                continue;
            };
            let place = all
                .iter()
                .position(|(_, config)| entry(config, section, name).is_some())
                .unwrap_or(home);
            set_entry(&mut all[place].1, section, name, body.clone());
            touched.insert(place);
        }
    }
    if after["current-context"] != before["current-context"] {
        all[home].1["current-context"] = after["current-context"].clone();
        touched.insert(home);
    }
    for place in &touched {
        if all[*place].1["apiVersion"].is_null() {
            all[*place].1["apiVersion"] = json!("v1");
            all[*place].1["kind"] = json!("Config");
        }
    }
    touched.into_iter().collect()
}

/// References to files are relative to the kubeconfig that has them.
fn make_absolute(config: &mut Value, path: &Path) {
    let directory = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let directory = directory.parent().map(Path::to_owned).unwrap_or_default();
    for (section, body, keys) in [
        ("clusters", "cluster", &["certificate-authority"][..]),
        (
            "users",
            "user",
            &["client-certificate", "client-key", "tokenFile"][..],
        ),
    ] {
        let items = config.get_mut(section).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            for key in keys {
                if let Some(reference) = item.get_mut(body).and_then(|body| body.get_mut(key))
                    && let Some(relative) = reference.as_str().filter(|text| !text.is_empty())
                {
                    *reference = json!(directory.join(relative).to_string_lossy());
                }
            }
        }
    }
}

/// The lock that kubectl takes while it changes a kubeconfig: a file beside it.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> anyhow::Result<Option<Self>> {
        // Where there is no directory there is no file to protect.
        if !path
            .parent()
            .is_none_or(|directory| directory.as_os_str().is_empty() || directory.exists())
        {
            return Ok(None);
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let begun = Instant::now();
        loop {
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&lock)
            {
                Ok(_) => return Ok(Some(Self(lock))),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if begun.elapsed() > PATIENCE {
                        bail!(
                            "{} is being changed by somebody else; if that is not so, remove {}",
                            path.display(),
                            lock.display()
                        );
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("{} could not be locked", path.display()));
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a file whole or not at all, where it really lies and with the mode that it has.
fn write_keeping_mode(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let attempt = || -> std::io::Result<()> {
        let real = match fs::canonicalize(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            other => other?,
        };
        let mode = match fs::metadata(&real) {
            Ok(metadata) => metadata.permissions().mode() & 0o7777,
            Err(error) if error.kind() == ErrorKind::NotFound => 0o600,
            Err(error) => return Err(error),
        };
        write_whole(&real, content, mode)
    };
    attempt().with_context(|| format!("{} could not be written and is as it was", path.display()))
}

#[cfg(test)]
mod tests;
