//! `fairway vm console`.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use super::session::Session;
use super::stream::{End, Input, Stream};
use super::target::Kind;
use super::terminal::{ESCAPE, Raw, keyboard, screen};
use crate::cli::vm::doors::Console;

/// How often a machine that does not run yet is asked again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn run(session: &Session, options: &Console) -> anyhow::Result<()> {
    let machine = session.target(&options.name)?;
    let path = machine.subresource(Kind::Instance, "console");
    let patience = Duration::from_secs(options.timeout.saturating_mul(60));
    let opened = tokio::select! {
        opened = wait(session, &path, patience) => opened?,
        _ = tokio::signal::ctrl_c() => {
            println!();
            return Ok(());
        }
    };
    let raw = Raw::take()?;
    eprint!(
        "Successfully connected to {} console. The escape sequence is ^]\n\r",
        machine.name
    );
    let mut keys = keyboard(Some(ESCAPE));
    let mut screen = screen()?;
    let end = tokio::select! {
        end = opened.carry(&mut keys, &mut screen, Input::Leave) => end,
        _ = tokio::signal::ctrl_c() => End::Left,
    };
    drop(raw);
    match end {
        End::Left | End::Closed => Ok(()),
        End::NotTaken(why) => bail!("what the console says cannot be printed: {why}"),
        End::Broken(why) => {
            eprintln!(
                "\nYou were disconnected from the console. This could be caused by one of the following:\
                 \n - the target VM was powered off\
                 \n - another user connected to the console of the target VM\
                 \n - network issues"
            );
            bail!("{why}")
        }
    }
}

/// Opens the console as soon as there is one. A server answers 400 until then.
async fn wait(session: &Session, path: &str, patience: Duration) -> anyhow::Result<Stream> {
    let begun = Instant::now();
    loop {
        match Stream::open(session, path).await {
            Ok(stream) => return Ok(stream),
            Err(refused) if refused.code == 400 && !patience.is_zero() => {}
            Err(refused) => return Err(anyhow!("{refused}")),
        }
        if begun.elapsed() >= patience {
            bail!("Timeout trying to connect to the virtual machine instance");
        }
        tokio::time::sleep(AGAIN).await;
    }
}
