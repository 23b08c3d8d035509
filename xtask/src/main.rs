//! Repository chores: `cargo xtask <command>`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool prints"
)]

mod codegen;
mod openapi_conformance;
mod upstream;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <command>

commands:
  codegen schema [--check]   write (or check) the facts about the built-in kinds
  conformance openapi        compare the OpenAPI documents with upstream's";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["codegen", "schema"] => codegen::schema(false),
        ["codegen", "schema", "--check"] => codegen::schema(true),
        ["conformance", "openapi"] => openapi_conformance::run(),
        _ => Err(anyhow::anyhow!("{USAGE}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
