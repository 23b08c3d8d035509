//! Running the `git` program: one place that decides what a child may see, how long it may take and how it ends.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use crate::GitError;
use crate::batch::Pool;

/// Of a child's complaint, what is kept.
const MAX_STDERR: usize = 16 << 10;
/// What outside connections need of our own environment: the way through a proxy, and whom to trust.
const PASSED_ON: [&str; 9] = [
    "PATH",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// What is set for every child. Objects and references reach the disk before a child says that it is done.
const SETTINGS: [&str; 11] = [
    "core.hooksPath=/dev/null",
    "core.fsync=objects,derived-metadata,reference",
    "core.fsyncMethod=fsync",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.ext.allow=never",
    "advice.detachedHead=false",
    // The path is ours, whoever owns the directory.
    "safe.directory=*",
    "pack.threads=1",
    "fetch.recurseSubmodules=false",
];

/// How the program is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its name or path.
    pub program: PathBuf,
    /// A directory for what is not a repository: an empty home, keys of connections under way.
    pub home: PathBuf,
    /// How long a child may take unless its caller says otherwise.
    pub timeout: Duration,
    /// Whether remotes may be directories of this machine. It lets whoever names a remote read them.
    pub allow_file_remotes: bool,
}

impl Options {
    /// The program of the PATH, with this directory for its needs.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            program: "git".into(),
            home: home.into(),
            timeout: Duration::from_secs(60),
            allow_file_remotes: false,
        }
    }
}

/// The `git` program. Copies share idle children.
#[derive(Debug, Clone)]
pub struct Git {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    environment: Vec<(OsString, OsString)>,
    pool: Pool,
}

impl Git {
    /// Prepares the directory that children take for their home.
    pub fn new(options: Options) -> Result<Self, GitError> {
        let home = &options.home;
        let failed = || GitError::io(format!("preparing {}", home.display()));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(home)
            .map_err(failed())?;
        let helper = credential_helper(home);
        let mut file = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o700)
            .open(&helper)
            .map_err(failed())?;
        std::io::Write::write_all(&mut file, HELPER.as_bytes()).map_err(failed())?;
        let set = [
            ("HOME", home.as_os_str()),
            ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
            ("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null")),
            ("GIT_ATTR_NOSYSTEM", OsStr::new("1")),
            ("GIT_TERMINAL_PROMPT", OsStr::new("0")),
            ("GIT_ASKPASS", OsStr::new("/bin/false")),
            ("SSH_ASKPASS", OsStr::new("/bin/false")),
            ("GIT_OPTIONAL_LOCKS", OsStr::new("0")),
            // Replacements are objects that lie about their name.
            ("GIT_NO_REPLACE_OBJECTS", OsStr::new("1")),
            (
                "GIT_ALLOW_PROTOCOL",
                OsStr::new(if options.allow_file_remotes {
                    "https:http:ssh:file"
                } else {
                    "https:http:ssh"
                }),
            ),
            ("LC_ALL", OsStr::new("C")),
        ];
        let environment = PASSED_ON
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
            .chain(set.map(|(name, value)| (name.into(), value.to_owned())))
            .collect();
        let mut options = options;
        options.program = with_whole_path(options.program);
        let inner = Inner {
            options,
            environment,
            pool: Pool::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// How it is run.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.inner.pool
    }

    /// A child to come, with a subcommand; in a repository if one is given.
    pub fn command(&self, repository: Option<&Path>, subcommand: &'static str) -> Command {
        let mut arguments: Vec<OsString> = Vec::new();
        for setting in SETTINGS {
            arguments.extend(["-c".into(), setting.into()]);
        }
        if let Some(path) = repository {
            let mut argument = OsString::from("--git-dir=");
            argument.push(path);
            arguments.push(argument);
        }
        Command {
            git: self.clone(),
            subcommand,
            settings: arguments,
            arguments: Vec::new(),
            environment: Vec::new(),
            input: Vec::new(),
            timeout: self.inner.options.timeout,
            max_output: 64 << 20,
            max_memory: None,
            secrets: Vec::new(),
        }
    }
}

/// A program of the PATH by its whole path, where it is there: only such a one is started without a copy of this process's page tables
/// first, which takes a server with a hundred megabytes as long as git takes for its answer.
fn with_whole_path(program: PathBuf) -> PathBuf {
    if program.components().count() != 1 {
        return program;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |it: &PathBuf| {
        fs::metadata(it).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let mut all = std::env::split_paths(&path).map(|directory| directory.join(&program));
    all.find(|it| it.is_absolute() && is_program(it))
        .unwrap_or(program)
}

/// Where the program lies that answers Git's question for a password out of the environment.
pub(crate) fn credential_helper(home: &Path) -> PathBuf {
    home.join("credential-helper")
}

/// Git asks only for the address for which it was told of this helper, so no redirection gets the answer.
const HELPER: &str = "#!/bin/sh\n[ \"$1\" = get ] || exit 0\nprintf 'username=%s\\npassword=%s\\n' \
                      \"$FAIRWAY_GIT_USERNAME\" \"$FAIRWAY_GIT_PASSWORD\"\n";

/// A child to come.
#[derive(Debug)]
pub struct Command {
    git: Git,
    subcommand: &'static str,
    settings: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    timeout: Duration,
    max_output: u64,
    max_memory: Option<u64>,
    secrets: Vec<String>,
}

impl Command {
    /// An argument after the subcommand. Nothing of a stranger's may stand where an option could.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Several arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// A setting, seen by all users of the machine: no secrets.
    #[must_use]
    pub fn set(mut self, setting: impl Into<OsString>) -> Self {
        self.settings.extend(["-c".into(), setting.into()]);
        self
    }

    /// A variable of the environment, seen by this user only.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// What it reads.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// How long it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes it may print.
    #[must_use]
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.max_output = bytes;
        self
    }

    /// How much address space it may take.
    #[must_use]
    pub fn max_memory(mut self, bytes: u64) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// A text that must not be seen in what it complains about.
    #[must_use]
    pub fn secret(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        // Blotting out a letter would blot out everything.
        if text.len() > 3 {
            self.secrets.push(text);
        }
        self
    }

    fn words(&self) -> impl Iterator<Item = &OsStr> {
        let subcommand = std::iter::once(OsStr::new(self.subcommand));
        let settings = self.settings.iter().map(OsString::as_os_str);
        settings
            .chain(subcommand)
            .chain(self.arguments.iter().map(OsString::as_os_str))
    }

    fn not_started(&self) -> impl FnOnce(std::io::Error) -> GitError {
        let program = self.git.inner.options.program.clone();
        |source| GitError::NotStarted { program, source }
    }

    /// Starts it, to be spoken with while it runs.
    pub fn spawn(&self) -> Result<Running, GitError> {
        let mut command = self.prepared(Stdio::piped());
        command.kill_on_drop(true);
        let mut child = command.spawn().map_err(self.not_started())?;
        let group = child.id().and_then(group_of);
        if let (Some(bytes), Some(pid)) = (self.max_memory, group) {
            // What others have packed says how much memory it takes to unpack.
            let limit = Rlimit {
                current: Some(bytes),
                maximum: Some(bytes),
            };
            let _ = prlimit(Some(pid), Resource::As, limit);
        }
        Ok(Running {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            group,
            child,
        })
    }

    /// Starts it without a runtime, for a caller that waits.
    pub(crate) fn spawn_blocking(&self) -> Result<std::process::Child, GitError> {
        self.prepared(Stdio::null())
            .into_std()
            .spawn()
            .map_err(self.not_started())
    }

    /// What every child sees: the arguments, a home of its own, the environment that it is given and nothing else.
    fn prepared(&self, complaints: Stdio) -> tokio::process::Command {
        let inner = &self.git.inner;
        let mut command = tokio::process::Command::new(&inner.options.program);
        command
            .args(self.words())
            .env_clear()
            .envs(
                inner
                    .environment
                    .iter()
                    .chain(&self.environment)
                    .map(|(n, v)| (n, v)),
            )
            .current_dir(&inner.options.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .process_group(0);
        command
    }

    /// Runs it to its end and returns what it printed.
    pub async fn output(self) -> Result<Vec<u8>, GitError> {
        let (success, printed, complaint) = self.finish().await?;
        match success {
            true => Ok(printed),
            false => Err(GitError::Failed {
                what: self.subcommand.to_owned(),
                said: self.complaint(&complaint),
            }),
        }
    }

    /// Runs it to its end: whether it succeeded, what it printed, what it complained about.
    pub(crate) async fn finish(&self) -> Result<(bool, Vec<u8>, Vec<u8>), GitError> {
        let mut running = self.spawn()?;
        let (stdin, stdout, stderr) = (running.stdin.take(), running.stdout.take(), running.stderr.take());
        let speaking = async {
            if let Some(mut stdin) = stdin {
                // It may end before it has read everything; its exit status says why.
                let _ = stdin.write_all(&self.input).await;
            }
        };
        let work = async {
            let ((), printed, complaint) =
                tokio::join!(speaking, self.gather(stdout), keep_end(stderr, MAX_STDERR));
            let status = running.wait().await?;
            Ok((status, printed?, complaint))
        };
        match tokio::time::timeout(self.timeout, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(GitError::Timeout {
                what: self.subcommand.to_owned(),
                limit: self.timeout,
            }),
        }
        // Whatever happened: `running` goes, and with it the whole group.
    }

    async fn gather(&self, from: Option<ChildStdout>) -> Result<Vec<u8>, GitError> {
        let mut printed = Vec::new();
        let Some(from) = from else {
            return Ok(printed);
        };
        let limit = self.max_output;
        from.take(limit + 1)
            .read_to_end(&mut printed)
            .await
            .map_err(GitError::io(format!("reading from git {}", self.subcommand)))?;
        match printed.len() as u64 > limit {
            true => Err(GitError::TooLarge {
                what: self.subcommand.to_owned(),
                limit,
            }),
            false => Ok(printed),
        }
    }

    /// What a child said, fit for other eyes.
    pub(crate) fn complaint(&self, said: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(said).trim().to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, "******");
        }
        text
    }
}

/// The last bytes of a stream; all of it is read, so that the child never waits for a reader.
async fn keep_end(from: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else {
        return kept;
    };
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(&piece[..count]);
        if kept.len() > limit {
            kept.drain(..kept.len() - limit);
        }
    }
    kept
}

fn group_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Ends everything that a child started through [`Command::spawn_blocking`] has started, and itself.
pub(crate) fn end_group(child: &mut std::process::Child) {
    if let Some(group) = group_of(child.id()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// A child that runs. When it is dropped, its whole process group is ended.
#[derive(Debug)]
pub struct Running {
    /// What it reads.
    pub stdin: Option<ChildStdin>,
    /// What it prints.
    pub stdout: Option<ChildStdout>,
    /// What it complains about.
    pub stderr: Option<ChildStderr>,
    group: Option<Pid>,
    child: Child,
}

impl Running {
    /// Waits for its end; whether it succeeded.
    pub async fn wait(&mut self) -> Result<bool, GitError> {
        let status = self.child.wait().await.map_err(GitError::io("waiting for git"))?;
        // Its number may be somebody else's from here on.
        self.group = None;
        Ok(status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_the_path_are_found_once() {
        let found = with_whole_path("git".into());
        assert!(found.is_absolute() && found.ends_with("git"), "{found:?}");
        for left in ["/nowhere/git", "./git", "no-such-program-of-git"] {
            assert_eq!(with_whole_path(left.into()), Path::new(left));
        }
    }
}
