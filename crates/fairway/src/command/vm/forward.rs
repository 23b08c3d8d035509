//! `fairway vm port-forward`: ports of this host, or standard input and output, that lead to ports of a guest.

use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use tokio::net::{TcpListener, TcpStream};

use super::session::{Located, Session};
use super::stream::{End, Input, Stream};
use super::target::{Kind, Port, Target};
use super::terminal::{keyboard, screen};
use crate::cli::vm::doors::PortForward;

pub(super) async fn run(session: &Session, options: &PortForward) -> anyhow::Result<()> {
    let machine = session.locate(Target::parse_dotted(&options.target)?);
    let ports: Vec<Port> = options
        .ports
        .iter()
        .map(|it| Port::parse(it))
        .collect::<Result<_, _>>()?;
    if options.is_stdio {
        let [port] = ports.as_slice() else {
            bail!("only one port supported when forwarding to stdout");
        };
        return pipe(session, &machine, *port).await;
    }
    let mut listeners = Vec::new();
    for port in ports {
        let place = (options.address.as_str(), port.local);
        let listener = TcpListener::bind(place).await;
        let listener =
            listener.with_context(|| format!("{}:{} cannot be listened on", options.address, port.local))?;
        let local = listener
            .local_addr()
            .context("the port that was opened is unknown")?;
        eprintln!("forwarding tcp {local} to {}", port.remote);
        listeners.push((listener, port.remote));
    }
    let way = Arc::new((session.clone(), machine));
    for (listener, remote) in listeners {
        tokio::spawn(serve(Arc::clone(&way), listener, remote));
    }
    tokio::signal::ctrl_c()
        .await
        .context("signals cannot be waited for")
}

/// Where a port of the guest is reached.
fn path(machine: &Located, port: u16) -> String {
    let kind = machine.kind.unwrap_or(Kind::Instance);
    machine.subresource(kind, &format!("portforward/{port}/tcp"))
}

/// Takes connections, and carries each.
async fn serve(way: Arc<(Session, Located)>, listener: TcpListener, remote: u16) {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => {
                let way = Arc::clone(&way);
                tokio::spawn(async move {
                    if let Err(error) = carry(&way.0, &way.1, connection, remote).await {
                        eprintln!("fairway: {error:#}");
                    }
                });
            }
            Err(error) => {
                // Too many open files, mostly: some will be closed.
                eprintln!("fairway: error accepting connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn carry(session: &Session, machine: &Located, local: TcpStream, remote: u16) -> anyhow::Result<()> {
    let kind = machine.kind.unwrap_or(Kind::Instance).word();
    let stream = Stream::open(session, &path(machine, remote)).await;
    let stream = stream.map_err(|error| {
        anyhow!(
            "can't access {kind}/{}.{}: {error}",
            machine.name,
            machine.namespace
        )
    })?;
    let (mut from, mut to) = local.into_split();
    match stream.carry(&mut from, &mut to, Input::Half).await {
        End::Left | End::Closed | End::NotTaken(_) => Ok(()),
        End::Broken(why) => bail!("error handling connection for {remote}: {why}"),
    }
}

/// Standard input and output: for ssh and everything else that wants a program instead of a port.
async fn pipe(session: &Session, machine: &Located, port: Port) -> anyhow::Result<()> {
    let stream = Stream::open(session, &path(machine, port.remote)).await?;
    let mut out = screen()?;
    match stream.carry(&mut keyboard(None), &mut out, Input::Half).await {
        End::Left | End::Closed | End::NotTaken(_) => Ok(()),
        End::Broken(why) => bail!("{why}"),
    }
}
