//! The `fairway` command: one binary that is a GitOps virtual-machine platform.
//!
//! This crate is the command line, the configuration, and the one place where parts are wired together (`server`). It
//! decides nothing else.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program talks to its user"
)]

mod backup;
mod certs;
mod cli;
mod command;
mod config;
mod data_dir;
mod kubeconfig;
mod server;
mod signing_keys;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    // Not for people: these come before each machine or run beside it, and are to need as little as possible.
    match words.next().as_deref() {
        Some("supervise") => return fairway_machines_node::supervise::supervise(words),
        Some("tap") => return fairway_machines_tap::attach(words),
        _ => {}
    }
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Up(options) => command::up::run(options),
        Command::Down(options) => command::down::run(options),
        Command::Status(options) => command::status::run(options),
        Command::Kubeconfig(options) => command::kubeconfig::run(options),
        Command::Login(options) => command::login::run(options),
        Command::Logout(options) => command::login::log_out(options),
        Command::Whoami(options) => command::login::who_am_i(options),
        Command::Credential(options) => command::login::credential::run(options),
        Command::User(options) => command::identity::user(options),
        Command::Group(options) => command::identity::group(options),
        Command::Org(options) => command::identity::org(options),
        Command::OidcClient(options) => command::identity::oidc_client(options),
        Command::Workspace(options) => command::workspace::run(options),
        Command::App(options) => command::app::run(options),
        Command::Appset(options) => command::appset::run(options),
        Command::Proj(options) => command::proj::run(options),
        Command::Cluster(options) => command::cluster::run(options),
        Command::Certs(options) => command::certs::run(options),
        Command::Trust(options) => command::trust::run(options),
        Command::Backup(options) => command::backup::run(options),
        Command::Keys(options) => command::keys::run(options),
        Command::Render(options) => command::render::run(options),
        Command::Undelete(options) => command::undelete::run(options),
        Command::Repo(options) => command::repo::run(options),
        Command::Template(options) => command::golden_path::template(options),
        Command::New(options) => command::golden_path::new(options),
        Command::Voyage(options) => command::golden_path::voyage(options),
        Command::Catalog(options) => command::catalog::run(options),
        Command::Vm(options) => command::vm::run(options),
        Command::Why(options) => command::vm::why(options),
        Command::Gateway(options) => command::gateway::run(options),
        Command::ApiKey(options) => command::api_key::run(options),
        Command::Image(options) => command::image::run(options),
        Command::Node(options) => command::node::run(options),
        Command::Syncagent(options) => command::syncagent::run(options),
        Command::Version(options) => command::version::run(options),
        Command::Completion(options) => {
            command::completion::run(options);
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("fairway: {error:#}");
        ExitCode::FAILURE
    })
}
