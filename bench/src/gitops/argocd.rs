//! Argo CD as `manifests/install.yaml` makes it, without Dex and notifications: Redis, the repo server, the application
//! controller, the server and the ApplicationSet controller, on etcd and kube-apiserver. One binary, told by its name.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::net::TcpStream;

use super::repository::Repository;
use super::side::{Part, Side};
use crate::client::{Call, Client};
use crate::peer;
use crate::server::{self, absolute, free_port};

const MODULE: &str = "github.com/argoproj/argo-cd/v3";
const SETTINGS: &str = r#"{"stringData":{"server.secretkey":"only-for-this-run"}}"#;
const PROJECT: &str = r#"{"apiVersion":"argoproj.io/v1alpha1","kind":"AppProject",
    "metadata":{"name":"default","namespace":"argocd"},
    "spec":{"sourceRepos":["*"],"destinations":[{"namespace":"*","server":"*"}],
        "clusterResourceWhitelist":[{"group":"*","kind":"*"}]}}"#;
/// How long a component may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Where go keeps Argo CD's module.
pub(super) fn module() -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", MODULE])
        .current_dir("bench/peers/argocd")
        .output()
        .context(
            "cannot ask go for Argo CD's module (run from the repository's root, or name it with --module)",
        )?;
    ensure!(
        output.status.success(),
        "go knows no module of Argo CD: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

struct Components<'a> {
    binary: PathBuf,
    directory: &'a Path,
}

impl Components<'_> {
    fn spawn(&self, name: &'static str, arguments: Vec<String>) -> Result<Part> {
        let file = |folder: &str| self.directory.join(folder).display().to_string();
        let log = self.directory.join(format!("{name}.log"));
        let output = std::fs::File::create(&log)?;
        let child = tokio::process::Command::new(&self.binary)
            .args(arguments)
            .envs([
                ("ARGOCD_BINARY_NAME", name.to_owned()),
                ("KUBECONFIG", file("kubeconfig")),
                ("ARGOCD_FAKE_IN_CLUSTER", "true".to_owned()),
                ("ARGOCD_GPG_ENABLED", "false".to_owned()),
                ("ARGOCD_TLS_DATA_PATH", file("tls")),
                ("ARGOCD_SSH_DATA_PATH", file("ssh")),
                ("TMPDIR", file("tmp")),
            ])
            .stdin(std::process::Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        Ok(Part { name, child })
    }
}

pub(super) async fn start(bin: &Path, directory: &Path, module: &Path) -> Result<Side> {
    let (bin, directory) = (absolute(bin)?, absolute(directory)?);
    for folder in ["tls", "ssh", "tmp"] {
        std::fs::create_dir_all(directory.join(folder))?;
    }
    let api = peer::start(&bin, &directory, false).await?;
    install(&bin, &directory, module)?;
    let client = Client::connect(&api.endpoint).await?;
    let projects = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects";
    client.send(Call::create(projects, PROJECT)).await?.success()?;

    let components = Components {
        binary: bin.join("argocd"),
        directory: &directory,
    };
    let (redis, manifests) = (free_port()?, free_port()?);
    let redis_at = format!("--redis=127.0.0.1:{redis}");
    let manifests_at = format!("--repo-server=127.0.0.1:{manifests}");
    let plain = || "--repo-server-plaintext".to_owned();
    let log = "--loglevel=warn".to_owned();
    let mut parts = vec![start_redis(&directory, redis)?];
    parts.push(components.spawn(
        "argocd-repo-server",
        vec![
            redis_at.clone(),
            "--disable-tls".to_owned(),
            "--address=127.0.0.1".to_owned(),
            format!("--port={manifests}"),
            format!("--metrics-port={}", free_port()?),
            log.clone(),
        ],
    )?);
    parts.push(components.spawn(
        "argocd-application-controller",
        vec![
            redis_at.clone(),
            manifests_at.clone(),
            plain(),
            "--namespace=argocd".to_owned(),
            log.clone(),
        ],
    )?);
    let port = free_port()?;
    parts.push(components.spawn(
        "argocd-server",
        vec![
            redis_at,
            manifests_at,
            plain(),
            "--insecure".to_owned(),
            "--namespace=argocd".to_owned(),
            "--address=127.0.0.1".to_owned(),
            format!("--port={port}"),
            format!("--metrics-port={}", free_port()?),
            log.clone(),
        ],
    )?);
    parts.push(components.spawn(
        "argocd-applicationset-controller",
        vec![
            format!("--argocd-repo-server=127.0.0.1:{manifests}"),
            plain(),
            "--namespace=argocd".to_owned(),
            format!("--metrics-addr=127.0.0.1:{}", free_port()?),
            format!("--probe-addr=127.0.0.1:{}", free_port()?),
            format!("--webhook-addr=127.0.0.1:{}", free_port()?),
            log,
        ],
    )?);
    for awaited in [redis, manifests, port] {
        listens(awaited, &mut parts, &directory).await?;
    }
    let origin = directory.join("origin.git");
    let made = Command::new("git")
        .args(["init", "--quiet", "--bare", "--initial-branch=main"])
        .arg(&origin)
        .status();
    ensure!(made.context("cannot run git")?.success(), "git init failed");
    let repository = Repository::new(
        &directory.join("work"),
        origin.display().to_string(),
        format!("file://{}", origin.display()),
        Vec::new(),
    )?;
    Ok(Side {
        api,
        parts,
        repository,
        needs_refresh: true,
    })
}

fn start_redis(directory: &Path, port: u16) -> Result<Part> {
    let arguments = ["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""].map(str::to_owned);
    let log = directory.join("redis.log");
    let child = server::spawn(Path::new("redis-server"), &arguments, &log)?;
    Ok(Part { name: "redis", child })
}

fn install(bin: &Path, directory: &Path, module: &Path) -> Result<()> {
    let kubectl = |arguments: &[&str]| -> Result<()> {
        let output = Command::new(bin.join("kubectl"))
            .args(arguments)
            .env("KUBECONFIG", directory.join("kubeconfig"))
            .output()
            .context("cannot run kubectl")?;
        ensure!(
            output.status.success(),
            "kubectl {} failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    };
    let install = module.join("manifests/install.yaml").display().to_string();
    kubectl(&["create", "namespace", "argocd"])?;
    // Server-side, because one of the definitions is too large for kubectl's annotation.
    kubectl(&[
        "apply",
        "--server-side",
        "--namespace=argocd",
        "--filename",
        &install,
    ])?;
    kubectl(&[
        "wait",
        "--for=condition=established",
        "crd/applications.argoproj.io",
        "crd/appprojects.argoproj.io",
    ])?;
    // The server would make the key at its first start.
    kubectl(&[
        "patch",
        "secret",
        "argocd-secret",
        "--namespace=argocd",
        "--type=merge",
        "--patch",
        SETTINGS,
    ])
}

async fn listens(port: u16, parts: &mut [Part], directory: &Path) -> Result<()> {
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        for part in parts.iter_mut() {
            let name = part.name;
            if let Some(status) = part.child.try_wait()? {
                let log = directory.join(format!("{name}.log"));
                let said = std::fs::read_to_string(log).unwrap_or_default();
                bail!("{name} ended with {status}: {said}");
            }
        }
        ensure!(
            started.elapsed() < START_LIMIT,
            "nothing listens on {port} after {START_LIMIT:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
