//! Repository chores: `cargo xtask <command>`. A command is one line of `COMMANDS` and a module of its own.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool talks to its user"
)]

mod codegen;
mod conformance;
mod conformance_apply;
mod conformance_diff;
mod conformance_health;
mod conformance_helm;
mod conformance_kustomize;
mod openapi_conformance;
mod tidy;
mod upstream;

use std::process::ExitCode;

/// A chore: its name, one line for the help text, and what runs it with the rest of the arguments.
type Command = (&'static str, &'static str, fn(&[String]) -> anyhow::Result<()>);

const COMMANDS: &[Command] = &[
    ("tidy", "check what ARCHITECTURE.md promises", tidy::run),
    (
        "codegen",
        "schema|protobuf|merge-keys|argoproj|machines [--check]: write (or check) the facts about kinds",
        codegen::run,
    ),
    (
        "conformance",
        "apply|helm|kustomize [--dir DIR] | diff | health | openapi: run cases of the originals' own test-suites",
        conformance::run,
    ),
];

fn command(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|(known, ..)| *known == name)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((_, _, run)) = arguments.first().and_then(|name| command(name)) else {
        eprintln!("usage: cargo xtask COMMAND\n");
        for (name, what, _) in COMMANDS {
            eprintln!("  {name:<12} {what}");
        }
        return ExitCode::from(2);
    };
    match run(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
