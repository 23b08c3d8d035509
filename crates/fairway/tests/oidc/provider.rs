//! The OIDC provider of tests/oidc, started by a test.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use fairway_kernel_apiserver::chance::Clock;
use fairway_kernel_apiserver::pki;
use serde_json::Value;

/// Where the provider's packages are, if they and node are there.
pub(crate) fn modules() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let modules = root.join(".tools/oidc/node_modules");
    let node = Command::new("node").arg("--version").output().is_ok();
    (node && modules.join("oidc-provider").exists()).then_some(modules)
}

pub(crate) struct Provider {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) issuer: String,
    tokens: Value,
}

impl Provider {
    pub(crate) fn start(modules: &Path, directory: &Path) -> (Self, String) {
        let now = Clock.unix();
        let authority = pki::new_authority(now).unwrap();
        let pair = pki::Authority::load(&authority)
            .unwrap()
            .serving(
                &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
                &["localhost"],
                pki::LEAF_SECONDS,
                now,
            )
            .unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oidc/provider.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .arg(modules)
            .arg(write("provider.crt", &pair.certificate))
            .arg(write("provider.key", &pair.key))
            .arg(write("provider-ca.crt", &authority.certificate))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut provider = Self {
            child,
            lines,
            issuer: String::new(),
            tokens: Value::Null,
        };
        provider.read();
        (provider, authority.certificate)
    }

    fn read(&mut self) {
        let text = loop {
            let line = self.lines.next().expect("the provider has ended").unwrap();
            if line.starts_with('{') {
                break line;
            }
        };
        let line: Value = serde_json::from_str(&text).unwrap();
        self.issuer = line["issuer"].as_str().unwrap().to_owned();
        self.tokens = line["tokens"].clone();
    }

    /// Tells it a line, and waits until it has done as told.
    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
        self.read();
    }

    pub(crate) fn token(&self, client: &str) -> String {
        self.tokens[client].as_str().unwrap().to_owned()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
