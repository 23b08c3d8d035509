//! iperf3 in a guest: through the switch, beside QEMU's own network and beside devices of the kernel.
//!
//! The host's own iperf3 is brought into the guest with its libraries, as the image has none. Between host and guest it goes through a port of the
//! host; between two guests only where there is a network of more than one.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::process::Command;

use super::boot::{self, Ports};
use super::by_hand::{Disk, Hand};
use super::guest::TINY;
use super::{Bench, Options, objects};

/// The guest that sends to the other.
const SENDER: &str = "sender";
const PATIENCE: Duration = Duration::from_secs(180);
/// Runs of each; the median counts.
const RUNS: usize = 3;
/// Between two of them, and how many may fail.
const BETWEEN: Duration = Duration::from_secs(1);
const RETRIES: u32 = 5;
/// How the programs are started in a guest.
const PROGRAM: &str = "i/ld-linux-x86-64.so.2 --library-path i i/iperf3";

/// Megabits a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    pub(super) in_: Option<f64>,
    pub(super) out: Option<f64>,
    pub(super) between: Option<f64>,
}

/// One way that packets go.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// Or why it was not measured.
    pub(super) rates: Result<Rates, String>,
}

pub(super) async fn measure(options: &Options, bench: &Bench, seconds: u32) -> Result<Vec<Way>> {
    let pack = pack(&bench.scratch).await?;
    eprintln!("iperf3 through the switch");
    let ports = bench.ports(TINY.image).await?;
    let switch = fairway(bench, ports, &pack, seconds).await?;
    eprintln!("iperf3 through QEMU's own network");
    let slirp = slirp(bench, ports.ssh, &pack, seconds).await?;
    eprintln!("iperf3 through devices of the kernel");
    let tap = tap(options, &pack, seconds).await?;
    Ok(vec![
        Way {
            name: "Fairway, the switch (`--machine-network user`)",
            rates: Ok(switch),
        },
        Way {
            name: "QEMU's own network (slirp), by hand",
            rates: Ok(slirp),
        },
        Way {
            name: "Fairway, devices of the kernel (`--machine-network tap`)",
            rates: tap,
        },
    ])
}

/// Two machines of Fairway.
async fn fairway(bench: &Bench, ports: Ports, pack: &Path, seconds: u32) -> Result<Rates> {
    let sender = bench.ports(SENDER).await?;
    for name in [TINY.image, SENDER] {
        let machine = objects::booting(name, &TINY, &bench.key.public);
        bench.create(objects::MACHINES, &machine).await?;
    }
    for port in [ports.ssh, sender.ssh] {
        bench.key.login(port).await?;
        unpack(bench, port, pack).await?;
    }
    let mut rates = host_and_guest(bench, ports, seconds).await?;
    let address = address(bench, TINY.image).await?;
    let command = format!("{PROGRAM} -c {address} -t {seconds} -J");
    rates.between = median_of(async || bench.key.run(sender.ssh, &command, None).await).await?;
    bench.clear().await?;
    Ok(rates)
}

async fn slirp(bench: &Bench, port: u16, pack: &Path, seconds: u32) -> Result<Rates> {
    let (_, template) = boot::run(bench, TINY, port).await?;
    let mut hand = Hand::start(bench.place(), &template, Disk::Layer).await?;
    hand.login(&bench.key).await?;
    unpack(bench, hand.ports.ssh, pack).await?;
    let rates = host_and_guest(bench, hand.ports, seconds).await?;
    hand.end().await?;
    Ok(rates)
}

/// A Fairway of its own, as what carries frames is decided when it starts. The inner error: this host cannot.
async fn tap(options: &Options, pack: &Path, seconds: u32) -> Result<Result<Rates, String>> {
    let directory = tempfile::Builder::new().prefix("t").tempdir_in(&options.data)?;
    let other = Bench::start(
        options,
        directory.path(),
        &["--machine-network=tap"],
        &[TINY.image],
    )
    .await?;
    let outcome = async {
        if let Some(why) = no_kernel(&other).await? {
            return Ok(Err(why));
        }
        let ports = other.ports(TINY.image).await?;
        fairway(&other, ports, pack, seconds).await.map(Ok)
    }
    .await;
    let cleared = other.clear().await;
    // Not killed: its network namespace would be left.
    other.server.end().await?;
    cleared?;
    outcome
}

/// Why the kernel does not carry frames, if it does not.
async fn no_kernel(bench: &Bench) -> Result<Option<String>> {
    let began = Instant::now();
    loop {
        let nodes = bench.get(objects::NODES).await?.unwrap_or_default();
        let conditions = nodes["items"][0]["status"]["conditions"].as_array();
        let told = conditions
            .into_iter()
            .flatten()
            .find(|it| it["type"] == "fairway.dev/KernelDataPath");
        match told {
            Some(told) if told["status"] == "True" => return Ok(None),
            Some(told) => return Ok(Some(told["message"].as_str().unwrap_or_default().to_owned())),
            None if began.elapsed() > PATIENCE => bail!("the Node does not say what carries frames"),
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn address(bench: &Bench, machine: &str) -> Result<String> {
    let path = format!("{}/{machine}", objects::INSTANCES);
    let instance = bench.get(&path).await?.context("the machine is gone")?;
    let address = instance["status"]["interfaces"][0]["ipAddress"].as_str();
    Ok(address.context("the machine has no address")?.to_owned())
}

/// Both directions between this host and a guest whose server runs.
async fn host_and_guest(bench: &Bench, ports: Ports, seconds: u32) -> Result<Rates> {
    let start = format!("setsid {PROGRAM} -s --forceflush > i/log 2>&1 < /dev/null &");
    bench.key.run(ports.ssh, &start, None).await?;
    // Ports of the host take connections whether or not anybody listens in the guest.
    let began = Instant::now();
    while !bench
        .key
        .run(ports.ssh, "cat i/log", None)
        .await?
        .contains("Server listening")
    {
        if began.elapsed() > PATIENCE {
            bail!("iperf3 does not listen in the guest");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(Rates {
        in_: from_host(ports.iperf, seconds, false).await?,
        out: from_host(ports.iperf, seconds, true).await?,
        between: None,
    })
}

async fn from_host(port: u16, seconds: u32, is_reverse: bool) -> Result<Option<f64>> {
    median_of(async || {
        let mut command = Command::new("iperf3");
        command.args([
            "-c",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-t",
            &seconds.to_string(),
            "-J",
        ]);
        if is_reverse {
            command.arg("-R");
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let running = tokio::time::timeout(PATIENCE, command.output()).await;
        let done = running
            .context("iperf3 does not end")?
            .context("cannot run iperf3")?;
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    })
    .await
}

/// Runs a client some times. Between two runs the server does not listen for a moment, so that one may have to be tried again.
async fn median_of<F>(mut run: F) -> Result<Option<f64>>
where
    F: AsyncFnMut() -> Result<String>,
{
    let mut all = Vec::new();
    let mut failures = 0;
    while all.len() < RUNS {
        tokio::time::sleep(BETWEEN).await;
        let outcome = run().await;
        match outcome.as_deref().ok().and_then(rate) {
            Some(rate) => all.push(rate),
            None if failures < RETRIES => failures += 1,
            None => bail!(
                "iperf3 says: {}",
                outcome.unwrap_or_else(|error| error.to_string())
            ),
        }
    }
    Ok(median(all))
}

/// Megabits a second that arrived.
fn rate(said: &str) -> Option<f64> {
    let told: Value = serde_json::from_str(said).ok()?;
    Some(told["end"]["sum_received"]["bits_per_second"].as_f64()? / 1e6)
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// The host's iperf3 and its libraries, in one file.
async fn pack(scratch: &Path) -> Result<PathBuf> {
    let script = r#"program=$(command -v iperf3) || { echo 'iperf3 is not installed' >&2; exit 1; }
        tar -chPf "$1" --transform 's|.*/||' "$program" $(ldd "$program" | grep -o '/[^ ]*')"#;
    let file = scratch.join("iperf3.tar");
    let done = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&file)
        .output()
        .await?;
    if !done.status.success() {
        bail!("{}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(file)
}

async fn unpack(bench: &Bench, port: u16, pack: &Path) -> Result<()> {
    let command = "mkdir -p i && tar -xf - -C i && chmod +x i/*";
    bench.key.run(port, command, Some(pack)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_counts() {
        let said =
            r#"{"end": {"sum_sent": {"bits_per_second": 9e8}, "sum_received": {"bits_per_second": 5.26e8}}}"#;
        assert_eq!(rate(said), Some(526.0));
        assert_eq!(rate(r#"{"error": "unable to connect to server"}"#), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
