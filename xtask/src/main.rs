//! Repository chores: `cargo xtask <command>`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a command line tool prints

mod conformance_apply;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["conformance", "apply"] => conformance_apply(None),
        ["conformance", "apply", "--dir", folder] => conformance_apply(Some(PathBuf::from(folder))),
        _ => {
            eprintln!("usage: cargo xtask conformance apply [--dir DIR]");
            ExitCode::from(2)
        }
    }
}

fn conformance_apply(folder: Option<PathBuf>) -> ExitCode {
    let folder = folder
        .or_else(|| std::env::var_os("FAIRWAY_CONFORMANCE").map(|base| PathBuf::from(base).join("apply")));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        println!("SKIPPED: the folder of cases is absent");
        return ExitCode::SUCCESS;
    };
    match conformance_apply::run(&folder) {
        Ok(report) => {
            for (name, reason) in &report.failed {
                println!("FAIL {name}: {reason}");
            }
            println!("{} passed, {} failed", report.passed, report.failed.len());
            if report.failed.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("reading {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
