//! A `fairway` process of its own: start it, talk to it, kill it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};

/// How long a start may take on a loaded machine.
const START: Duration = Duration::from_secs(60);

/// A server that runs.
pub(crate) struct Process {
    child: Child,
    data: PathBuf,
}

impl Process {
    /// Starts one and waits until it is ready.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// Starts one with these arguments besides.
    pub(crate) fn start_with(data: &Path, arguments: &[&str]) -> Self {
        Self::wait(Self::command(data, None).args(arguments).spawn().unwrap(), data)
    }

    /// Starts one that trusts an authority when it calls others.
    #[allow(dead_code, reason = "the tests of notifications use it")]
    pub(crate) fn start_trusting(data: &Path, arguments: &[&str], authority: &Path) -> Self {
        let mut command = Self::command(data, None);
        command.args(arguments).env("SSL_CERT_FILE", authority);
        Self::wait(command.spawn().unwrap(), data)
    }

    /// Starts one whose files cannot grow beyond this many bytes.
    pub(crate) fn start_limited(data: &Path, bytes: u64) -> Self {
        Self::wait(Self::spawn(data, Some(bytes)), data)
    }

    /// Starts one and does not wait.
    pub(crate) fn spawn(data: &Path, limit: Option<u64>) -> Child {
        Self::command(data, limit).spawn().unwrap()
    }

    fn command(data: &Path, limit: Option<u64>) -> Command {
        let program = env!("CARGO_BIN_EXE_fairway");
        let mut command = match limit {
            None => Command::new(program),
            Some(bytes) => {
                // Ignored signals stay ignored over exec; without that, the first write too far would end the process.
                let mut shell = Command::new("bash");
                let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"", bytes / 1024);
                shell.args(["-c", &script, program]);
                shell
            }
        };
        command
            .args([
                "up",
                "--listen",
                "127.0.0.1:0",
                "--no-audit",
                "--log",
                "warn",
                "--data",
            ])
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command
    }

    fn wait(mut child: Child, data: &Path) -> Self {
        let began = Instant::now();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The welcome is printed when everything can be used.
        let ready = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.starts_with("Fairway is ready"));
        assert!(
            ready,
            "the server ended while it was starting: {:?}",
            child.wait()
        );
        assert!(began.elapsed() < START, "the start took {:?}", began.elapsed());
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            data: data.to_owned(),
        }
    }

    /// A client with the administrator's rights.
    pub(crate) async fn client(&self) -> kube::Client {
        let file = Kubeconfig::read_from(self.data.join("kubeconfig")).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
            .await
            .unwrap();
        // Each answer counts here, also the first 503.
        config.default_retry = false;
        kube::Client::try_from(config).unwrap()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and wait until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
