//! `fairway completion`.

use clap::CommandFactory;

use crate::cli::{Cli, Completion};

/// Prints the script.
pub(crate) fn run(options: &Completion) {
    clap_complete::generate(
        options.shell,
        &mut Cli::command(),
        "fairway",
        &mut std::io::stdout(),
    );
}
