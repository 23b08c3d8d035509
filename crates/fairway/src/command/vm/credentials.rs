//! `fairway vm credentials`: keys and passwords that go into a guest by its agent, through the Secrets that the machine names.

use std::io::Read as _;

use anyhow::{Context as _, anyhow, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::kubevirt::VIRTUAL_MACHINE;
use serde_json::{Map, Value, json};

use super::session::{Located, Session};
use super::target::Kind;
use crate::cli::vm::credentials::{
    AddSshKey, Credentials, CredentialsCommand, Key, RemoveSshKey, SetPassword, Whose,
};

/// How often a Secret that somebody else has changed meanwhile is read again.
const ATTEMPTS: usize = 5;

pub(super) async fn run(session: &Session, options: &Credentials) -> anyhow::Result<()> {
    match &options.command {
        CredentialsCommand::AddSshKey(it) => add(session, it).await,
        CredentialsCommand::RemoveSshKey(it) => remove(session, it).await,
        CredentialsCommand::SetPassword(it) => set_password(session, it).await,
    }
}

async fn add(session: &Session, options: &AddSshKey) -> anyhow::Result<()> {
    let key = read(&options.key)?;
    let whose = &options.whose;
    let (machine, vm) = machine(session, whose).await?;
    let named = key_secrets(&vm, &whose.user);
    if options.creates || (named.is_empty() && !options.updates) {
        return add_secret(session, &machine, &vm, whose, &key).await;
    }
    ensure!(!named.is_empty(), "no secrets specified for user: {}", whose.user);
    let name = chosen(whose.secret.as_deref(), &named)?;
    for _ in 0..ATTEMPTS {
        let secret = secret(session, &machine, name).await?;
        if content(&secret).values().any(|it| has(it, &key)) {
            println!("Secret \"{name}\" already contains this SSH key.");
            return Ok(());
        }
        owned(&secret, &vm, whose.is_forced)?;
        let free = (0..).map(|it| format!("ssh-key-{it}"));
        let mut free = free.filter(|it| secret["data"][it].is_null());
        let entry = free.next().unwrap_or_default();
        if change(session, &machine, &secret, json!({entry: STANDARD.encode(&key)})).await? {
            println!("Successfully added the key to secret \"{name}\"");
            return Ok(());
        }
    }
    bail!("error patching secret \"{name}\": others change it all the time; try again")
}

/// A Secret of the machine's own, and its name in the machine.
async fn add_secret(
    session: &Session,
    machine: &Located,
    vm: &Value,
    whose: &Whose,
    key: &str,
) -> anyhow::Result<()> {
    let name = &machine.name;
    if !whose.is_forced {
        match session.get(&machine.object(Kind::Instance)).await {
            Ok(_) => bail!(
                "virtual machine {name} is running. Use --force flag to update a running VM, it will take effect after restart"
            ),
            Err(error) if error.is_not_found() => {}
            Err(error) => bail!("error when getting virtual machine instance: {error}"),
        }
    }
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "generateName": format!("{name}-ssh-key-"),
            "ownerReferences": [{
                "apiVersion": VIRTUAL_MACHINE.api_version(), "kind": "VirtualMachine", "name": name,
                "uid": vm["metadata"]["uid"], "controller": true,
            }],
        },
        "data": {"ssh-key-0": STANDARD.encode(key)},
    });
    let made = session.ask("POST", &secrets(machine), Some(&secret)).await;
    let made = made.map_err(|error| anyhow!("error creating secret: {error}"))?;
    let made: Value = serde_json::from_slice(&made).context("the server's answer is not JSON")?;
    let made = made["metadata"]["name"].as_str().filter(|it| !it.is_empty());
    let made = made.context("the server's answer does not name the new secret")?;
    let mut all = credentials(vm).to_vec();
    all.push(json!({"sshPublicKey": {
        "source": {"secret": {"secretName": made}},
        "propagationMethod": {"qemuGuestAgent": {"users": [whose.user]}},
    }}));
    // Whoever changed it meanwhile is not overwritten.
    let patch = json!({
        "metadata": {"resourceVersion": vm["metadata"]["resourceVersion"]},
        "spec": {"template": {"spec": {"accessCredentials": all}}},
    });
    let done = session
        .ask("PATCH", &machine.object(Kind::Machine), Some(&patch))
        .await;
    if let Err(error) = done {
        // Nobody would ever use it.
        let _ = session
            .ask("DELETE", &format!("{}/{made}", secrets(machine)), None)
            .await;
        bail!("error patching virtual machine: {error}");
    }
    Ok(())
}

async fn remove(session: &Session, options: &RemoveSshKey) -> anyhow::Result<()> {
    let key = read(&options.key)?;
    let whose = &options.whose;
    let (machine, vm) = machine(session, whose).await?;
    let named = key_secrets(&vm, &whose.user);
    if named.is_empty() {
        println!("No secrets associated with user {}", whose.user);
        return Ok(());
    }
    let meant = match whose.secret.as_deref() {
        None => named,
        Some(name) if named.contains(&name) => vec![name],
        Some(name) => bail!("secret {name} is not associated with user {}", whose.user),
    };
    for name in meant {
        remove_from(session, &machine, &vm, name, &key, whose.is_forced).await?;
    }
    Ok(())
}

async fn remove_from(
    session: &Session,
    machine: &Located,
    vm: &Value,
    name: &str,
    key: &str,
    is_forced: bool,
) -> anyhow::Result<()> {
    for _ in 0..ATTEMPTS {
        let found = match session.get(&format!("{}/{name}", secrets(machine))).await {
            Ok(secret) => secret,
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => bail!("error getting secret \"{name}\": {error}"),
        };
        owned(&found, vm, is_forced)?;
        let changes = without(&content(&found), key);
        if changes.is_empty() || change(session, machine, &found, Value::Object(changes)).await? {
            return Ok(());
        }
    }
    bail!("error patching secret \"{name}\": others change it all the time; try again")
}

async fn set_password(session: &Session, options: &SetPassword) -> anyhow::Result<()> {
    let whose = &options.whose;
    let password = match options.password.as_str() {
        "-" => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.context("reading the password from the standard input")?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        word => word.to_owned(),
    };
    let (machine, vm) = machine(session, whose).await?;
    let named = password_secrets(&vm);
    ensure!(
        !named.is_empty(),
        "no secrets assigned to UserPassword AccessCredentials"
    );
    let name = chosen(whose.secret.as_deref(), &named)?;
    for _ in 0..ATTEMPTS {
        let secret = secret(session, &machine, name).await?;
        owned(&secret, &vm, whose.is_forced)?;
        let entry = json!({whose.user.as_str(): STANDARD.encode(&password)});
        if change(session, &machine, &secret, entry).await? {
            println!("Successfully set password in secret \"{name}\"");
            return Ok(());
        }
    }
    bail!("error patching secret \"{name}\": others change it all the time; try again")
}

/// The machine that is meant, and its object.
async fn machine(session: &Session, whose: &Whose) -> anyhow::Result<(Located, Value)> {
    let machine = session.target(&whose.named.name)?;
    let found = session.get(&machine.object(Kind::Machine)).await;
    let vm = found.map_err(|error| anyhow!("error getting virtual machine: {error}"))?;
    Ok((machine, vm))
}

fn secrets(machine: &Located) -> String {
    format!("/api/v1/namespaces/{}/secrets", machine.namespace)
}

async fn secret(session: &Session, machine: &Located, name: &str) -> anyhow::Result<Value> {
    let found = session.get(&format!("{}/{name}", secrets(machine))).await;
    found.map_err(|error| anyhow!("error getting secret \"{name}\": {error}"))
}

/// Changes entries of a Secret as it was read; nothing, if somebody else was quicker.
async fn change(
    session: &Session,
    machine: &Located,
    secret: &Value,
    entries: Value,
) -> anyhow::Result<bool> {
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let patch =
        json!({"metadata": {"resourceVersion": secret["metadata"]["resourceVersion"]}, "data": entries});
    let path = format!("{}/{name}", secrets(machine));
    match session.ask("PATCH", &path, Some(&patch)).await {
        Ok(_) => Ok(true),
        Err(error) if error.code == 409 => Ok(false),
        Err(error) => bail!("error patching secret \"{name}\": {error}"),
    }
}

/// The key that is meant, without what editors put around it.
fn read(key: &Key) -> anyhow::Result<String> {
    let text = match (&key.file, &key.value) {
        (Some(file), _) => std::fs::read_to_string(file)
            .map_err(|error| anyhow!("error getting ssh key: reading {}: {error}", file.display()))?,
        (None, value) => value.clone().unwrap_or_default(),
    };
    let text = text.trim();
    ensure!(!text.is_empty(), "error getting ssh key: there is none in it");
    Ok(text.to_owned())
}

fn credentials(vm: &Value) -> &[Value] {
    let all = vm.pointer("/spec/template/spec/accessCredentials");
    all.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn secret_of(credential: &Value) -> Option<&str> {
    let name = credential.pointer("/source/secret/secretName")?.as_str()?;
    (!name.is_empty()).then_some(name)
}

/// The Secrets whose keys the agent gives to a user.
fn key_secrets<'v>(vm: &'v Value, user: &str) -> Vec<&'v str> {
    let of_user = |key: &&Value| {
        let users = key.pointer("/propagationMethod/qemuGuestAgent/users");
        (users.and_then(Value::as_array)).is_some_and(|it| it.iter().any(|it| it == user))
    };
    let keys = credentials(vm).iter().map(|it| &it["sshPublicKey"]);
    keys.filter(of_user).filter_map(secret_of).collect()
}

/// The Secrets whose passwords the agent sets.
fn password_secrets(vm: &Value) -> Vec<&str> {
    let by_agent = |it: &&Value| it["propagationMethod"]["qemuGuestAgent"].is_object();
    let passwords = credentials(vm).iter().map(|it| &it["userPassword"]);
    passwords.filter(by_agent).filter_map(secret_of).collect()
}

/// The Secret that is meant, of those that the machine names.
fn chosen<'v>(wanted: Option<&str>, named: &[&'v str]) -> anyhow::Result<&'v str> {
    match (wanted, named) {
        (None, [only]) => Ok(only),
        (None, _) => {
            bail!("multiple secrets specified, use option --secret to specify which secret to modify")
        }
        (Some(name), _) => match named.iter().find(|it| **it == name) {
            Some(found) => Ok(found),
            None => bail!("secret {name} was not assigned"),
        },
    }
}

/// A Secret that is not the machine's own may be that of many.
fn owned(secret: &Value, vm: &Value, is_forced: bool) -> anyhow::Result<()> {
    let owners = secret["metadata"]["ownerReferences"].as_array();
    let (name, uid) = (&vm["metadata"]["name"], &vm["metadata"]["uid"]);
    let is_own = |it: &Value| it["kind"] == "VirtualMachine" && it["name"] == *name && it["uid"] == *uid;
    ensure!(
        is_forced || owners.into_iter().flatten().any(is_own),
        "secret {} does not have an owner reference pointing to VM {}",
        secret["metadata"]["name"].as_str().unwrap_or_default(),
        name.as_str().unwrap_or_default()
    );
    Ok(())
}

/// The entries of a Secret, as far as they are text.
fn content(secret: &Value) -> Map<String, Value> {
    let text = |encoded: &Value| String::from_utf8(STANDARD.decode(encoded.as_str()?).ok()?).ok();
    let entries = secret["data"].as_object().into_iter().flatten();
    entries
        .filter_map(|(name, encoded)| Some((name.clone(), Value::String(text(encoded)?))))
        .collect()
}

fn is_line_of(line: &str, key: &str) -> bool {
    line.trim().starts_with(key)
}

fn has(text: &Value, key: &str) -> bool {
    (text.as_str().unwrap_or_default().lines()).any(|it| is_line_of(it, key))
}

/// What changes when a key goes: entries with the lines that are left, and nothing for those without any.
fn without(content: &Map<String, Value>, key: &str) -> Map<String, Value> {
    let concerned = content.iter().filter(|(_, text)| has(text, key));
    concerned
        .map(|(name, text)| {
            let lines = text.as_str().unwrap_or_default().lines();
            let left: Vec<&str> = lines
                .filter(|it| !is_line_of(it, key) && !it.trim().is_empty())
                .collect();
            let left = match left.is_empty() {
                true => Value::Null,
                false => Value::String(STANDARD.encode(left.join("\n"))),
            };
            (name.clone(), left)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm() -> Value {
        let agent = |users: &[&str]| json!({"qemuGuestAgent": {"users": users}});
        let source = |name: &str| json!({"secret": {"secretName": name}});
        json!({
            "metadata": {"name": "web", "uid": "u1"},
            "spec": {"template": {"spec": {"accessCredentials": [
                {"sshPublicKey": {"source": source("seed"), "propagationMethod": {"noCloud": {}}}},
                {"sshPublicKey": {"source": source("ada"), "propagationMethod": agent(&["ada", "bob"])}},
                {"sshPublicKey": {"source": source("bob"), "propagationMethod": agent(&["bob"])}},
                {"sshPublicKey": {"source": source(""), "propagationMethod": agent(&["bob"])}},
                {"userPassword": {"source": source("passwords"), "propagationMethod": {"qemuGuestAgent": {}}}},
            ]}}},
        })
    }

    #[test]
    fn secrets_of_a_machine() {
        let vm = vm();
        for (user, expected) in [("ada", vec!["ada"]), ("bob", vec!["ada", "bob"]), ("eve", vec![])] {
            assert_eq!(key_secrets(&vm, user), expected, "{user}");
        }
        assert_eq!(password_secrets(&vm), ["passwords"]);
        assert!(key_secrets(&json!({}), "ada").is_empty());
        for (wanted, named, expected) in [
            (None, vec!["a"], Ok("a")),
            (Some("b"), vec!["a", "b"], Ok("b")),
            (
                None,
                vec!["a", "b"],
                Err("multiple secrets specified, use option --secret to specify which secret to modify"),
            ),
            (Some("c"), vec!["a"], Err("secret c was not assigned")),
        ] {
            let found = chosen(wanted, &named).map_err(|it| it.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{wanted:?} of {named:?}");
        }
    }

    #[test]
    fn only_a_secret_of_its_own_is_changed() {
        let owner = |kind: &str, name: &str, uid: &str| json!({"metadata": {"name": "s", "ownerReferences": [{"kind": kind, "name": name, "uid": uid}]}});
        for (secret, expected) in [
            (owner("VirtualMachine", "web", "u1"), true),
            (owner("VirtualMachine", "web", "u0"), false),
            (owner("VirtualMachine", "other", "u1"), false),
            (owner("Deployment", "web", "u1"), false),
            (json!({"metadata": {"name": "s"}}), false),
        ] {
            assert_eq!(owned(&secret, &vm(), false).is_ok(), expected, "{secret}");
            assert!(owned(&secret, &vm(), true).is_ok(), "{secret}");
        }
    }

    #[test]
    fn keys_come_and_go_by_lines() {
        let encoded = |text: &str| STANDARD.encode(text);
        let secret = json!({"data": {
            "one": encoded("ssh-ed25519 AAAA ada@here\n"),
            "two": encoded("# comment\n\n ssh-ed25519 AAAA\nssh-ed25519 BBBB\n"),
            "other": encoded("ssh-ed25519 CCCC"),
            "binary": STANDARD.encode([0xff, 0xfe]),
        }});
        let content = content(&secret);
        assert_eq!(content.len(), 3, "{content:?}");
        for (key, expected) in [
            (
                "ssh-ed25519 AAAA",
                json!({"one": null, "two": encoded("# comment\nssh-ed25519 BBBB")}),
            ),
            (
                "ssh-ed25519 BBBB",
                json!({"two": encoded("# comment\n ssh-ed25519 AAAA")}),
            ),
            ("ssh-ed25519 DDDD", json!({})),
        ] {
            let changes = Value::Object(without(&content, key));
            assert_eq!(changes, expected, "{key}");
            assert_eq!(
                content.values().any(|it| has(it, key)),
                expected != json!({}),
                "{key}"
            );
        }
    }
}
