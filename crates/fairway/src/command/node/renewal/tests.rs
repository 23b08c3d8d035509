//! A certificate that lasts an hour, a server that signs, and a clock that the test sets.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use fairway_controller::{ClientFactory, ShutdownTrigger};
use fairway_kernel_apiserver::authn::UserInfo;
use fairway_kernel_apiserver::authn::token::Tokens;
use fairway_kernel_apiserver::client::InProcess;
use fairway_kernel_apiserver::pki::{Authority, new_authority};
use fairway_kernel_apiserver::{Kernel, KernelOptions, bootstrap};
use fairway_kernel_controllers::{CertificateSigner, SigningJob};
use fairway_kernel_store::MemoryStore;
use fairway_kernel_store::value::KeyRing;

use super::*;

const HOUR: i64 = 3_600;

/// Signs, at a time of its own.
struct Signer(Authority, i64);

impl CertificateSigner for Signer {
    fn sign(&self, job: &SigningJob) -> Result<String, String> {
        let signed = self.0.sign_request(&job.request, &job.usages, HOUR, self.1);
        signed.map_err(|error| error.to_string())
    }
}

struct World {
    kernel: Arc<Kernel>,
    authority: Authority,
    folder: tempfile::TempDir,
    _end: ShutdownTrigger,
}

impl World {
    async fn start(signs_at: i64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pair = new_authority(signs_at - HOUR).unwrap();
        let kernel = Kernel::start(KernelOptions {
            store: Arc::new(MemoryStore::new()),
            keys: Arc::new(KeyRing::load_or_create(&folder.path().join("keys")).unwrap()),
            token_key: Tokens::generate_key().unwrap(),
            issuer: "https://test".to_owned(),
            jwks_uri: "https://test/jwks".to_owned(),
            audit_log: None,
            kinds: Vec::new(),
        })
        .await
        .unwrap();
        bootstrap::run(&kernel).await.unwrap();
        let for_users = Arc::clone(&kernel);
        let clients = ClientFactory::across_workspaces(move |user: &str| {
            let groups = fairway_kernel_controllers::groups(user);
            InProcess::new(Arc::clone(&for_users), UserInfo::new(user, groups))
        });
        let service = std::net::Ipv4Addr::new(10, 96, 0, 1);
        let address = "192.0.2.7:6443".parse().unwrap();
        let options = fairway_kernel_controllers::Options {
            signer: Some(Arc::new(Signer(Authority::load(&pair).unwrap(), signs_at))),
            ..fairway_kernel_controllers::Options::new(clients, "", service, address)
        };
        let (end, shutdown) = Shutdown::new();
        tokio::spawn(fairway_kernel_controllers::run(options, Arc::default(), shutdown));
        Self {
            kernel,
            authority: Authority::load(&pair).unwrap(),
            folder,
            _end: end,
        }
    }

    /// A client of whoever a certificate would make it.
    fn client(&self, node: &str) -> Client {
        let user = UserInfo::new(
            format!("{}{node}", credentials::USER),
            ["system:nodes", "system:authenticated"],
        );
        Client::new(InProcess::new(Arc::clone(&self.kernel), user), "default")
    }

    /// The kubeconfig of a user whose certificate was made at a time.
    fn kubeconfig(&self, user: &str, made: i64) -> std::path::PathBuf {
        let path = self.folder.path().join("node.kubeconfig");
        let pair = self
            .authority
            .client(user, &["system:nodes"], HOUR, made)
            .unwrap();
        let content = credentials::kubeconfig("https://server:6443", "authority", "n1", &pair);
        write_private(&path, fairway_text_yaml::to_string(&content).as_bytes()).unwrap();
        path
    }
}

fn read(path: &Path) -> Value {
    let content = std::fs::read(path).unwrap();
    fairway_text_yaml::from_slice(&content, fairway_text_yaml::Limits::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_replaced_before_it_ends() {
    let made = 1_800_000_000;
    let late = made + 54 * 60;
    let world = World::start(late).await;
    let path = world.kubeconfig("system:node:n1", made);
    let before = read(&path);
    let client = world.client("n1");

    // It is good for a while: nobody is asked, and nothing is written.
    for (now, why) in [(made, "new"), (made + HOUR / 2, "half of its life is left")] {
        let Ok(Renewal::In(left)) = renew(&path, &client, now).await else {
            panic!("{why}");
        };
        let at = now + i64::try_from(left.as_secs()).unwrap();
        assert!(
            (made + 36 * 60..=late).contains(&at),
            "{why}: renewed at {}",
            at - made
        );
    }
    assert_eq!(read(&path), before);

    let renewed = renew(&path, &client, late).await.unwrap();
    assert_eq!(renewed, Renewal::Done("n1".to_owned()));
    let after = read(&path);
    assert_eq!(after["clusters"], before["clusters"], "the server is the same");
    let (certificate, node) = credentials::of_kubeconfig(&after).unwrap();
    assert_eq!(node, "n1");
    assert!(
        certificate.life.end > made + HOUR,
        "it lasts longer than the old one"
    );
    let key = |config: &Value| config["users"][0]["user"]["client-key-data"].clone();
    assert_ne!(key(&after), key(&before), "and has a key of its own");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The new one is left alone.
    let Ok(Renewal::In(_)) = renew(&path, &client, late).await else {
        panic!("it would be renewed for ever");
    };
    // One that has ended already, as after a long sleep of the host, is still replaced while the server takes it.
    world.kubeconfig("system:node:n1", made);
    let renewed = renew(&path, &client, made + 2 * HOUR).await.unwrap();
    assert_eq!(renewed, Renewal::Done("n1".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_leaves_the_old_certificate() {
    let made = 1_800_000_000;
    let world = World::start(made).await;
    let path = world.kubeconfig("system:node:n1", made);
    let before = read(&path);
    // Whoever is n2 gets no certificate of n1. That nobody approves it is noticed by patience alone.
    let asked = credentials::ask(&world.client("n2"), "n1", Duration::from_secs(2)).await;
    assert!(asked.is_err());
    assert_eq!(read(&path), before);
    // A person's kubeconfig is his own to look after.
    let path = world.kubeconfig("anna", made);
    let looked = renew(&path, &world.client("n1"), made + HOUR).await.unwrap();
    assert_eq!(looked, Renewal::NoNode);
    std::fs::remove_file(&path).unwrap();
    let gone = renew(&path, &world.client("n1"), made).await.unwrap_err();
    assert!(gone.to_string().contains("is gone"), "{gone}");
}
