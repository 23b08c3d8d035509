//! The switch as others hold it: started, told what to carry, asked to dial.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairway_dns::Server;
use fairway_fabric::{Connection, Destination, DialError, Fabric, Origin, Talk};
use fairway_machines_frames::decide::Denied;
use fairway_machines_frames::outside::{Judgement, Outside};
use fairway_machines_frames::topology::{Contradiction, Plan, Topology};
use fairway_machines_frames::track::Bounds;
use fairway_machines_frames::{PortId, Tenant};
use fairway_machines_tap::Space;
use futures::future::BoxFuture;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};

use crate::gateway::{self, DialFailed};
use crate::kernel::Kernel;
use crate::port::{self, Scratch};
use crate::state::{Core, Counters, Shared};
use crate::tenants::Tenants;

/// How often silent connections are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// How long a dial may take in all: longer than the thread's own patience, which says more.
const DIAL: Duration = Duration::from_secs(12);

/// What a switch is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The first picture of the world; ports come with later ones.
    pub plan: Plan,
    pub bounds: Bounds,
    /// The network namespace with cards that are devices of the kernel, if there may be any.
    pub space: Option<Space>,
}

/// Why there is no switch.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the network's settings contradict each other: {0}")]
    Settings(#[source] Contradiction),
    #[error("cannot start the thread of the switch")]
    Thread(#[source] io::Error),
}

/// What the switch was told: the generation from which frames are judged by the new plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    pub generation: u64,
}

enum Command {
    Apply(Arc<Topology>, oneshot::Sender<()>),
    Attach(PortId, PathBuf),
    Link(PortId, UnixStream),
    Detach(PortId),
    Dial {
        tenant: Tenant,
        to: (Ipv4Addr, u16),
        origin: Option<Ipv4Addr>,
        done: oneshot::Sender<Result<DuplexStream, DialFailed>>,
    },
    Talk {
        tenant: Tenant,
        to: (Ipv4Addr, u16),
        origin: Option<Ipv4Addr>,
        done: oneshot::Sender<Result<Talk, Denied>>,
    },
    Count(oneshot::Sender<Counters>),
}

/// A running switch. Dropping it ends its thread and disconnects every port; guests keep running, and the next switch
/// connects to them.
pub struct Network {
    /// Unbounded, because only the node's own controllers write to it, and each waits for what it asked.
    commands: mpsc::UnboundedSender<Command>,
    tenants: Arc<Tenants>,
    next_port: AtomicU32,
    generation: AtomicU64,
    /// Ports by their socket, so that one socket is never connected twice: QEMU serves one connection at a time.
    ports: Mutex<HashMap<PathBuf, PortId>>,
    outside: Mutex<Outside>,
    elsewhere: Mutex<Option<Arc<dyn Elsewhere>>>,
}

/// Opens connections to machines of other nodes, through their switches.
pub trait Elsewhere: Send + Sync + 'static {
    /// `via`: the link behind which the machine is.
    fn dial(&self, via: PortId, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>>;

    /// The same, for datagrams.
    fn talk(&self, via: PortId, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>>;
}

impl Network {
    pub fn start(settings: Settings, names: Arc<Server>) -> Result<Self, StartError> {
        let outside = settings.plan.outside.clone();
        let topology = Topology::new(0, settings.plan).map_err(StartError::Settings)?;
        let tenants = Arc::new(Tenants::default());
        let (commands, received) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let kernel = settings.space.map(Kernel::start).transpose();
        let kernel = kernel.map_err(StartError::Thread)?;
        let of_thread = Arc::clone(&tenants);
        let bounds = settings.bounds;
        std::thread::Builder::new()
            .name("switch".into())
            .spawn(move || {
                let core = Core::new(Arc::new(topology), bounds, names, of_thread);
                core.borrow_mut().work_with(kernel);
                tokio::task::LocalSet::new().block_on(&runtime, run(core, received));
            })
            .map_err(StartError::Thread)?;
        Ok(Self {
            commands,
            tenants,
            next_port: AtomicU32::new(1),
            generation: AtomicU64::new(0),
            ports: Mutex::default(),
            outside: Mutex::new(outside),
            elsewhere: Mutex::new(None),
        })
    }

    /// The number under which a workspace's guests appear in plans.
    pub fn tenant(&self, workspace: &str) -> Tenant {
        self.tenants.number(workspace)
    }

    /// Connects to the socket of a card, now or as soon as QEMU listens there, and again whenever it breaks off; or to the card's
    /// device, if it has one in its place. The port carries nothing before a plan names it.
    pub fn attach(&self, socket: PathBuf) -> PortId {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(port) = ports.get(&socket) {
            return *port;
        }
        let port = PortId(self.next_port.fetch_add(1, Ordering::Relaxed));
        ports.insert(socket.clone(), port);
        let _ = self.commands.send(Command::Attach(port, socket));
        port
    }

    /// Takes the link to another node's switch: a stream of frames as QEMU writes them. It is gone when the stream ends; the
    /// port is to be detached then.
    pub fn link(&self, stream: UnixStream) -> PortId {
        let port = PortId(self.next_port.fetch_add(1, Ordering::Relaxed));
        let _ = self.commands.send(Command::Link(port, stream));
        port
    }

    /// Says who opens connections to machines of other nodes.
    pub fn set_elsewhere(&self, elsewhere: Arc<dyn Elsewhere>) {
        *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = Some(elsewhere);
    }

    fn elsewhere(&self) -> Option<Arc<dyn Elsewhere>> {
        self.elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Disconnects a port for good.
    pub fn detach(&self, port: PortId) {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        ports.retain(|_, known| *known != port);
        let _ = self.commands.send(Command::Detach(port));
    }

    /// Makes a plan the one that frames are judged by. When this returns, no frame is judged by an older one.
    pub async fn apply(&self, plan: Plan) -> Result<Applied, Contradiction> {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let outside = plan.outside.clone();
        let topology = Arc::new(Topology::new(generation, plan)?);
        *self.outside.lock().unwrap_or_else(PoisonError::into_inner) = outside;
        let (done, applied) = oneshot::channel();
        let _ = self.commands.send(Command::Apply(topology, done));
        // A thread that is ending judges no frame at all.
        let _ = applied.await;
        Ok(Applied { generation })
    }

    /// What has passed. `None`: the switch is ending.
    pub async fn counters(&self) -> Option<Counters> {
        let (done, counted) = oneshot::channel();
        self.commands.send(Command::Count(done)).ok()?;
        counted.await.ok()
    }

    /// Whose destination it is, where, and on whose behalf.
    fn understood(&self, to: &Destination) -> Result<(Tenant, Ipv4Addr, Option<Ipv4Addr>), DialError> {
        let unreachable = |why: &str| DialError::Unreachable {
            to: to.clone(),
            why: why.to_owned(),
        };
        let IpAddr::V4(address) = to.address else {
            return Err(unreachable("machines have IPv4 addresses"));
        };
        let tenant = self.tenants.find(&to.workspace);
        let tenant = tenant.ok_or_else(|| unreachable("the workspace has no machine on this node"))?;
        let origin = match to.origin {
            Origin::Node => None,
            Origin::Client(IpAddr::V4(client)) => Some(client),
            // No IPv4 block allows an IPv6 client; an address that only an allowance for everybody covers stands for it.
            Origin::Client(IpAddr::V6(_)) => Some(Ipv4Addr::BROADCAST),
        };
        Ok((tenant, address, origin))
    }

    /// Begins to exchange datagrams with a machine of this node, for another node that asks.
    pub async fn talk_here(&self, to: Destination) -> Result<Talk, DialError> {
        self.begin_talk(to, None).await
    }

    async fn begin_talk(
        &self,
        to: Destination,
        elsewhere: Option<Arc<dyn Elsewhere>>,
    ) -> Result<Talk, DialError> {
        let (tenant, address, origin) = self.understood(&to)?;
        let (done, begun) = oneshot::channel();
        let command = Command::Talk {
            tenant,
            to: (address, to.port),
            origin,
            done,
        };
        let closed = || DialError::Closed { to: to.clone() };
        self.commands.send(command).map_err(|_| closed())?;
        match (begun.await.map_err(|_| closed())?, elsewhere) {
            (Ok(talk), _) => Ok(talk),
            (Err(Denied::Elsewhere(address, port, via)), Some(elsewhere)) => {
                let there = Destination {
                    address: IpAddr::V4(address),
                    port,
                    ..to
                };
                elsewhere.talk(via, there).await
            }
            (Err(denied), _) => Err(DialError::Unreachable {
                why: denied.to_string(),
                to,
            }),
        }
    }

    /// Dials a machine of this node, for another node that asks: it is not passed on.
    pub async fn dial_here(&self, to: Destination) -> Result<Box<dyn Connection>, DialError> {
        self.connect(to, None).await
    }

    async fn connect(
        &self,
        to: Destination,
        elsewhere: Option<Arc<dyn Elsewhere>>,
    ) -> Result<Box<dyn Connection>, DialError> {
        let unreachable = |why: String| DialError::Unreachable { to: to.clone(), why };
        let (tenant, address, origin) = self.understood(&to)?;
        let (done, dialled) = oneshot::channel();
        let command = Command::Dial {
            tenant,
            to: (address, to.port),
            origin,
            done,
        };
        let closed = || DialError::Closed { to: to.clone() };
        self.commands.send(command).map_err(|_| closed())?;
        let timeout = || DialError::Timeout {
            to: to.clone(),
            after: DIAL,
        };
        let dialled = tokio::time::timeout(DIAL, dialled).await.map_err(|_| timeout())?;
        match dialled.map_err(|_| closed())? {
            Ok(stream) => Ok(Box::new(stream)),
            Err(DialFailed::Denied(Denied::Outside(address, port))) => {
                self.connect_outside(&to, address, port).await
            }
            Err(DialFailed::Denied(Denied::Elsewhere(address, port, via))) => {
                let Some(elsewhere) = elsewhere else {
                    return Err(unreachable(Denied::Elsewhere(address, port, via).to_string()));
                };
                let there = Destination {
                    address: IpAddr::V4(address),
                    port,
                    ..to
                };
                elsewhere.dial(via, there).await
            }
            Err(DialFailed::Denied(denied)) => Err(unreachable(denied.to_string())),
            Err(DialFailed::Refused) => Err(DialError::Refused { to: to.clone() }),
            Err(DialFailed::Timeout) => Err(DialError::Timeout {
                to: to.clone(),
                after: gateway::PATIENCE,
            }),
        }
    }

    /// A Service whose endpoints are no machines. Tenants write endpoints, so the rules for guests hold.
    async fn connect_outside(
        &self,
        to: &Destination,
        address: Ipv4Addr,
        port: u16,
    ) -> Result<Box<dyn Connection>, DialError> {
        let judgement = self
            .outside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .judge(address, port);
        let named = match judgement {
            Judgement::Named => true,
            Judgement::UnlessOwn => false,
            Judgement::Refused(refusal) => {
                return Err(DialError::Unreachable {
                    to: to.clone(),
                    why: format!("the Service leads to {address}, which is not allowed ({refusal:?})"),
                });
            }
        };
        match gateway::connect_outside(address, port, named).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(source) => Err(DialError::Io {
                to: to.clone(),
                source,
            }),
        }
    }
}

impl Fabric for Network {
    fn dial(&self, to: Destination) -> BoxFuture<'_, Result<Box<dyn Connection>, DialError>> {
        Box::pin(self.connect(to, self.elsewhere()))
    }

    fn talk(&self, to: Destination) -> BoxFuture<'_, Result<Talk, DialError>> {
        Box::pin(self.begin_talk(to, self.elsewhere()))
    }
}

/// The thread: carries out commands until the handle is gone.
async fn run(core: Shared, mut commands: mpsc::UnboundedReceiver<Command>) {
    let scratch = Scratch::new();
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let command = tokio::select! {
            command = commands.recv() => command,
            _ = sweep.tick() => {
                let mut core = core.borrow_mut();
                let now = core.now();
                core.switch.sweep(now);
                continue;
            }
        };
        match command {
            None => return,
            Some(Command::Apply(topology, done)) => {
                let kernel = {
                    let mut core = core.borrow_mut();
                    core.switch.update(topology);
                    core.end_orphans();
                    core.kernel.clone()
                };
                match kernel {
                    // What it carries was judged by the older plan.
                    Some(kernel) => kernel.forget(done).await,
                    None => drop(done.send(())),
                }
            }
            Some(Command::Attach(port, path)) => {
                let task = port::run(Shared::clone(&core), scratch.clone(), port, path);
                let task = tokio::task::spawn_local(task).abort_handle();
                core.borrow_mut().port_mut(port).task = Some(task);
            }
            Some(Command::Link(port, stream)) => {
                let task = port::run_link(Shared::clone(&core), scratch.clone(), port, stream);
                let task = tokio::task::spawn_local(task).abort_handle();
                core.borrow_mut().port_mut(port).task = Some(task);
            }
            Some(Command::Detach(port)) => {
                let mut core = core.borrow_mut();
                core.part_device(port);
                if let Some(mut state) = core.ports.remove(&port) {
                    state.reconnect(None);
                    if let Some(task) = state.task {
                        task.abort();
                    }
                }
            }
            Some(Command::Dial {
                tenant,
                to,
                origin,
                done,
            }) => gateway::dial(&core, tenant, to, origin, done),
            Some(Command::Talk {
                tenant,
                to,
                origin,
                done,
            }) => {
                let _ = done.send(gateway::talk(&core, tenant, to, origin));
            }
            Some(Command::Count(done)) => {
                let _ = done.send(core.borrow().counters());
            }
        }
    }
}
