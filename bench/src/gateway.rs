//! The data plane of gateways beside nginx and HAProxy from Debian: the same backend, the same load, in turns.
//!
//! The figure that counts is the proxy's CPU time per request; rates and latencies stand beside it, because cores are shared
//! with the load and the backend. Every proxy is told to do what the others do: keep connections to the backend, and write
//! `X-Forwarded-For`, `X-Forwarded-Proto` and a request id.
//!
//! A case is a load on one of the proxies ([`CASES`]); cases with policies get a line there and, where a peer can do the same,
//! a configuration in `peers`.

mod peers;
mod wrk;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::process::Child;

use crate::process::{family_cpu, family_resident};
use crate::report::{self, Circumstances};

#[derive(Args)]
pub(crate) struct Options {
    /// The program that serves a table: the example `plain` of fairway-gateway-proxy.
    #[arg(long, default_value = "target/release/examples/plain")]
    proxy: PathBuf,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// For each case of a round.
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Where the report goes; without it, it is printed only.
    #[arg(long)]
    results: Option<PathBuf>,
}

/// What is measured: a proxy, and what it is asked for.
struct Case {
    name: &'static str,
    who: Who,
    path: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Nginx,
    Haproxy,
    /// With so many routes.
    Fairway(usize),
}

const CASES: [Case; 5] = [
    Case {
        name: "nginx, one worker",
        who: Who::Nginx,
        path: "/",
    },
    Case {
        name: "HAProxy, one thread",
        who: Who::Haproxy,
        path: "/",
    },
    Case {
        name: "Fairway",
        who: Who::Fairway(1),
        path: "/",
    },
    Case {
        name: "Fairway, 10 routes, the last one",
        who: Who::Fairway(10),
        path: "/route/9",
    },
    Case {
        name: "Fairway, 10,000 routes, the last one",
        who: Who::Fairway(10_000),
        path: "/route/9999",
    },
];

/// Of nginx's CPU time per request.
const FLOOR: f64 = 1.2;
/// 10,000 routes against 10.
const FLOOR_ROUTES: f64 = 1.1;
const FLOOR_CHANGE: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    cpu_micros: f64,
    per_second: f64,
    p99_millis: f64,
}

pub(crate) async fn run(options: &Options) -> Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory for configurations")?;
    let backend = free_address()?;
    let _backend = peers::backend(directory.path(), backend).await?;
    let mut rounds: Vec<Vec<Measured>> = vec![Vec::new(); CASES.len()];
    let mut idle = 0;
    for round in 0..options.rounds.max(1) {
        for (at, case) in CASES.iter().enumerate() {
            eprintln!("round {} of {}: {}", round + 1, options.rounds, case.name);
            let (child, door) = start(case.who, options, directory.path(), backend).await?;
            let pid = child.id().context("the proxy has ended")?;
            if case.who == Who::Fairway(1) {
                idle = family_resident(pid)?;
            }
            // Connections are opened and code is loaded before it counts.
            wrk::run(door, case.path, options.connections, 1).await?;
            let before = family_cpu(pid)?;
            let load = wrk::run(door, case.path, options.connections, options.seconds).await?;
            let spent = family_cpu(pid)?.saturating_sub(before);
            if let Some(all) = rounds.get_mut(at) {
                all.push(Measured {
                    cpu_micros: spent.as_secs_f64() * 1e6 / load.requests as f64,
                    per_second: load.requests as f64 / options.seconds as f64,
                    p99_millis: load.p99.as_secs_f64() * 1e3,
                });
            }
        }
    }
    let changes = peers::changes(&options.proxy, backend).await?;
    let text = tell(options, &rounds, &changes, idle)?;
    println!("{text}");
    if let Some(results) = &options.results {
        let path = report::write_named(results, "gateway-", &text)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

async fn start(
    who: Who,
    options: &Options,
    directory: &Path,
    backend: SocketAddr,
) -> Result<(Child, SocketAddr)> {
    let door = free_address()?;
    let child = match who {
        Who::Nginx => peers::nginx(directory, door, backend)?,
        Who::Haproxy => peers::haproxy(directory, door, backend)?,
        Who::Fairway(routes) => peers::fairway(&options.proxy, door, backend, routes)?,
    };
    until_open(door).await?;
    Ok((child, door))
}

fn free_address() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

async fn until_open(door: SocketAddr) -> Result<()> {
    let begun = Instant::now();
    while tokio::net::TcpStream::connect(door).await.is_err() {
        if begun.elapsed() > Duration::from_secs(10) {
            bail!(
                "nothing listens on {door} after ten seconds; is the program installed (scripts/tools.sh proxies)?"
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// The round in the middle, by CPU time.
fn median(rounds: &[Measured]) -> Measured {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(|one, two| one.cpu_micros.total_cmp(&two.cpu_micros));
    rounds.get(rounds.len() / 2).copied().unwrap_or_default()
}

fn tell(options: &Options, rounds: &[Vec<Measured>], changes: &[Duration], idle: u64) -> Result<String> {
    let medians: Vec<Measured> = rounds.iter().map(|all| median(all)).collect();
    let cost = |who: Who| {
        let at = CASES.iter().position(|case| case.who == who).unwrap_or(0);
        medians.get(at).map_or(f64::NAN, |measured| measured.cpu_micros)
    };
    let mut text = Circumstances::gather(options.rounds, 1.0).gateway_heading(options.connections);
    text.push_str(
        "\n| proxy | CPU µs per request | of nginx's | requests/s | p99 ms |\n|---|---|---|---|---|\n",
    );
    for (case, measured) in CASES.iter().zip(&medians) {
        writeln!(
            text,
            "| {} | {:.1} | {:.2} | {:.0} | {:.1} |",
            case.name,
            measured.cpu_micros,
            measured.cpu_micros / cost(Who::Nginx),
            measured.per_second,
            measured.p99_millis,
        )?;
    }
    let plain = cost(Who::Fairway(1)) / cost(Who::Nginx);
    let routes = cost(Who::Fairway(10_000)) / cost(Who::Fairway(10));
    let mut changes = changes.to_vec();
    changes.sort();
    let change = changes.get(changes.len() / 2).copied().unwrap_or_default();
    let word = |is_met: bool| if is_met { "met" } else { "MISSED" };
    writeln!(
        text,
        "\n- plain proxying: {plain:.2} of nginx's CPU time; floor {FLOOR} {}\n- 10,000 routes: {routes:.2} of 10; floor \
         {FLOOR_ROUTES} {}\n- a change of routes takes effect after {:.1} ms, the median of {}; floor {} ms {}\n- idle, with one \
         route: {:.1} MiB resident",
        word(plain <= FLOOR),
        word(routes <= FLOOR_ROUTES),
        change.as_secs_f64() * 1e3,
        changes.len(),
        FLOOR_CHANGE.as_millis(),
        word(change <= FLOOR_CHANGE),
        idle as f64 / f64::from(1 << 20),
    )?;
    Ok(text)
}
