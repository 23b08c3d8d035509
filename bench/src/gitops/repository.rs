//! A working copy with one directory for each application, and where it is pushed to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The applications' directories are below this one.
pub(super) const FOLDER: &str = "apps";
pub(super) const NAMESPACE: &str = "shop";

pub(super) struct Repository {
    path: PathBuf,
    /// Where it is pushed to, with a token if one is needed.
    remote: String,
    /// As Applications name it.
    pub(super) url: String,
    environment: Vec<(String, String)>,
}

impl Repository {
    /// An empty working copy.
    pub(super) fn new(
        path: &Path,
        remote: String,
        url: String,
        environment: Vec<(String, String)>,
    ) -> Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        let repository = Self {
            path: path.to_owned(),
            remote,
            url,
            environment,
        };
        repository.git(&["init", "--quiet", "--initial-branch=main"])?;
        Ok(repository)
    }

    /// Writes the files of `count` applications of four objects each.
    pub(super) fn fill(&self, count: usize) -> Result<()> {
        for number in 0..count {
            for (file, text) in manifests(number) {
                self.write(number, file, &text)?;
            }
        }
        Ok(())
    }

    /// Changes one file of one application.
    pub(super) fn change(&self, number: usize, value: &str) -> Result<()> {
        self.write(number, "settings.yaml", &settings(number, value))
    }

    fn write(&self, number: usize, file: &str, text: &str) -> Result<()> {
        let directory = self.path.join(FOLDER).join(application(number));
        std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::write(directory.join(file), text))
            .with_context(|| format!("cannot write to {}", directory.display()))
    }

    /// Commits everything; the commit's hash.
    pub(super) fn commit(&self, message: &str) -> Result<String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", message])?;
        self.git(&["rev-parse", "HEAD"])
    }

    pub(super) fn push(&self) -> Result<()> {
        self.git(&["push", "--quiet", &self.remote, "main"]).map(drop)
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(&self.path)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs([
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_AUTHOR_NAME", "bench"),
                ("GIT_AUTHOR_EMAIL", "bench@example.com"),
                ("GIT_COMMITTER_NAME", "bench"),
                ("GIT_COMMITTER_EMAIL", "bench@example.com"),
            ])
            .output()
            .context("cannot run git")?;
        ensure!(
            output.status.success(),
            "git {} failed: {}",
            arguments.first().unwrap_or(&""),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// The name of an application, of its directory and of its objects.
pub(super) fn application(number: usize) -> String {
    format!("app-{number:05}")
}

fn settings(number: usize, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\ndata:\n  greeting: {value:?}\n  replicas: \"3\"\n",
        application(number)
    )
}

/// A ConfigMap, a Service, a ServiceAccount and a Role: what both servers make nothing more of.
fn manifests(number: usize) -> [(&'static str, String); 4] {
    let name = application(number);
    [
        ("settings.yaml", settings(number, "hello")),
        (
            "service.yaml",
            format!(
                "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  labels:\n    app: {name}\nspec:\n  \
                 clusterIP: None\n  selector:\n    app: {name}\n  ports:\n  - name: http\n    port: 80\n"
            ),
        ),
        (
            "account.yaml",
            format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n"),
        ),
        (
            "role.yaml",
            format!(
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {name}\nrules:\n- apiGroups: \
                 ['']\n  resources: [configmaps]\n  verbs: [get]\n"
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_is_four_objects_of_its_name() {
        let files = manifests(7);
        assert_eq!(files.len(), 4);
        assert!(files.iter().all(|(_, text)| text.contains("  name: app-00007\n")));
        assert_ne!(settings(7, "a"), settings(7, "b"));
    }
}
