//! Runs a plugin's program: in a session of its own, as nobody where we are root, without a network where the machine lets us,
//! within a time, limits and an amount of output, and with no variables but those that it is given. It sees a copy.
//!
//! The limits are set by the programs of util-linux (`setsid`, `prlimit`, `setpriv`, `unshare`) before the plugin's takes
//! their place, so that no step of ours runs in between.

use std::collections::BTreeMap;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fairway_gitops_tree::{Entry, Tree, path};
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::definition::Program;

/// How long a program may take; Argo CD's.
const TIME: Duration = Duration::from_secs(90);
/// How much it may print.
const MAX_OUTPUT: u64 = 32 << 20;
/// Of what it complains about, what is shown.
const MAX_COMPLAINT: u64 = 4 << 10;
/// Core dumps, processor seconds, size of files, open files, address space.
const LIMITS: [&str; 5] = [
    "--core=0",
    "--cpu=90",
    "--fsize=268435456",
    "--nofile=512",
    "--as=8589934592",
];
/// What we open is ours alone, but whoever started us may have left something open.
const CLOSING: &str = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec \"$@\"";
/// Nobody: what is left of root's rights is none.
const NOBODY: u32 = 65_534;

/// Where programs run.
pub(super) struct Sandbox {
    work: PathBuf,
    /// What cuts off the network, once it was tried.
    unshare: OnceCell<Vec<&'static str>>,
}

impl Sandbox {
    pub(super) fn new(work: PathBuf) -> Self {
        Self {
            work,
            unshare: OnceCell::new(),
        }
    }

    /// Where copies are.
    pub(super) fn work(&self) -> &Path {
        &self.work
    }

    /// The words before a program's own.
    async fn wrapping(&self) -> Vec<String> {
        let unshare = self.unshare.get_or_init(network).await;
        let mut words: Vec<&str> = vec!["setsid", "prlimit"];
        words.extend(LIMITS);
        words.push("--");
        words.extend(unshare);
        words.extend(["setpriv", "--no-new-privs"]);
        if geteuid().is_root() {
            words.extend(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        words.push("--");
        words.extend(["sh", "-c", CLOSING, "sh"]);
        words.into_iter().map(str::to_owned).collect()
    }

    /// What a program prints that is run in a directory of a copy.
    pub(super) async fn run(
        &self,
        program: &Program,
        copy: &Path,
        at: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<String, String> {
        let shown = program.words.join(" ");
        let wrapping = self.wrapping().await;
        let mut command = Command::new(&wrapping[0]);
        command
            .args(&wrapping[1..])
            .args(&program.words)
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()),
            )
            .env("HOME", copy.join("home"))
            .env("LANG", "C.UTF-8")
            .envs(environment.iter().filter(|(name, value)| {
                !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
            }))
            .current_dir(at)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .map_err(|error| format!("`{shown}` could not be started: {error}"))?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let printing = async {
                let mut printed = Vec::new();
                if let Some(stdout) = stdout {
                    let _ = stdout.take(MAX_OUTPUT + 1).read_to_end(&mut printed).await;
                }
                if printed.len() as u64 > MAX_OUTPUT {
                    group.end();
                }
                printed
            };
            let complaining = async {
                let mut said = Vec::new();
                if let Some(mut stderr) = stderr {
                    let _ = (&mut stderr).take(MAX_COMPLAINT).read_to_end(&mut said).await;
                    // The rest is read and forgotten, so that nobody waits for us.
                    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
                }
                said
            };
            let (printed, said) = tokio::join!(printing, complaining);
            (printed, said, child.wait().await)
        };
        let finished = tokio::time::timeout(TIME, work).await;
        // Whatever it has started ends with it.
        drop(group);
        let Ok((printed, said, status)) = finished else {
            return Err(format!("`{shown}` took longer than {} s", TIME.as_secs()));
        };
        if printed.len() as u64 > MAX_OUTPUT {
            return Err(format!("`{shown}` printed more than {MAX_OUTPUT} bytes"));
        }
        match status {
            Ok(status) if status.success() => {
                String::from_utf8(printed).map_err(|_| format!("`{shown}` printed what is no text"))
            }
            Ok(status) => {
                let said = String::from_utf8_lossy(&said);
                Err(format!("`{shown}` failed ({status}): {}", said.trim()))
            }
            Err(error) => Err(format!("`{shown}`: {error}")),
        }
    }
}

/// A session, which is a process group, too; it ends when nobody needs it any more.
struct Group(Option<Pid>);

impl Group {
    fn end(&self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// How the network is cut off here, if it can be.
async fn network() -> Vec<&'static str> {
    let ways: [&[&str]; 2] = [
        &["unshare", "--net", "--"],
        &["unshare", "--user", "--map-current-user", "--net", "--"],
    ];
    for way in ways {
        let tried = Command::new(way[0])
            .args(&way[1..])
            .arg("true")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await;
        if tried.is_ok_and(|status| status.success()) {
            return way.to_vec();
        }
    }
    tracing::warn!("plugins can use the network: this machine does not let us cut it off");
    Vec::new()
}

/// Writes a tree to a directory. Links that lead out of it are left out.
pub(super) fn write(tree: &Tree, to: &Path, limit: u64) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(to).map_err(text)?;
    let reader = tree.reader();
    let (mut open, mut total) = (vec![String::new()], 0);
    while let Some(directory) = open.pop() {
        for name in reader.list(&directory).map_err(|error| error.to_string())? {
            let inner = match directory.as_str() {
                "" => name,
                directory => format!("{directory}/{name}"),
            };
            let place = to.join(&inner);
            match tree.entry(&inner).map_err(|error| error.to_string())? {
                Some(Entry::Directory) => {
                    std::fs::create_dir(&place).map_err(text)?;
                    open.push(inner);
                }
                Some(Entry::File(content)) => {
                    total += content.len() as u64;
                    if total > limit {
                        return Err(format!("it has more than {limit} bytes"));
                    }
                    std::fs::write(&place, content).map_err(text)?;
                }
                Some(Entry::Link(target)) if path::join(path::parent(&inner), &target).is_ok() => {
                    symlink(target, &place).map_err(text)?;
                }
                // A link that leads out is left out.
                Some(Entry::Link(_)) | None => {}
            }
        }
    }
    Ok(())
}

/// Gives a copy to nobody, if that is who will use it.
pub(super) fn hand_over(copy: &Path) -> Result<(), String> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let mut open = vec![copy.to_owned()];
    while let Some(path) = open.pop() {
        let found = std::fs::symlink_metadata(&path).map_err(|error| error.to_string())?;
        if found.is_symlink() {
            continue;
        }
        chown(&path, Some(NOBODY), Some(NOBODY)).map_err(|error| error.to_string())?;
        if found.is_dir() {
            let entries = std::fs::read_dir(&path).map_err(|error| error.to_string())?;
            for entry in entries {
                open.push(entry.map_err(|error| error.to_string())?.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(script: &str) -> Program {
        Program {
            words: ["sh", "-c", script].map(str::to_owned).to_vec(),
        }
    }

    #[tokio::test]
    async fn programs_see_what_they_are_given_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let sandbox = Sandbox::new(place.path().to_owned());
        let copy = place.path().join("copy");
        std::fs::create_dir_all(copy.join("home")).unwrap();
        let tree = Tree::of([("app/a.txt", &b"hello"[..]), ("top", &b"x"[..])]).unwrap();
        write(&tree, &copy.join("source"), 1000).unwrap();
        hand_over(&copy).unwrap();
        let given = BTreeMap::from([("ARGOCD_ENV_X".to_owned(), "1".to_owned())]);
        let run = async |script: &str| {
            let at = copy.join("source/app");
            sandbox.run(&program(script), &copy, &at, &given).await
        };
        assert_eq!(
            run("cat a.txt ../top; echo w > new; cat new").await.unwrap(),
            "helloxw\n"
        );
        let seen = run("env | cut -d= -f1 | sort | tr '\\n' ' '").await.unwrap();
        for name in ["ARGOCD_ENV_X", "HOME", "PATH"] {
            assert!(seen.contains(name), "{seen}");
        }
        assert!(!seen.contains("CARGO"), "{seen}");
        let why = run("echo oh no >&2; exit 3").await.unwrap_err();
        assert!(why.contains("oh no") && why.contains('3'), "{why}");
        assert!(
            run("ls -l /proc/self/fd | wc -l")
                .await
                .unwrap()
                .trim()
                .parse::<u32>()
                .unwrap()
                < 8
        );
        // The sixth word of it is the session.
        let own = "set -- $(cat /proc/$$/stat); test \"$6\" = \"$$\" && echo own";
        assert_eq!(run(own).await.unwrap(), "own\n");
        let big = run("head -c 40000000 /dev/zero").await.unwrap_err();
        assert!(big.contains("more than") || big.contains("no text"), "{big}");
        // What it leaves running does not stay.
        run("sleep 1000 > /dev/null 2>&1 & echo $! > ../left")
            .await
            .unwrap();
        let left = std::fs::read_to_string(copy.join("source/left")).unwrap();
        let alive = Path::new("/proc").join(left.trim());
        for _ in 0..500 {
            let state = std::fs::read_to_string(alive.join("stat")).unwrap_or_default();
            if state.is_empty() || state.contains(") Z") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} is still there", left.trim());
    }
}
