//! The data plane of gateways beside nginx and HAProxy from Debian, and Envoy: the same backend, the same load, in turns.
//!
//! The figure that counts is the proxy's CPU time per request; rates and latencies stand beside it, because cores are shared
//! with the load and the backend. Every proxy is told to do what the others do: keep connections to the backend, and write
//! `X-Forwarded-For`, `X-Forwarded-Proto` and a request id.
//!
//! A case is a load on one of the proxies ([`CASES`]); cases with policies get a line there and, where a peer can do the same,
//! a configuration in `peers`.

mod peers;
mod whole;
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
    /// The same with policies: the example `guarded` of fairway-gateway-gatekeeper.
    #[arg(long, default_value = "target/release/examples/guarded")]
    guarded: PathBuf,
    /// Envoy, as scripts/tools.sh installs it.
    #[arg(long, default_value = ".tools/bin/envoy")]
    envoy: PathBuf,
    /// Fairway itself: what its gateways take of its memory, and how long a change takes from the API to the first request.
    #[arg(long)]
    fairway: Option<PathBuf>,
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
    Envoy,
    /// With so many routes.
    Fairway(usize),
    /// With a key that is asked for by `auth_request`, and `limit_req`.
    NginxGuarded,
    /// With policies, by the name that the example has for them.
    Guarded(&'static str),
    /// With tokens that were never seen.
    FirstSeen,
}

const CASES: [Case; 13] = [
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
        name: "Envoy, one worker",
        who: Who::Envoy,
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
    Case {
        name: "nginx, auth_request and limit_req",
        who: Who::NginxGuarded,
        path: "/",
    },
    Case {
        name: "Fairway, API key",
        who: Who::Guarded("key"),
        path: "/",
    },
    Case {
        name: "Fairway, rate limit",
        who: Who::Guarded("limit"),
        path: "/",
    },
    Case {
        name: "Fairway, API key and rate limit",
        who: Who::Guarded("key-limit"),
        path: "/",
    },
    Case {
        name: "Fairway, JWT that is known",
        who: Who::Guarded("jwt"),
        path: "/",
    },
    Case {
        name: "Fairway, JWT seen first (ES256)",
        who: Who::FirstSeen,
        path: "/",
    },
    Case {
        name: "Fairway, API key or JWT that is known, CEL, header, limit by user",
        who: Who::Guarded("all"),
        path: "/",
    },
];

/// Of nginx's CPU time per request.
const FLOOR: f64 = 1.2;
/// 10,000 routes against 10.
const FLOOR_ROUTES: f64 = 1.1;
const FLOOR_CHANGE: Duration = Duration::from_millis(50);
/// Policies against none.
const FLOOR_POLICIES: f64 = 1.2;
/// Of memory that gateways take when nothing happens, in MiB.
const FLOOR_IDLE: f64 = 20.0;

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
            let (child, door, asks) = start(case.who, options, directory.path(), backend).await?;
            let pid = child.id().context("the proxy has ended")?;
            if case.who == Who::Fairway(1) {
                idle = family_resident(pid)?;
            }
            // Connections are opened and code is loaded before it counts.
            wrk::run(door, case.path, &asks, options.connections, 1).await?;
            let before = family_cpu(pid)?;
            let load = wrk::run(door, case.path, &asks, options.connections, options.seconds).await?;
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
    let mut floors = of_requests(&rounds);
    let changes = peers::changes(&options.proxy, backend).await?;
    floors.push(Floor::change(
        "a change among 1,000 routes, in the data plane",
        &changes,
    ));
    if let Some(fairway) = &options.fairway {
        floors.extend(whole::measure(fairway, directory.path()).await?.floors());
    }
    let text = tell(options, &rounds, idle, &floors)?;
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
) -> Result<(Child, SocketAddr, Asks)> {
    let door = free_address()?;
    let (child, asks) = match who {
        Who::Nginx => (peers::nginx(directory, door, backend)?, Asks::Plain),
        Who::Haproxy => (peers::haproxy(directory, door, backend)?, Asks::Plain),
        Who::Envoy => (
            peers::envoy(&options.envoy, directory, door, backend)?,
            Asks::Plain,
        ),
        Who::Fairway(routes) => (
            peers::fairway(&options.proxy, door, backend, routes)?,
            Asks::Plain,
        ),
        Who::NginxGuarded => {
            let child = peers::nginx_guarded(directory, door, backend)?;
            (child, Asks::Header(format!("Authorization: {}", peers::KEY)))
        }
        Who::Guarded(policy) => {
            let (child, header) = peers::guarded(&options.guarded, door, backend, policy, None).await?;
            (child, Asks::Header(format!("Authorization: {header}")))
        }
        Who::FirstSeen => {
            let tokens = directory.join("tokens");
            let (child, _) = peers::guarded(&options.guarded, door, backend, "jwt", Some(&tokens)).await?;
            (child, Asks::Script(wrk::each_line(directory, &tokens)?))
        }
    };
    until_open(door).await?;
    Ok((child, door, asks))
}

/// What requests bring along.
enum Asks {
    Plain,
    Header(String),
    /// A script of wrk's.
    Script(PathBuf),
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

/// What the cost of one case is of another's: the median over the rounds, in which both ran one after the other, so that
/// what disturbed a round disturbed both.
fn ratio(rounds: &[Vec<Measured>], of: Who, to: Who) -> f64 {
    let of_case = |who: Who| {
        let at = CASES.iter().position(|case| case.who == who);
        at.and_then(|at| rounds.get(at)).map_or(&[][..], |all| &all[..])
    };
    let pairs = of_case(of).iter().zip(of_case(to));
    let mut ratios: Vec<f64> = pairs.map(|(of, to)| of.cpu_micros / to.cpu_micros).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Something that is promised, and what it came to.
struct Floor {
    what: String,
    measured: String,
    most: String,
    held: bool,
}

impl Floor {
    fn ratio(what: &str, measured: f64, most: f64) -> Self {
        Self {
            what: what.to_owned(),
            measured: format!("{measured:.2}"),
            most: format!("{most}"),
            held: measured <= most,
        }
    }

    /// The median of changes.
    fn change(what: &str, changes: &[Duration]) -> Self {
        let mut changes = changes.to_vec();
        changes.sort();
        let change = changes.get(changes.len() / 2).copied().unwrap_or(Duration::MAX);
        Self {
            what: format!("{what}, the median of {}", changes.len()),
            measured: format!("{:.1} ms", change.as_secs_f64() * 1e3),
            most: format!("{} ms", FLOOR_CHANGE.as_millis()),
            held: change < FLOOR_CHANGE,
        }
    }
}

fn tell(options: &Options, rounds: &[Vec<Measured>], idle: u64, floors: &[Floor]) -> Result<String> {
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
            ratio(rounds, case.who, Who::Nginx),
            measured.per_second,
            measured.p99_millis,
        )?;
    }
    text.push_str("\n| floor | measured | at most | held |\n|---|---|---|---|\n");
    for floor in floors {
        let held = if floor.held { "yes" } else { "NO" };
        writeln!(
            text,
            "| {} | {} | {} | {held} |",
            floor.what, floor.measured, floor.most
        )?;
    }
    writeln!(
        text,
        "\n- a token that is seen first costs {:.0} µs more than one that is known\n- nginx with auth_request and limit_req: {:.2} of \
         nginx without\n- the example with one route, idle: {:.1} MiB resident",
        cost(Who::FirstSeen) - cost(Who::Guarded("jwt")),
        ratio(rounds, Who::NginxGuarded, Who::Nginx),
        idle as f64 / f64::from(1 << 20),
    )?;
    Ok(text)
}

/// By CPU per request; what is not of one request comes from elsewhere.
fn of_requests(rounds: &[Vec<Measured>]) -> Vec<Floor> {
    let plain = Who::Fairway(1);
    let over_plain = |policy: &'static str| ratio(rounds, Who::Guarded(policy), plain);
    vec![
        Floor::ratio(
            "plain proxying, of nginx's CPU",
            ratio(rounds, plain, Who::Nginx),
            FLOOR,
        ),
        Floor::ratio(
            "API key and rate limit, of plain proxying",
            over_plain("key-limit"),
            FLOOR_POLICIES,
        ),
        Floor::ratio(
            "JWT that is known, of plain proxying",
            over_plain("jwt"),
            FLOOR_POLICIES,
        ),
        Floor::ratio(
            "10,000 routes, of 10",
            ratio(rounds, Who::Fairway(10_000), Who::Fairway(10)),
            FLOOR_ROUTES,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds() {
        let costs = |all: &[f64]| {
            let measured = |cpu_micros: &f64| Measured {
                cpu_micros: *cpu_micros,
                ..Measured::default()
            };
            all.iter().map(measured).collect::<Vec<_>>()
        };
        let mut rounds = vec![Vec::new(); CASES.len()];
        // The second round was disturbed, and so were both.
        let at = |who: Who| CASES.iter().position(|case| case.who == who).unwrap();
        rounds[at(Who::Nginx)] = costs(&[10.0, 30.0, 10.0]);
        rounds[at(Who::Fairway(1))] = costs(&[11.0, 36.0, 12.0]);
        let found = ratio(&rounds, Who::Fairway(1), Who::Nginx);
        assert!((found - 1.2).abs() < 1e-9, "{found}");
        let floors = of_requests(&rounds);
        assert!(floors[0].held, "{}", floors[0].measured);
        assert!(!floors[1].held, "what was not measured is not held");
        let slow = Floor::change("a change", &[Duration::from_millis(50)]);
        assert!(!slow.held);
        assert!(!Floor::change("a change", &[]).held);
    }
}
