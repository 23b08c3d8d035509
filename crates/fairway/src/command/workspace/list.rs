//! `fairway workspace list`.

use std::process::ExitCode;

use anyhow::Context;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::server::{Server, name, text, told, type_of};
use crate::cli::workspace::List;

/// Lists them.
pub(super) async fn run(options: &List) -> anyhow::Result<ExitCode> {
    let server = Server::find(&options.place).await?;
    let here = &server.here.path;
    let all = server
        .list(here)
        .await
        .map_err(told)
        .with_context(|| format!("the workspaces in {here} could not be listed"))?;
    let items: Vec<Value> = all
        .iter()
        .map(serde_json::to_value)
        .collect::<Result<_, _>>()
        .context("the workspaces cannot be shown")?;
    let value = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let shown = match &all[..] {
        [] => format!("There is no workspace in {here}."),
        some => table(some),
    };
    options.output.print(&value, &shown);
    Ok(ExitCode::SUCCESS)
}

fn table(all: &[DynamicObject]) -> String {
    let mut lines = vec![["NAME", "TYPE", "PHASE", "URL"].map(str::to_owned)];
    lines.extend(all.iter().map(|workspace| {
        [
            name(workspace).to_owned(),
            type_of(workspace),
            text(workspace, "/status/phase").to_owned(),
            text(workspace, "/spec/URL").to_owned(),
        ]
    }));
    let widths: Vec<usize> = (0..4)
        .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0))
        .collect();
    let shown = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("   ").trim_end().to_owned()
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let workspace: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "acme"}, "spec": {"type": {"name": "universal", "path": "root"}, "URL": "https://h"},
        }))
        .unwrap();
        assert_eq!(
            table(&[workspace]),
            "NAME   TYPE             PHASE   URL\nacme   root:universal           https://h"
        );
    }
}
