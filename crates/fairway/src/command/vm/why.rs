//! `fairway why` and `fairway vm why`: collects through the API what the chain from the form to the gateway is judged by, and shows it.

use std::process::ExitCode;

use anyhow::anyhow;
use fairway_why_chain::{described, text};
use fairway_why_gather::{Places, Question, why};

use super::session::Session;
use super::target::{Kind, Target};
use crate::cli::Output;
use crate::cli::vm::show::Why;

/// What scripts are told of a chain with a broken link.
const BROKEN: u8 = 2;

/// Explains a machine.
pub(super) async fn run(session: &Session, options: &Why) -> anyhow::Result<ExitCode> {
    let target = Target::parse(&options.named.name)?;
    let kind = match target.kind {
        Some(Kind::Instance) => "vmi",
        _ => "vm",
    };
    let question = Question {
        object: format!("{kind}/{}", target.name),
        anywhere: target.namespace.is_none() && !session.names_namespace(),
        namespace: target.namespace.unwrap_or_else(|| session.namespace().to_owned()),
    };
    explain(session, &question, &options.output).await
}

/// Explains anything.
pub(super) async fn of(session: &Session, object: &str, output: &Output) -> anyhow::Result<ExitCode> {
    let question = Question {
        object: object.to_owned(),
        namespace: session.namespace().to_owned(),
        anywhere: !session.names_namespace(),
    };
    explain(session, &question, output).await
}

async fn explain(session: &Session, question: &Question, output: &Output) -> anyhow::Result<ExitCode> {
    let places = Places {
        here: session.client.clone(),
        root: session.root().ok().map(|it| it.client),
    };
    let report = why(&places, question)
        .await
        .map_err(|failed| anyhow!("{failed}"))?;
    output.print(&described(&report), text(&report).trim_end());
    Ok(match report.broken() {
        Some(_) => ExitCode::from(BROKEN),
        None => ExitCode::SUCCESS,
    })
}
