//! A sync as a tree, for a terminal: the Application, the phases and waves of the sync, and the resources in them.

use serde_json::Value;

use crate::field::{qualified_name, text};
use crate::resource::{ResourceState, grouped};
use crate::selection::Selected;
use crate::table::Table;

/// What a mark stands for; whoever draws decides about colours.
fn mark(status: &str, health: &str) -> &'static str {
    match (status, health) {
        ("Failed" | "Error" | "SyncFailed", _) | (_, "Degraded" | "SyncFailed") => "✗",
        ("Running", _) | (_, "Progressing") => "◌",
        ("OutOfSync", _) | (_, "Missing") => "·",
        ("Synced" | "Succeeded" | "", "Healthy" | "") | (_, "Suspended" | "Pruned") => "✓",
        _ => " ",
    }
}

fn place(state: &ResourceState) -> (usize, i64, String) {
    const ORDER: [&str; 7] = [
        "PreSync",
        "Sync",
        "",
        "PostSync",
        "SyncFail",
        "PreDelete",
        "PostDelete",
    ];
    let phase = if state.hook.is_empty() {
        state.phase.as_str()
    } else {
        state.hook.as_str()
    };
    let rank = ORDER.iter().position(|it| *it == phase).unwrap_or(ORDER.len());
    match phase {
        "" | "Sync" => (1, state.wave, format!("wave {}", state.wave)),
        phase => (rank, state.wave, phase.to_owned()),
    }
}

/// The lines of the tree. With `width`, none is longer.
pub fn lines(application: &Value, selected: &[Selected], width: Option<usize>) -> Vec<String> {
    let phase = match text(application, "/status/operationState/phase") {
        "" if application.get("operation").is_some() => "Requested",
        phase => phase,
    };
    let mut table = Table::default();
    table.line([
        qualified_name(application),
        text(application, "/status/sync/status").to_owned(),
        text(application, "/status/health/status").to_owned(),
        [phase, text(application, "/status/operationState/message")]
            .join(" ")
            .trim()
            .to_owned(),
    ]);
    let mut groups: Vec<((usize, i64, String), Vec<ResourceState>)> = Vec::new();
    for state in grouped(application, selected) {
        let place = place(&state);
        match groups.iter_mut().find(|(known, _)| *known == place) {
            Some((_, members)) => members.push(state),
            None => groups.push((place, vec![state])),
        }
    }
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    let branches = |at: usize, of: usize| {
        if at + 1 == of {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        }
    };
    let count = groups.len();
    for (at, ((.., title), members)) in groups.into_iter().enumerate() {
        let (branch, rest) = branches(at, count);
        table.line([format!("{branch}{title}")]);
        let size = members.len();
        for (at, it) in members.into_iter().enumerate() {
            let (branch, _) = branches(at, size);
            let name = if it.namespace.is_empty() {
                it.name
            } else {
                format!("{}/{}", it.namespace, it.name)
            };
            let mark = mark(&it.status, &it.health);
            table.line([
                format!("{rest}{branch}{mark} {} {name}", it.kind),
                it.status,
                it.health,
                it.message,
            ]);
        }
    }
    let text = table.render();
    let cut = |line: &str| match width {
        Some(width) => line.trim_end().chars().take(width).collect(),
        None => line.trim_end().to_owned(),
    };
    text.lines().map(cut).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phases_and_waves_are_branches() {
        let application = json!({
            "metadata": {"namespace": "argocd", "name": "shop"},
            "status": {
                "sync": {"status": "OutOfSync"}, "health": {"status": "Progressing"},
                "resources": [
                    {"kind": "Namespace", "name": "web", "status": "Synced", "syncWave": -1},
                    {"kind": "Deployment", "group": "apps", "namespace": "web", "name": "front", "status": "Synced",
                     "health": {"status": "Progressing"}},
                    {"kind": "Service", "namespace": "web", "name": "front", "status": "OutOfSync", "health": {"status": "Missing"}},
                ],
                "operationState": {"phase": "Running", "message": "waiting for healthy state", "syncResult": {"resources": [
                    {"kind": "Job", "group": "batch", "namespace": "web", "name": "migrate", "hookType": "PreSync",
                     "hookPhase": "Succeeded", "syncPhase": "PreSync", "message": "done"},
                    {"kind": "Deployment", "group": "apps", "namespace": "web", "name": "front", "status": "Synced", "syncPhase": "Sync"},
                ]}},
            },
        });
        assert_eq!(
            lines(&application, &[], None),
            [
                "argocd/shop  OutOfSync  Progressing  Running waiting for healthy state",
                "├─ PreSync",
                "│  └─ ✓ Job web/migrate  Succeeded    done",
                "├─ wave -1",
                "│  └─ ✓ Namespace web  Synced",
                "└─ wave 0",
                "   ├─ ◌ Deployment web/front  Synced     Progressing",
                "   └─ · Service web/front     OutOfSync  Missing",
            ]
        );
        assert!(
            lines(&application, &[], Some(20))
                .iter()
                .all(|it| it.chars().count() <= 20)
        );
    }
}
