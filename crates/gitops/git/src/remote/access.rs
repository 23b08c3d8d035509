//! How a child comes by credentials: through variables that only this user sees and files of mode 0600, for as long as it
//! runs. Git hands them to the host that they are meant for, and to no host that it is sent on to.

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Credentials, Remote, address};
use crate::process::credential_helper;
use crate::{Command, Git, GitError};

/// Gives a command what it needs to reach a remote. The files go with the returned directory.
pub(super) fn grant(
    remote: &Remote,
    git: &Git,
    mut command: Command,
) -> Result<(Command, Option<TempDir>), GitError> {
    address::check(&remote.url)?;
    let mut files = Files {
        home: &git.options().home,
        directory: None,
    };
    let origin = address::origin(&remote.url);
    let mut settings: Vec<(String, String)> = Vec::new();
    if address::is_ssh(&remote.url) {
        let ssh = ssh_command(remote, &mut files)?;
        command = command.env("GIT_SSH_COMMAND", ssh).env("GIT_SSH_VARIANT", "ssh");
        return Ok((command, files.directory));
    }
    match &remote.credentials {
        Credentials::None => {}
        Credentials::Basic { username, password } => {
            for text in [username, password] {
                if text.contains(['\n', '\0']) {
                    return Err(GitError::invalid(
                        "the credentials",
                        "******",
                        "a line ends in them",
                    ));
                }
            }
            let helper = format!("!{}", shell_quoted(&credential_helper(&git.options().home)));
            settings.push((format!("credential.{origin}.helper"), helper));
            command = command
                .env("FAIRWAY_GIT_USERNAME", username)
                .env("FAIRWAY_GIT_PASSWORD", password)
                .secret(password);
        }
        Credentials::Bearer(token) => {
            if token.contains(char::is_control) {
                return Err(GitError::invalid(
                    "the token",
                    "******",
                    "it has a control character in it",
                ));
            }
            let header = format!("Authorization: Bearer {token}");
            settings.push((format!("http.{origin}/.extraHeader"), header));
            command = command.secret(token);
        }
        Credentials::Ssh(_) => {
            let why = "an SSH key is of no use for HTTP; give a username and password";
            return Err(GitError::invalid("the address", &remote.url, why));
        }
    }
    if let Some(ca) = &remote.ca {
        command = command.env("GIT_SSL_CAINFO", files.write("ca.pem", ca)?);
    }
    if let Some((certificate, key)) = &remote.client_certificate {
        command = command
            .env("GIT_SSL_CERT", files.write("client.pem", certificate)?)
            .env("GIT_SSL_KEY", files.write("client.key", key)?);
    }
    if remote.is_insecure {
        command = command.env("GIT_SSL_NO_VERIFY", "1");
    }
    if let Some(at) = &remote.at {
        settings.push(("http.curloptResolve".to_owned(), at.clone()));
    }
    if let Some(proxy) = &remote.proxy {
        settings.push((format!("http.{origin}/.proxy"), proxy.clone()));
    }
    command = command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (at, (name, value)) in settings.into_iter().enumerate() {
        command = command
            .env(format!("GIT_CONFIG_KEY_{at}"), name)
            .env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    Ok((command, files.directory))
}

fn ssh_command(remote: &Remote, files: &mut Files<'_>) -> Result<String, GitError> {
    let mut words = vec![
        "ssh".to_owned(),
        "-F/dev/null".to_owned(),
        "-oBatchMode=yes".to_owned(),
        "-oConnectTimeout=15".to_owned(),
        "-oServerAliveInterval=15".to_owned(),
        "-oIdentityAgent=none".to_owned(),
        "-oIdentitiesOnly=yes".to_owned(),
        "-oGlobalKnownHostsFile=/dev/null".to_owned(),
    ];
    if remote.is_insecure {
        words.push("-oStrictHostKeyChecking=no".to_owned());
        words.push("-oUserKnownHostsFile=/dev/null".to_owned());
    } else {
        let hosts = files.write("known_hosts", remote.known_hosts.as_deref().unwrap_or(""))?;
        words.push("-oStrictHostKeyChecking=yes".to_owned());
        words.push(format!("-oUserKnownHostsFile={}", shell_quoted(&hosts)));
    }
    match &remote.credentials {
        Credentials::Ssh(key) => {
            // The last line must have an end, or ssh finds no key.
            let key = files.write("id", &format!("{}\n", key.trim_end()))?;
            words.push(format!("-i{}", shell_quoted(&key)));
        }
        Credentials::None => {}
        Credentials::Basic { .. } | Credentials::Bearer(_) => {
            let why = "a password or token is of no use for SSH; give a private key";
            return Err(GitError::invalid("the address", &remote.url, why));
        }
    }
    Ok(words.join(" "))
}

/// Git hands such texts to a shell.
fn shell_quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// Secret files of one connection.
struct Files<'a> {
    home: &'a Path,
    directory: Option<TempDir>,
}

impl Files<'_> {
    fn write(&mut self, name: &str, content: &str) -> Result<PathBuf, GitError> {
        let failed = || GitError::io("writing a file for a connection");
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => tempfile::Builder::new()
                .prefix("connection-")
                .tempdir_in(self.home)
                .map_err(failed())?,
        };
        let path = directory.path().join(name);
        self.directory = Some(directory);
        let mut file = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed())?;
        std::io::Write::write_all(&mut file, content.as_bytes()).map_err(failed())?;
        Ok(path)
    }
}
