//! `fairway vm ssh` and `scp`: the programs of this host, whose connection is a `fairway vm port-forward --stdio`.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

use super::session::{Located, Session};
use super::target::{self, Kind};
use crate::cli::vm::doors::{Login, Scp, Ssh};

pub(super) fn log_in(session: &Session, options: &Ssh) -> anyhow::Result<ExitCode> {
    let (user, target) = target::login(&options.target)?;
    let machine = session.locate(target);
    let mut words = wrapped(session, &machine, &options.login)?;
    let kind = machine.kind.unwrap_or(Kind::Instance).word();
    let host = format!("{kind}/{}.{}", machine.name, machine.namespace);
    words.push(with_user(user, &options.login, &host).into());
    words.extend(options.command.clone().map(Into::into));
    become_program("ssh", words)
}

pub(super) fn copy(session: &Session, options: &Scp) -> anyhow::Result<ExitCode> {
    let copy = target::copy(&options.source, &options.destination)?;
    let machine = session.locate(copy.target);
    let mut words = wrapped(session, &machine, &options.login)?;
    for (flag, is_set) in [("-r", options.is_recursive), ("-p", options.preserves)] {
        if is_set {
            words.push(flag.into());
        }
    }
    let host = format!("{}.{}:{}", machine.name, machine.namespace, copy.path);
    let there = with_user(copy.user, &options.login, &host);
    match copy.to_guest {
        true => words.extend([copy.local, there].map(OsString::from)),
        false => words.extend([there, copy.local].map(OsString::from)),
    }
    become_program("scp", words)
}

/// What both are told: how to get there, and what somebody wants besides.
fn wrapped(session: &Session, machine: &Located, login: &Login) -> anyhow::Result<Vec<OsString>> {
    if !login.is_local {
        bail!("--local-ssh=false is not supported: the ssh of this host is used");
    }
    let own = std::env::current_exe().context("the path of this program is unknown")?;
    let kind = machine.kind.unwrap_or(Kind::Instance).word();
    let mut way = vec![own.into_os_string(), "vm".into()];
    way.extend(session.flags());
    way.extend(["port-forward", "--stdio=true"].map(OsString::from));
    way.push(format!("{kind}/{}.{}", machine.name, machine.namespace).into());
    way.push(login.port.to_string().into());
    let mut words: Vec<OsString> = vec!["-o".into(), proxy_command(&way)];
    if let Some(file) = &login.known_hosts {
        let mut option = OsString::from("UserKnownHostsFile=");
        option.push(file);
        words.extend(["-o".into(), option]);
    }
    words.extend(login.local_ssh_opts.iter().map(Into::into));
    if let Some(file) = &login.identity_file {
        words.extend(["-i".into(), file.into()]);
    }
    Ok(words)
}

/// A command for a shell, which ssh hands it to after it has read `%` its own way.
fn proxy_command(words: &[OsString]) -> OsString {
    let mut text = String::from("ProxyCommand=");
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        let word = word.to_string_lossy().replace('%', "%%");
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "/._-=:%".contains(it);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => text.push_str(&word),
            false => text.push_str(&format!("'{}'", word.replace('\'', r"'\''"))),
        }
    }
    text.into()
}

fn with_user(named: Option<String>, login: &Login, host: &str) -> String {
    let own = || std::env::var("USER").ok().filter(|it| !it.is_empty());
    match named.or_else(|| login.username.clone()).or_else(own) {
        Some(user) => format!("{user}@{host}"),
        None => host.to_owned(),
    }
}

/// Goes on as another program, so that its exit code and its signals are its own.
fn become_program(program: &str, words: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let error = Command::new(OsStr::new(program)).args(words).exec();
    Err(error).with_context(|| format!("{program} could not be started; is it installed?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_safe_from_the_shell() {
        let words = [
            "/a b/fairway",
            "vm",
            "--kubeconfig",
            "it's",
            "100%",
            "vmi/web.ns",
            "",
        ];
        let expected = r"ProxyCommand='/a b/fairway' vm --kubeconfig 'it'\''s' 100%% vmi/web.ns ''";
        assert_eq!(proxy_command(&words.map(OsString::from)), expected);
    }
}
