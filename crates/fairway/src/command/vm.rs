//! `fairway vm`: machines from the command line, in virtctl's verbs and words.
//!
//! Everything goes through the API, most of it through KubeVirt's subresources; so it works for whoever may use those, and also
//! on a KubeVirt. Where virtctl prints a sentence, this prints the same one.

mod backup;
mod console;
mod credentials;
mod events;
mod expand;
mod expose;
mod forward;
mod guest;
mod list;
mod power;
mod session;
mod ssh;
mod stream;
mod target;
mod terminal;
mod top;
mod upload;
mod vnc;
mod volume;
mod why;

use std::process::ExitCode;

use crate::cli::vm::{Vm, VmCommand};
use crate::cli::why::Why;
use session::Session;

/// Does what was asked for.
pub(crate) fn run(options: &Vm) -> anyhow::Result<ExitCode> {
    block_on(perform(options))
}

/// `fairway why`, of which `fairway vm why` is the part that names machines.
pub(crate) fn why(options: &Why) -> anyhow::Result<ExitCode> {
    block_on(async {
        let session = Session::open(&options.place).await?;
        why::of(&session, &options.object, &options.output).await
    })
}

fn block_on(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = super::runtime()?;
    let outcome = runtime.block_on(work);
    // Somebody may still be asked what to look up or read; nobody waits for the answer.
    runtime.shutdown_background();
    outcome
}

async fn perform(options: &Vm) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    match &options.command {
        VmCommand::Start(it) => power::start(&session, it).await,
        VmCommand::Stop(it) => power::stop(&session, it).await,
        VmCommand::Restart(it) => power::restart(&session, it).await,
        VmCommand::Pause(it) => power::pause(&session, it).await,
        VmCommand::Unpause(it) => power::unpause(&session, it).await,
        VmCommand::SoftReboot(it) => power::soft_reboot(&session, it).await,
        VmCommand::Reset(it) => power::reset(&session, it).await,
        VmCommand::Freeze(it) => power::freeze(&session, it).await,
        VmCommand::Unfreeze(it) => power::unfreeze(&session, it).await,
        VmCommand::Migrate(it) => power::migrate(&session, it).await,
        VmCommand::MigrateCancel(it) => power::migrate_cancel(&session, it).await,
        VmCommand::Console(it) => console::run(&session, it).await,
        VmCommand::Vnc(it) => vnc::run(&session, it).await,
        VmCommand::Ssh(it) => return ssh::log_in(&session, it),
        VmCommand::Scp(it) => return ssh::copy(&session, it),
        VmCommand::PortForward(it) => forward::run(&session, it).await,
        VmCommand::Expose(it) => expose::run(&session, it).await,
        VmCommand::ImageUpload(it) => upload::run(&session, it).await,
        VmCommand::Addvolume(it) => volume::add(&session, it).await,
        VmCommand::Removevolume(it) => volume::remove(&session, it).await,
        VmCommand::Backup(it) => backup::run(&session, it).await,
        VmCommand::Credentials(it) => credentials::run(&session, it).await,
        VmCommand::Guestosinfo(it) => guest::os_info(&session, it).await,
        VmCommand::Fslist(it) => guest::file_systems(&session, it).await,
        VmCommand::Userlist(it) => guest::users(&session, it).await,
        VmCommand::Expand(it) => expand::run(&session, it).await,
        VmCommand::List(it) => list::run(&session, it).await,
        VmCommand::Top(it) => top::run(&session, it).await,
        VmCommand::Events(it) => events::run(&session, it).await,
        VmCommand::Why(it) => return why::run(&session, it).await,
    }?;
    Ok(ExitCode::SUCCESS)
}
