//! `fairway vm vnc`: a screen, through a port of this host that a viewer connects to, or a picture of it.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::session::Session;
use super::stream::{End, Input, Stream};
use super::target::Kind;
use crate::cli::vm::doors::{Screenshot, Vnc, VncCommand};

/// How long a viewer may take to connect that was started here.
const CONNECT: Duration = Duration::from_secs(60);

pub(super) async fn run(session: &Session, options: &Vnc) -> anyhow::Result<()> {
    match (&options.command, &options.name) {
        (Some(VncCommand::Screenshot(picture)), _) => screenshot(session, picture).await,
        (None, Some(name)) => proxy(session, name, options).await,
        (None, None) => bail!("name a machine"),
    }
}

async fn proxy(session: &Session, name: &str, options: &Vnc) -> anyhow::Result<()> {
    let machine = session.target(name)?;
    let name = &machine.name;
    let path = machine.subresource(Kind::Instance, "vnc");
    let no_access = |error| anyhow!("Can't access VMI {name}: {error}");
    // Asked before anybody starts a viewer, which would show nothing.
    Stream::open(session, &path)
        .await
        .map_err(no_access)?
        .close()
        .await;
    let address = match options.is_proxy_only {
        true => options.address,
        false => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let listener = TcpListener::bind((address, options.port)).await;
    let listener = listener.with_context(|| format!("Can't listen on {address}:{}", options.port))?;
    let place = listener
        .local_addr()
        .context("the port that was opened is unknown")?;
    if options.is_proxy_only {
        println!("{}", json!({"port": place.port()}));
        std::io::stdout().flush()?;
        let viewer = tokio::select! {
            accepted = listener.accept() => accepted.context("no viewer could connect")?.0,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        return tokio::select! {
            carried = carry(session, &path, viewer) => carried,
            _ = tokio::signal::ctrl_c() => Ok(()),
        };
    }
    let mut program = start_viewer(place)?;
    let viewer = tokio::select! {
        accepted = tokio::time::timeout(CONNECT, listener.accept()) => accepted
            .with_context(|| format!("the viewer did not connect within {CONNECT:?}"))?
            .context("no viewer could connect")?
            .0,
        ended = program.wait() => bail!("Error encountered: the viewer ended: {}", ended?),
        _ = tokio::signal::ctrl_c() => return Ok(()),
    };
    tokio::select! {
        carried = carry(session, &path, viewer) => carried,
        ended = program.wait() => ended.map(drop).context("the viewer could not be waited for"),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// The viewers that virtctl looks for, in its order.
fn start_viewer(place: SocketAddr) -> anyhow::Result<tokio::process::Child> {
    for (program, argument) in [
        ("remote-viewer", format!("vnc://{place}")),
        ("vncviewer", place.to_string()),
    ] {
        let mut command = tokio::process::Command::new(program);
        match command.arg(argument).stdin(std::process::Stdio::null()).spawn() {
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("{program} could not be started")),
        }
    }
    bail!(
        "Error encountered: could not find remote-viewer or vncviewer binary in $PATH; with --proxy-only any other viewer \
         can connect"
    )
}

async fn carry(session: &Session, path: &str, viewer: TcpStream) -> anyhow::Result<()> {
    let stream = Stream::open(session, path).await?;
    let (mut from, mut to) = viewer.into_split();
    match stream.carry(&mut from, &mut to, Input::Leave).await {
        End::Left | End::Closed | End::NotTaken(_) => Ok(()),
        End::Broken(why) => bail!("Error encountered: {why}"),
    }
}

async fn screenshot(session: &Session, options: &Screenshot) -> anyhow::Result<()> {
    let machine = session.target(&options.name)?;
    let path = machine.subresource(Kind::Instance, "vnc/screenshot");
    let path = format!("{path}?moveCursor={}", options.moves_cursor);
    let picture = session.ask("GET", &path, None).await;
    let picture = picture.map_err(|error| anyhow!("Can't access VMI {}: {error}", machine.name))?;
    if options.file == Path::new("-") {
        let mut out = std::io::stdout().lock();
        return out
            .write_all(&picture)
            .and_then(|()| out.flush())
            .context("failed to write image to stdout");
    }
    std::fs::write(&options.file, &picture)
        .with_context(|| format!("Can't write image to a file: {}", options.file.display()))
}
