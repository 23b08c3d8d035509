//! One case: a generator, something in the middle, a sink, and the CPU time of the thread in the middle.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fairway_dns::Server;
use fairway_machines_network::frames::build::{self, Route};
use fairway_machines_network::frames::outside::Outside;
use fairway_machines_network::frames::policy::Policies;
use fairway_machines_network::frames::topology::{Gateway, Guest, Plan};
use fairway_machines_network::frames::track::Bounds;
use fairway_machines_network::frames::{Mac, Tenant};
use fairway_machines_network::{Network, Settings};

/// How many connections the frames belong to.
const FLOWS: u16 = 64;
/// The headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) frame: usize,
    pub(super) per_write: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Middle {
    Switch,
    Copy,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Passed {
    pub(super) cpu_per_frame: f64,
    pub(super) delivered_per_second: f64,
    pub(super) lost_share: f64,
}

impl Passed {
    pub(super) fn frames_per_core(self) -> f64 {
        1e9 / self.cpu_per_frame.max(1.0)
    }

    pub(super) fn gigabits_per_core(self, case: Case) -> f64 {
        self.frames_per_core() * case.frame as f64 * 8.0 / 1e9
    }
}

pub(super) async fn run(case: Case, middle: Middle, time: Duration) -> Result<Passed> {
    let directory = tempfile::tempdir().context("cannot make a directory for sockets")?;
    let paths = [directory.path().join("a.sock"), directory.path().join("b.sock")];
    let listeners = [listen(&paths[0])?, listen(&paths[1])?];
    let stop = Arc::new(AtomicBool::new(false));
    // Kept until the end: dropping it ends the switch.
    let network = match middle {
        Middle::Switch => Some(network(&paths).await?),
        Middle::Copy => {
            let ends = [UnixStream::connect(&paths[0])?, UnixStream::connect(&paths[1])?];
            thread::Builder::new()
                .name("copy".into())
                .spawn(move || copy(ends))?;
            None
        }
    };
    let [source, sink] = [listeners[0].accept()?.0, listeners[1].accept()?.0];
    let name = match middle {
        Middle::Switch => "switch",
        Middle::Copy => "copy",
    };
    let received = Arc::new(AtomicU64::new(0));
    let counting = {
        let received = Arc::clone(&received);
        thread::spawn(move || count(sink, &received))
    };
    let sending = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || generate(source, case, &stop))
    };
    // Connections are remembered and buffers warm before the clock starts.
    thread::sleep(Duration::from_millis(200));
    let (cpu, frames, start) = (thread_cpu(name)?, frames_of(&received, case), Instant::now());
    thread::sleep(time);
    let (cpu_after, frames_after, wall) = (thread_cpu(name)?, frames_of(&received, case), start.elapsed());
    stop.store(true, Ordering::Relaxed);
    let sent = sending.join().ok().context("the generator ended badly")??;
    // The generator's socket is closed; what is under way arrives, and then nothing more does.
    let mut last = 0;
    while received.load(Ordering::Relaxed) != last {
        last = received.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(50));
    }
    let delivered = frames_of(&received, case);
    drop(network);
    counting.join().ok().context("the sink ended badly")?;
    let passed = frames_after - frames;
    if passed == 0 {
        bail!("no frame arrived");
    }
    Ok(Passed {
        cpu_per_frame: (cpu_after - cpu).as_nanos() as f64 / passed as f64,
        delivered_per_second: passed as f64 / wall.as_secs_f64(),
        lost_share: 1.0 - delivered as f64 / sent.max(1) as f64,
    })
}

fn frames_of(received: &AtomicU64, case: Case) -> u64 {
    received.load(Ordering::Relaxed) / (case.frame + 4) as u64
}

fn listen(path: &Path) -> Result<UnixListener> {
    UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))
}

fn mac(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 88, 0, number)
}

async fn network(paths: &[PathBuf; 2]) -> Result<Network> {
    let mut plan = Plan {
        gateway: Gateway {
            mac: mac(1),
            address: address(1),
            network: "10.88.0.0/16".parse()?,
            services: "10.96.0.0/12".parse()?,
            mtu: 1500,
            resolvers: vec![],
            domain: "cluster.local".into(),
            lease_seconds: 3600,
        },
        guests: vec![],
        cards: vec![],
        peers: vec![],
        services: vec![],
        policies: Policies::default(),
        outside: Outside::default(),
    };
    let settings = Settings {
        plan: plan.clone(),
        bounds: Bounds::default(),
        space: None,
    };
    let network = Network::start(settings, Arc::new(Server::new(None)))?;
    let tenant: Tenant = network.tenant("root");
    plan.guests = paths
        .iter()
        .zip(2..)
        .map(|(path, number)| Guest {
            tenant,
            mac: mac(number),
            address: address(number),
            ports: vec![network.attach(path.clone())],
            hostname: String::new(),
            search: vec![],
            resolvers: vec![],
            options: vec![],
            accepts: None,
        })
        .collect();
    network.apply(plan).await?;
    Ok(network)
}

/// Writes frames until it is told to stop; tells how many.
fn generate(mut socket: UnixStream, case: Case, stop: &AtomicBool) -> Result<u64> {
    let frames: Vec<Vec<u8>> = (0..FLOWS)
        .map(|flow| {
            let route = Route::new(mac(2), mac(3), address(2), address(3));
            let frame = build::udp(route, 10_000 + flow, 9, &vec![7; case.frame - HEADERS]);
            let mut framed = u32::try_from(frame.len())
                .unwrap_or_default()
                .to_be_bytes()
                .to_vec();
            framed.extend(frame);
            framed
        })
        .collect();
    let writes: Vec<Vec<u8>> = frames.iter().map(|frame| frame.repeat(case.per_write)).collect();
    let mut sent = 0;
    for write in writes.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        socket
            .write_all(write)
            .context("the switch has closed the generator's socket")?;
        sent += case.per_write as u64;
    }
    Ok(sent)
}

fn count(mut socket: UnixStream, received: &AtomicU64) {
    let mut buffer = vec![0; 256 * 1024];
    while let Ok(read @ 1..) = socket.read(&mut buffer) {
        received.fetch_add(read as u64, Ordering::Relaxed);
    }
}

/// What stands in the switch's place: it reads and writes, and looks at nothing.
fn copy([mut from, mut to]: [UnixStream; 2]) {
    let mut buffer = vec![0; 256 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// The CPU time of this process's newest thread of a name.
fn thread_cpu(name: &str) -> Result<Duration> {
    let mut found = None;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        let number: Option<u64> = task
            .file_name()
            .and_then(|id| id.to_str())
            .and_then(|id| id.parse().ok());
        // A thread may end between the listing and here.
        let is_it = std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name);
        if is_it && number > found.as_ref().map(|(number, _)| *number) {
            found = number.map(|number| (number, task));
        }
    }
    let (_, task) = found.with_context(|| format!("no thread is called {name}"))?;
    let text = std::fs::read_to_string(task.join("schedstat"))
        .context("this kernel does not tell the CPU time of threads (/proc/self/task/*/schedstat)")?;
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|field| field.parse().ok());
    nanoseconds
        .map(Duration::from_nanos)
        .context("schedstat has no CPU time")
}
