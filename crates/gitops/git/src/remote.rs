//! Somebody else's repository: asked what it has, and mirrored.

mod access;
mod address;

use std::path::Path;
use std::time::Duration;

pub use address::split_credentials;

use crate::{GitError, ObjectId, RefName, Reference, Repository};

/// How often the size of a repository is looked at while it is fetched into.
const LOOK: Duration = Duration::from_millis(250);

/// A repository elsewhere, and how it is reached.
#[derive(Debug, Clone)]
pub struct Remote {
    /// `https://…`, `http://…`, `ssh://…` or `user@host:path`, without a password.
    pub url: String,
    /// Who asks.
    pub credentials: Credentials,
    /// Certificates to trust, in PEM, besides none of the system's.
    pub ca: Option<String>,
    /// A certificate and key of the client, in PEM.
    pub client_certificate: Option<(String, String)>,
    /// Believe any certificate or host key.
    pub is_insecure: bool,
    /// Lines of `known_hosts`. Without them no host is believed.
    pub known_hosts: Option<String>,
    /// The proxy for HTTP.
    pub proxy: Option<String>,
    /// Where its host is, if its name alone does not tell: `HOST:PORT:ADDRESS`.
    pub at: Option<String>,
    /// How long a fetch may take.
    pub timeout: Duration,
    /// How large the repository may become.
    pub max_bytes: u64,
}

/// Who asks a remote.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Anybody.
    #[default]
    None,
    /// A name and a password or token, over HTTP.
    Basic {
        /// The name.
        username: String,
        /// The password or token.
        password: String,
    },
    /// A token, over HTTP.
    Bearer(String),
    /// A private key, over SSH.
    Ssh(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::None => "None",
            Self::Basic { .. } => "Basic(******)",
            Self::Bearer(_) => "Bearer(******)",
            Self::Ssh(_) => "Ssh(******)",
        })
    }
}

/// What a remote has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteRefs {
    /// The branch that `HEAD` means.
    pub head: Option<RefName>,
    /// In the remote's order.
    pub refs: Vec<RemoteRef>,
}

/// A reference of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    /// Its full name, or `HEAD`.
    pub name: String,
    /// The object: of an annotated tag, the tag's.
    pub id: ObjectId,
    /// Of an annotated tag, what it leads to.
    pub peeled: Option<ObjectId>,
}

/// What a fetch brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// References that moved, with where they were and where they are.
    pub moved: Vec<(RefName, Option<ObjectId>, Option<ObjectId>)>,
}

impl Remote {
    /// A remote for anybody, with moderate limits. A password in the address becomes credentials.
    pub fn new(url: &str) -> Result<Self, GitError> {
        let (url, found) = split_credentials(url);
        address::check(&url)?;
        let credentials = match found {
            Some((username, password)) if !password.is_empty() => Credentials::Basic { username, password },
            _ => Credentials::None,
        };
        Ok(Self {
            url,
            credentials,
            ca: None,
            client_certificate: None,
            is_insecure: false,
            known_hosts: None,
            proxy: None,
            at: None,
            timeout: Duration::from_secs(15 * 60),
            max_bytes: 4 << 30,
        })
    }

    /// Takes over what a Secret in the form of Argo CD's repository Secrets says. Whether it is meant for this address is the
    /// caller's to judge. Of several credentials those count that the address can use; if there are none, those stay that
    /// came with the address.
    pub fn take_secret(&mut self, field: impl Fn(&str) -> Option<String>) {
        let field = |name: &str| field(name).filter(|text| !text.is_empty());
        let found = match address::is_ssh(&self.url) {
            true => field("sshPrivateKey").map(Credentials::Ssh),
            false => field("bearerToken").map(Credentials::Bearer).or_else(|| {
                field("password").map(|password| Credentials::Basic {
                    username: field("username").unwrap_or_else(|| "git".to_owned()),
                    password,
                })
            }),
        };
        if let Some(found) = found {
            self.credentials = found;
        }
        let is_on = |name: &str| field(name).is_some_and(|text| text == "true");
        self.is_insecure = is_on("insecure") || is_on("insecureIgnoreHostKey");
        self.proxy = field("proxy");
        self.client_certificate = field("tlsClientCertData").zip(field("tlsClientCertKey"));
    }

    /// What it has now. One round trip or two; nothing is stored.
    pub async fn ls(&self, git: &crate::Git, timeout: Duration) -> Result<RemoteRefs, GitError> {
        let command = git.command(None, "ls-remote").timeout(timeout);
        let (command, _files) = access::grant(self, git, command)?;
        let printed = command.args(["--symref", "--", &self.url]).output().await?;
        parse_refs(&String::from_utf8_lossy(&printed))
    }

    /// Fetches references by refspecs, as `+refs/heads/*:refs/heads/*`. References that the remote no longer has go, if
    /// `prune` says so and a refspec covers them.
    pub async fn fetch(
        &self,
        into: &Repository,
        refspecs: &[&str],
        prune: bool,
    ) -> Result<Fetched, GitError> {
        for refspec in refspecs {
            address::check_refspec(refspec)?;
        }
        let before = into.references("").await?;
        let command = into
            .command("fetch")
            .set("http.lowSpeedLimit=100")
            .set("http.lowSpeedTime=60")
            .set("fetch.unpackLimit=100")
            .timeout(self.timeout)
            .args(["--quiet", "--force", "--no-tags", "--no-write-fetch-head"])
            .args(["--no-recurse-submodules", "--no-auto-maintenance"])
            .args(prune.then_some("--prune"));
        let (command, _files) = access::grant(self, into.git(), command)?;
        let command = command.arg("--").arg(&self.url).args(refspecs.iter().copied());
        tokio::select! {
            done = command.output() => drop(done?),
            full = outgrown(into.path(), self.max_bytes) => return Err(full),
        }
        let after = into.references("").await?;
        Ok(Fetched {
            moved: differences(&before, &after),
        })
    }

    /// Makes a repository a copy: branches, tags and the default branch. If nothing has moved since, nothing is fetched.
    pub async fn mirror(&self, into: &Repository) -> Result<Fetched, GitError> {
        let theirs = self
            .ls(into.git(), self.timeout.min(Duration::from_secs(120)))
            .await?;
        let ours = into.references("").await?;
        if let Some(head) = &theirs.head
            && into.head()?.as_ref() != Some(head)
        {
            into.set_head(head).await?;
        }
        if is_same(&theirs, &ours) {
            return Ok(Fetched::default());
        }
        let refspecs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        self.fetch(into, &refspecs, true).await
    }
}

/// Whether branches and tags are the same on both sides.
fn is_same(theirs: &RemoteRefs, ours: &[Reference]) -> bool {
    let is_mirrored = |name: &str| name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
    let mut theirs: Vec<(&str, &ObjectId)> = theirs
        .refs
        .iter()
        .filter(|found| is_mirrored(&found.name))
        .map(|found| (&*found.name, &found.id))
        .collect();
    let mut ours: Vec<(&str, &ObjectId)> = ours
        .iter()
        .filter(|found| is_mirrored(found.name.as_str()))
        .map(|found| (found.name.as_str(), &found.id))
        .collect();
    theirs.sort_unstable();
    ours.sort_unstable();
    theirs == ours
}

fn differences(
    before: &[Reference],
    after: &[Reference],
) -> Vec<(RefName, Option<ObjectId>, Option<ObjectId>)> {
    let find = |list: &[Reference], name: &RefName| {
        let at = list.binary_search_by(|known| known.name.cmp(name)).ok()?;
        Some(list[at].id.clone())
    };
    // Git sorts names by their bytes, as we do.
    let mut names: Vec<&RefName> = before.iter().chain(after).map(|known| &known.name).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| (name.clone(), find(before, name), find(after, name)))
        .filter(|(_, old, new)| old != new)
        .collect()
}

/// Ends when a directory has more than so many bytes in it.
async fn outgrown(path: &Path, limit: u64) -> GitError {
    loop {
        tokio::time::sleep(LOOK).await;
        let path = path.to_owned();
        let size = tokio::task::spawn_blocking(move || size_of(&path)).await;
        if size.is_ok_and(|size| size > limit) {
            return GitError::TooLarge {
                what: "fetch".to_owned(),
                limit,
            };
        }
    }
}

/// What a directory and those below it take up.
fn size_of(directory: &Path) -> u64 {
    let (mut total, mut open) = (0, vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() => open.push(entry.path()),
                Ok(found) => total += found.len(),
                Err(_) => {}
            }
        }
    }
    total
}

impl Repository {
    /// How many bytes it takes up on disk.
    pub async fn disk_size(&self) -> Result<u64, GitError> {
        self.blocking(|this| Ok(size_of(this.path()))).await
    }
}

/// Reads what `git ls-remote --symref` prints.
fn parse_refs(text: &str) -> Result<RemoteRefs, GitError> {
    let mut found = RemoteRefs::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (left, name) = line.split_once('\t').ok_or_else(|| GitError::Nonsense {
            what: "ls-remote".to_owned(),
            said: line.to_owned(),
        })?;
        if let Some(target) = left.strip_prefix("ref: ") {
            if name == "HEAD" {
                found.head = RefName::parse(target).ok();
            }
            continue;
        }
        let id = ObjectId::parse(left)?;
        match (name.strip_suffix("^{}"), found.refs.last_mut()) {
            (Some(tag), Some(last)) if last.name == tag => last.peeled = Some(id),
            _ => found.refs.push(RemoteRef {
                name: name.to_owned(),
                id,
                peeled: None,
            }),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_give_what_the_address_can_use() {
        let all = [
            ("username", "u"),
            ("password", "p"),
            ("sshPrivateKey", "k"),
            ("insecure", "true"),
            ("proxy", ""),
        ];
        type Fields<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(&str, Fields<'_>, &str)] = &[
            ("https://h/a", &all, "Basic(******)"),
            ("ssh://git@h/a", &all, "Ssh(******)"),
            ("git@h:a", &all, "Ssh(******)"),
            (
                "https://h/a",
                &[("bearerToken", "t"), ("password", "p")],
                "Bearer(******)",
            ),
            ("https://h/a", &[("sshPrivateKey", "k")], "None"),
            ("https://u:p@h/a", &[], "Basic(******)"),
        ];
        for (url, fields, expected) in cases {
            let mut remote = Remote::new(url).unwrap();
            remote.take_secret(|name| {
                let found = fields.iter().find(|(field, _)| *field == name);
                found.map(|(_, text)| (*text).to_owned())
            });
            assert_eq!(format!("{:?}", remote.credentials), *expected, "{url} {fields:?}");
            assert_eq!((remote.is_insecure, remote.proxy), (fields.len() > 2, None));
        }
    }

    #[test]
    fn lists_of_remotes_are_read() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text = format!(
            "ref: refs/heads/main\tHEAD\n{a}\tHEAD\n{a}\trefs/heads/main\n{b}\trefs/tags/v1\n{a}\trefs/tags/v1^{{}}\n"
        );
        let found = parse_refs(&text).unwrap();
        assert_eq!(found.head.unwrap().as_str(), "refs/heads/main");
        assert_eq!(found.refs.len(), 3);
        assert_eq!(found.refs[2].peeled.as_ref().unwrap().as_str(), a);
        assert!(parse_refs("warning: redirecting\n").is_err());
        assert_eq!(parse_refs("").unwrap(), RemoteRefs::default());
    }
}
