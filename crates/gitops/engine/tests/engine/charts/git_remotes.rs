//! Repositories elsewhere, with the real `git`: over TLS with a password and a certificate of our own, and over SSH where
//! `sshd` is installed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dependencies::Repo;
use super::server::{Server, identity, ok, status};
use super::{basic, refresh, says, secret};
use crate::harness::{At, World, automated, map};

fn message(found: &Value) -> &str {
    found["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap_or_default()
}

fn of_git(url: &str) -> Value {
    let mut change = automated();
    change["spec"]["source"] = json!({"repoURL": url, "path": "web", "targetRevision": "main"});
    change
}

fn manifest(word: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{says: {word}}}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_behind_tls_wants_a_password() {
    let mut world = World::start(At::Root).await;
    world.use_real_sources(|_| None).await;
    let repo = Repo::new();
    let first = repo.push(&[("web/map.yaml", &manifest("one"))]);
    let (identity, root) = (identity(), repo.bare.clone());
    // Plain files are enough for git to fetch.
    let server = Server::start(Some(&identity), move |asked| {
        if asked.authorization != Some(basic("anna", "s3cret")) {
            return status(401, &[("www-authenticate", "Basic realm=git".to_owned())]);
        }
        let path = asked.path.split('?').next().unwrap();
        match std::fs::read(root.join(path.trim_start_matches("/shop/web.git/"))) {
            Ok(bytes) => ok(bytes),
            Err(_) => status(404, &[]),
        }
    })
    .await;
    let url = format!("https://{}/shop/web.git", server.address);
    world.application("web", of_git(&url)).await;
    let found = world
        .until("web", "refused", |found| !message(found).is_empty())
        .await;
    assert!(message(&found).contains("certificate"), "{}", message(&found));
    let trusted =
        json!({"metadata": {"name": "argocd-tls-certs-cm"}, "data": {"127.0.0.1": identity.certificate}});
    world
        .create("/api/v1/namespaces/argocd/configmaps", trusted)
        .await;
    refresh(&world, "normal").await;
    world
        .until("web", "asked for a password", |found| {
            !message(found).is_empty() && !message(found).contains("certificate")
        })
        .await;
    let fields = json!({"type": "git", "url": format!("https://{}/shop", server.address), "username": "anna", "password": "s3cret"});
    secret(&world, "git", "repo-creds", fields).await;
    refresh(&world, "normal").await;
    world.synced("web", &first).await;
    assert_eq!(says(&world, "web").await, "one");

    let second = repo.push(&[("web/map.yaml", &manifest("two"))]);
    refresh(&world, "normal").await;
    world.synced("web", &second).await;
    let shown = world.get_application("web").await.to_string();
    assert!(!shown.contains("s3cret"));
    world.end().await;
}

/// A real `sshd` on loopback that lets one key in.
struct Sshd {
    child: Child,
    port: u16,
    host_key: String,
    key: String,
    _place: tempfile::TempDir,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

impl Sshd {
    fn start() -> Option<Self> {
        let program = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"]
            .into_iter()
            .find(|path| Path::new(path).exists())?;
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        keygen(&at("host"));
        keygen(&at("id"));
        std::fs::copy(at("id.pub"), at("authorized")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin yes\n",
            at("host").display(),
            at("authorized").display()
        );
        std::fs::write(at("config"), config).unwrap();
        // Where it leaves its privileges; packages make it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let mut child = Command::new(program)
            .args(["-D", "-e", "-f"])
            .arg(at("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Ok(Some(_)) = child.try_wait() {
                println!(
                    "SKIPPED: sshd does not start here: {}",
                    std::fs::read_to_string(at("log")).unwrap()
                );
                return None;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        let public = std::fs::read_to_string(at("host.pub")).unwrap();
        Some(Self {
            child,
            port,
            host_key: format!("[127.0.0.1]:{port} {public}"),
            key: std::fs::read_to_string(at("id")).unwrap(),
            _place: place,
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_behind_ssh_wants_a_key_and_shows_its_own() {
    let Some(sshd) = Sshd::start() else {
        println!("SKIPPED: there is no sshd on this machine");
        return;
    };
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let mut world = World::start(At::Root).await;
    world.use_real_sources(|_| None).await;
    let repo = Repo::new();
    let first = repo.push(&[("web/map.yaml", &manifest("one"))]);
    let url = format!("ssh://{user}@127.0.0.1:{}{}", sshd.port, repo.bare.display());
    let fields = json!({"type": "git", "url": url, "sshPrivateKey": sshd.key});
    secret(&world, "ssh", "repository", fields).await;
    world.application("web", of_git(&url)).await;
    let found = world
        .until("web", "refused", |found| !message(found).is_empty())
        .await;
    assert!(
        message(&found).contains("Host key verification failed"),
        "{}",
        message(&found)
    );
    let hosts = json!({"metadata": {"name": "argocd-ssh-known-hosts-cm"}, "data": {"ssh_known_hosts": sshd.host_key}});
    world.create("/api/v1/namespaces/argocd/configmaps", hosts).await;
    refresh(&world, "normal").await;
    world.synced("web", &first).await;

    // Whoever it is, if the Secret says so.
    let path = "/api/v1/namespaces/argocd/configmaps/argocd-ssh-known-hosts-cm";
    world.api.delete(path).await.unwrap();
    let patch = json!({"stringData": {"insecureIgnoreHostKey": "true"}});
    world
        .api
        .merge("/api/v1/namespaces/argocd/secrets/ssh", &patch)
        .await
        .unwrap();
    let second = repo.push(&[
        ("web/map.yaml", &manifest("two")),
        ("web/more.yaml", &map("more", "1", &[])),
    ]);
    refresh(&world, "normal").await;
    world.synced("web", &second).await;
    assert_eq!(says(&world, "web").await, "two");
    world.end().await;
}
