//! Repository chores: `cargo xtask <command>`. A command is one line of `COMMANDS` and a module of its own.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

mod generated;
mod tidy;

use std::process::ExitCode;

/// A chore: its words, one line for the help text, and what runs it with the rest of the arguments.
type Command = (
    &'static [&'static str],
    &'static str,
    fn(&[String]) -> anyhow::Result<()>,
);

const COMMANDS: &[Command] = &[
    (&["tidy"], "check what ARCHITECTURE.md promises", tidy::run),
    (
        &["lock-generated"],
        "[PATH...] record the hashes of generated files (and of new ones)",
        generated::run,
    ),
];

/// The command that the arguments start with, and its own arguments.
fn command(arguments: &[String]) -> Option<(&'static Command, &[String])> {
    COMMANDS.iter().find_map(|command| {
        let (own, rest) = arguments.split_at_checked(command.0.len())?;
        (own == command.0).then_some((command, rest))
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(((_, _, run), rest)) = command(&arguments) else {
        eprintln!("usage: cargo xtask COMMAND\n");
        for (words, what, _) in COMMANDS {
            eprintln!("  {:<20} {what}", words.join(" "));
        }
        return ExitCode::from(2);
    };
    match run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
