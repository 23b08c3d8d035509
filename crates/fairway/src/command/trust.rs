//! `fairway trust`: makes this computer believe Fairway's own certificate authority, so that browsers and tools accept what
//! Gateways and Routes show.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::cli::trust::Trust;
use crate::data_dir::DataDir;

/// The name under which the authority is kept in stores.
const NAME: &str = "fairway";
/// Systems keep authorities of their own in one of these, and have a program that gathers them.
const STORES: [Store; 3] = [
    Store {
        directory: "/usr/local/share/ca-certificates",
        update: &["update-ca-certificates"],
    },
    Store {
        directory: "/etc/pki/ca-trust/source/anchors",
        update: &["update-ca-trust", "extract"],
    },
    Store {
        directory: "/etc/ca-certificates/trust-source/anchors",
        update: &["trust", "extract-compat"],
    },
];

/// Where a system keeps authorities.
#[derive(Clone, Copy)]
struct Store {
    directory: &'static str,
    update: &'static [&'static str],
}

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Copy {
        from: PathBuf,
        to: PathBuf,
    },
    Remove(PathBuf),
    /// `may_fail`: what is not there need not be taken away.
    Run {
        command: Vec<String>,
        may_fail: bool,
    },
}

/// Does what was asked for.
pub(crate) fn run(options: &Trust) -> anyhow::Result<ExitCode> {
    let data = DataDir::find(options.data.dir.as_deref())?;
    let authority = data.pki("ca").0;
    if !authority.exists() {
        bail!(
            "there is no certificate authority in {}; start Fairway once with `fairway up`",
            authority.display()
        );
    }
    if options.print {
        print!("{}", std::fs::read_to_string(&authority)?);
        return Ok(ExitCode::SUCCESS);
    }
    let store = STORES.iter().find(|it| Path::new(it.directory).is_dir());
    let databases = if has_program("certutil") {
        databases()
    } else {
        Vec::new()
    };
    let steps = plan(options.uninstall, &authority, store, &databases);
    if steps.is_empty() {
        bail!(
            "no store of authorities was found; add {} to your system's by hand (`fairway trust --print` prints it)",
            authority.display()
        );
    }
    for step in &steps {
        carry_out(step)?;
    }
    let done = if options.uninstall {
        "is no longer trusted"
    } else {
        "is trusted"
    };
    println!("Fairway's certificate authority {done} on this computer.");
    Ok(ExitCode::SUCCESS)
}

/// What is to be done.
fn plan(uninstall: bool, authority: &Path, store: Option<&Store>, databases: &[PathBuf]) -> Vec<Step> {
    let mut steps = Vec::new();
    let run = |words: &[&str], may_fail| Step::Run {
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        may_fail,
    };
    if let Some(store) = store {
        let file = Path::new(store.directory).join(format!("{NAME}.crt"));
        steps.push(match uninstall {
            true => Step::Remove(file),
            false => Step::Copy {
                from: authority.to_owned(),
                to: file,
            },
        });
        steps.push(run(store.update, false));
    }
    for database in databases {
        let database = format!("sql:{}", database.display());
        // Another authority under the same name would stay beside the new one.
        steps.push(run(&["certutil", "-d", &database, "-D", "-n", NAME], true));
        if !uninstall {
            let file = authority.display().to_string();
            let words = [
                "certutil", "-d", &database, "-A", "-t", "C,,", "-n", NAME, "-i", &file,
            ];
            steps.push(run(&words, false));
        }
    }
    steps
}

fn carry_out(step: &Step) -> anyhow::Result<()> {
    match step {
        Step::Copy { from, to } => {
            std::fs::copy(from, to)
                .with_context(|| format!("{} cannot be written; try it as root (sudo)", to.display()))?;
        }
        Step::Remove(file) => match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("{} cannot be removed; try it as root (sudo)", file.display()));
            }
            _ => {}
        },
        Step::Run { command, may_fail } => {
            let [program, arguments @ ..] = command.as_slice() else {
                return Ok(());
            };
            let output = Command::new(program).args(arguments).output();
            let output = output.with_context(|| format!("{program} cannot be run"))?;
            if !output.status.success() && !may_fail {
                let said = String::from_utf8_lossy(&output.stderr);
                bail!("`{}` failed: {}", command.join(" "), said.trim());
            }
        }
    }
    Ok(())
}

fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// Where browsers of this user keep authorities.
fn databases() -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let profiles = std::fs::read_dir(home.join(".mozilla/firefox"))
        .into_iter()
        .flatten();
    let profiles = profiles.filter_map(|entry| Some(entry.ok()?.path()));
    let all = std::iter::once(home.join(".pki/nssdb")).chain(profiles);
    all.filter(|directory| directory.join("cert9.db").is_file())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_can_be_taken_away() {
        let authority = Path::new("/d/pki/ca.crt");
        let databases = [PathBuf::from("/h/.pki/nssdb")];
        let install = plan(false, authority, Some(&STORES[0]), &databases);
        assert_eq!(install.len(), 4);
        assert_eq!(
            install[0],
            Step::Copy {
                from: authority.to_owned(),
                to: "/usr/local/share/ca-certificates/fairway.crt".into(),
            }
        );
        let uninstall = plan(true, authority, Some(&STORES[0]), &databases);
        assert_eq!(
            uninstall[0],
            Step::Remove("/usr/local/share/ca-certificates/fairway.crt".into())
        );
        assert_eq!(uninstall.len(), 3);
        assert!(
            plan(false, authority, None, &[]).is_empty(),
            "nothing is done by halves"
        );
    }
}
