//! People of another provider at the portal and on the command line: a real OIDC provider (npm's `oidc-provider`), real HTTP, and a
//! browser that follows where it is sent.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test")]

#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "portal/browser.rs"]
mod browser;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "faults/process.rs"]
mod process;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "oidc/provider.rs"]
mod provider;
#[allow(dead_code, reason = "other tests use the rest of it")]
#[path = "githost/tools.rs"]
mod tools;

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use browser::{Answered, Browser, ID, PORTAL};
use fairway_controller::Requests;
use process::Process;
use provider::{Provider, modules};
use serde_json::{Value, json};
use tools::{fairway, web_port};

const KINDS: &str = "/clusters/root:acme/apis/fairway.dev/v1alpha1";
const LOGIN: &str = "/auth/login?org=acme";

struct World {
    data: PathBuf,
    provider: Provider,
    /// Where the provider's authority is, in the form that browsers look for it.
    there: PathBuf,
    port: u64,
    requests: Requests,
    _process: Process,
    _place: tempfile::TempDir,
}

impl World {
    async fn start(modules: &Path) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (data, there) = (place.path().join("data"), place.path().join("there"));
        std::fs::create_dir_all(&data).unwrap();
        std::fs::create_dir_all(there.join("pki")).unwrap();
        let (mut provider, authority) = Provider::start(modules, &there);
        std::fs::write(there.join("pki/ca.crt"), &authority).unwrap();
        let process = Process::start_with(&data, &["--webhook-allowed-hosts", "loopback"]);
        let requests = Requests::new(process.client().await);
        fairway(&data, &["org", "create", "acme"]);
        let port = web_port(&data);
        provider.tell(&format!(
            "realm https://{ID}:{port}/realms/acme/external/upstream/callback"
        ));
        let world = Self {
            data,
            provider,
            there,
            port,
            requests,
            _process: process,
            _place: place,
        };
        world.settings(&authority).await;
        world
    }

    async fn make(&self, kind: &str, plural: &str, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        let made = self.requests.create(&format!("{KINDS}/{plural}"), &object).await;
        assert!(made.unwrap(), "{name} is there already");
    }

    async fn get(&self, plural: &str, name: &str) -> Value {
        let found = self.requests.get(&format!("{KINDS}/{plural}/{name}")).await;
        found.unwrap().unwrap_or_default()
    }

    async fn members(&self, group: &str) -> Value {
        self.get("groups", group).await["spec"]["members"].clone()
    }

    async fn settings(&self, authority: &str) {
        let upstream = json!({
            "name": "upstream", "displayName": "Upstream", "issuer": self.provider.issuer, "clientID": "realm",
            "certificateAuthority": authority,
        });
        let with = |field: &str, value: &str| {
            let mut changed = upstream.clone();
            changed[field] = json!(value);
            json!({
                "apiVersion": "fairway.dev/v1alpha1", "kind": "Realm", "metadata": {"name": "realm"},
                "spec": {"identityProviders": [changed]},
            })
        };
        for (field, value, told) in [
            ("issuer", "http://keycloak.example", "issuer must be the address"),
            ("issuer", "https://a?b", "issuer must be the address"),
            ("name", "Key/Cloak", "name must be of lower case letters"),
        ] {
            let refused = self
                .requests
                .create(&format!("{KINDS}/realms"), &with(field, value))
                .await;
            let why = format!("{:?}", refused.unwrap_err());
            assert!(why.contains(told), "{field}={value}: {why}");
        }
        let wrong = json!({
            "apiVersion": "fairway.dev/v1alpha1", "kind": "Group", "metadata": {"name": "wrong"},
            "spec": {"externalGroups": ["dev"]},
        });
        let refused = self.requests.create(&format!("{KINDS}/groups"), &wrong).await;
        let why = format!("{:?}", refused.unwrap_err());
        assert!(why.contains("each must be PROVIDER:GROUP"), "{why}");
        let spec = with("name", "upstream")["spec"].clone();
        self.make("Realm", "realms", "realm", spec).await;
        let secret = json!({"clientSecret": "secret of realm"});
        self.make("Credential", "credentials", "provider.upstream", secret)
            .await;
        for (name, group) in [("developers", "dev"), ("operators", "ops")] {
            let spec = json!({"externalGroups": [format!("upstream:{group}")]});
            self.make("Group", "groups", name, spec).await;
        }
    }

    fn browser(&self) -> Browser {
        Browser::new(&self.data, self.port)
    }

    /// Goes to a sign-in page and follows its button to the provider; where that sends the browser back to.
    async fn by_the_button(&self, browser: &mut Browser, page: &str, subject: &str) -> String {
        let shown = browser.send(("GET", ID, page), &[], "").await;
        assert_eq!(shown.status, 200, "{}", shown.text());
        let text = shown.text();
        assert!(text.contains(">Sign in with Upstream</a>"), "{text}");
        let (_, rest) = text.split_once("href=\"external/").unwrap();
        let link = rest.split_once('"').unwrap().0.replace("&amp;", "&");
        let begun = browser
            .send(("GET", ID, &format!("/realms/acme/external/{link}")), &[], "")
            .await;
        assert_eq!(begun.status, 303, "{}", begun.text());
        self.at_the_provider(begun.location(), subject).await
    }

    /// Signs somebody in at the provider.
    async fn at_the_provider(&self, (mut host, mut path): (String, String), subject: &str) -> String {
        let port = self.provider.issuer.rsplit(':').next().unwrap().parse().unwrap();
        let mut browser = Browser::new(&self.there, port);
        for _ in 0..5 {
            if host == ID {
                return path;
            }
            let headers = [("x-account", subject)];
            let answered = browser.send(("GET", "127.0.0.1", &path), &headers, "").await;
            assert_eq!(answered.status, 303, "{}", answered.text());
            match answered.header("location") {
                here if here.starts_with('/') => path = here.to_owned(),
                _ => (host, path) = answered.location(),
            }
        }
        panic!("the provider sends the browser round and round");
    }

    /// Signs in at the portal; the answer of the callback.
    async fn come_back(&self, browser: &mut Browser, subject: &str) -> Answered {
        let begun = browser.get(LOGIN).await;
        let (_, page) = begun.location();
        let callback = self.by_the_button(browser, &page, subject).await;
        browser.send(("GET", ID, &callback), &[], "").await
    }

    /// The same, and on to the portal; who it says that this is.
    async fn sign_in(&self, subject: &str) -> String {
        let mut browser = self.browser();
        let answered = self.come_back(&mut browser, subject).await;
        assert_eq!(answered.status, 303, "{}", answered.text());
        let (host, path) = answered.location();
        assert_eq!(host, PORTAL);
        let answered = browser.get(&path).await;
        assert_eq!(answered.status, 303, "{}", answered.text());
        let session = browser.get("/auth/session").await;
        assert_eq!(session.status, 200, "{}", session.text());
        session.json()["user"]["name"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_of_another_provider_are_users_of_the_realm() {
    let Some(modules) = modules() else {
        println!("SKIPPED: needs node and the provider; run scripts/tools.sh oidc");
        return;
    };
    let mut world = World::start(&modules).await;
    let person = |name: &str, groups: &[&str]| json!({"preferred_username": name, "name": "A Person", "email": "a@example.com", "groups": groups});
    let all = json!({"1": person("Alice", &["dev"]), "2": person("bob", &["dev"])});
    world.provider.tell(&format!("people {all}"));
    fairway(&world.data, &["user", "create", "bob", "--org", "acme"]);

    // The first time somebody becomes a user, in the groups that follow from his.
    assert_eq!(world.sign_in("1").await, "acme/alice");
    let alice = world.get("users", "alice").await;
    let identity = json!({"issuer": world.provider.issuer, "subject": "1"});
    assert_eq!(
        alice["spec"],
        json!({"displayName": "A Person", "email": "a@example.com", "identity": identity})
    );
    assert_eq!(world.members("developers").await, json!(["alice"]));
    assert_eq!(world.members("operators").await, Value::Null);

    // Whoever is called otherwise there by now is still she; groups are left and joined.
    let all = json!({"1": person("Alicia", &["ops", "other"]), "2": person("bob", &["dev"])});
    world.provider.tell(&format!("people {all}"));
    assert_eq!(world.sign_in("1").await, "acme/alice");
    assert_eq!(world.members("developers").await, json!([]));
    assert_eq!(world.members("operators").await, json!(["alice"]));
    assert_eq!(world.get("users", "alicia").await, Value::Null);

    command_line(&world).await;
    misuse(&world).await;

    // A name is no proof, until an administrator says that it is he.
    let mut browser = world.browser();
    let refused = world.come_back(&mut browser, "2").await;
    let page = refused.text();
    assert_eq!(refused.status, 403, "{page}");
    assert!(page.contains("The name bob belongs to somebody here"), "{page}");
    assert!(
        page.contains("metadata: {name: bob}") && page.contains("root:acme"),
        "{page}"
    );
    assert!(!browser.cookies(ID).keys().any(|it| it.contains("session")));
    assert_eq!(world.get("users", "bob").await["spec"]["identity"], Value::Null);
    assert_eq!(world.members("developers").await, json!([]));
    let link = json!({"spec": {"identity": {"issuer": world.provider.issuer, "subject": "2"}}});
    world
        .requests
        .merge(&format!("{KINDS}/users/bob"), &link)
        .await
        .unwrap();
    assert_eq!(world.sign_in("2").await, "acme/bob");
    assert_eq!(world.members("developers").await, json!(["bob"]));

    // Whoever is disabled stays out, and in the groups that he was in.
    fairway(&world.data, &["user", "disable", "bob", "--org", "acme"]);
    let all = json!({"2": person("bob", &["ops"])});
    world.provider.tell(&format!("people {all}"));
    let refused = world.come_back(&mut world.browser(), "2").await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("disabled"), "{}", refused.text());
    assert_eq!(world.members("developers").await, json!(["bob"]));

    // New keys are found when a token names one.
    world.provider.tell("rotate");
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    fairway(&world.data, &["user", "enable", "bob", "--org", "acme"]);
    assert_eq!(world.sign_in("2").await, "acme/bob");
    assert_eq!(world.members("operators").await, json!(["alice", "bob"]));
}

/// `fairway login` with a browser that takes the button.
async fn command_line(world: &World) {
    let home = world.there.join("home");
    let kubeconfig = home.join("kubeconfig");
    std::fs::create_dir_all(&home).unwrap();
    let command = |words: &[&str], kubeconfig: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairway"));
        command
            .args(words)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("FAIRWAY_DATA", &world.data);
        command
    };
    let words = [
        "login",
        "--org",
        "acme",
        "--no-browser",
        "--write",
        kubeconfig.to_str().unwrap(),
    ];
    let mut login = command(&words, &world.data.join("kubeconfig"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(login.stdout.take().unwrap()).lines();
    let prefix = format!("https://{ID}:{}", world.port);
    let page = lines
        .find_map(|line| line.unwrap().trim().strip_prefix(&prefix).map(str::to_owned))
        .unwrap();
    let mut browser = world.browser();
    let callback = world.by_the_button(&mut browser, &page, "1").await;
    let answered = browser.send(("GET", ID, &callback), &[], "").await;
    assert_eq!(answered.status, 303, "{}", answered.text());
    let back = answered.header("location").strip_prefix("http://").unwrap();
    let (host, path) = back.split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    assert!(told.contains("You are signed in"), "{told}");
    let ended = tokio::task::spawn_blocking(move || login.wait()).await.unwrap();
    assert!(ended.unwrap().success());
    let output = command(&["whoami", "-o", "json"], &kubeconfig).output().unwrap();
    let who: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        who.to_string().contains("\"acme/operators\""),
        "{who} {complaint}"
    );
}

/// Callbacks that come twice, in another browser, or to another question.
async fn misuse(world: &World) {
    let mut browser = world.browser();
    let begun = browser.get(LOGIN).await;
    let (_, page) = begun.location();
    let first = world.by_the_button(&mut browser, &page, "1").await;
    let second = world.by_the_button(&mut browser, &page, "1").await;
    let parameter = |path: &str, name: &str| {
        let query = path.split_once('?').unwrap().1;
        let pair = query
            .split('&')
            .find_map(|it| it.strip_prefix(&format!("{name}=")));
        pair.unwrap().to_owned()
    };
    let elsewhere = world.browser().send(("GET", ID, &first), &[], "").await;
    assert_eq!(elsewhere.status, 400, "another browser");
    let unknown = first.replace(&parameter(&first, "state"), "made-up");
    let unknown = browser.send(("GET", ID, &unknown), &[], "").await;
    assert_eq!(unknown.status, 400, "a state that nobody drew");
    let crossed = first.replace(&parameter(&first, "code"), &parameter(&second, "code"));
    let crossed = browser.send(("GET", ID, &crossed), &[], "").await;
    assert_eq!(
        crossed.status,
        502,
        "the code of another question: {}",
        crossed.text()
    );
    let issuer = parameter(&second, "iss");
    let other = second.replace(&issuer, "https%3A%2F%2Fevil.example");
    let other = browser.send(("GET", ID, &other), &[], "").await;
    assert_eq!(other.status, 502, "another issuer: {}", other.text());
    let third = world.by_the_button(&mut browser, &page, "1").await;
    assert_eq!(browser.send(("GET", ID, &third), &[], "").await.status, 303);
    let again = browser.send(("GET", ID, &third), &[], "").await;
    assert_eq!(again.status, 400, "a second time");
}
