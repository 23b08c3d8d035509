//! An Application in detail: what `get` prints above its resources.

use fairway_gitops_sync::window::{Kind, Subject, SyncWindow, may_sync};
use jiff::Timestamp;
use serde_json::Value;

use crate::application::{first_source, has_several_sources, is_automated, project, server, sources};
use crate::field::{flag, list, present, qualified_name, text};
use crate::table::Table;
use crate::time::{moment, span};

const LABEL: usize = 20;
const SHORT: usize = 7;

/// A labelled line.
pub(crate) fn labelled(label: &str, value: &str) -> String {
    format!("{label:<LABEL$}{value}\n")
}

/// What is known of an Application. `windows` are those of its project, `url` is where it can be seen.
pub fn summary(application: &Value, windows: &[Value], url: &str, now: Timestamp) -> String {
    let mut lines = String::new();
    lines += &labelled("Name:", &qualified_name(application));
    lines += &labelled("Project:", project(application));
    lines += &labelled("Server:", server(application));
    lines += &labelled("Namespace:", text(application, "/spec/destination/namespace"));
    lines += &labelled("URL:", url);
    lines += if has_several_sources(application) {
        "Sources:\n"
    } else {
        "Source:\n"
    };
    for source in sources(application) {
        lines += &source_details(&source);
    }
    let (status, assigned) = window_status(application, windows, now);
    lines += &labelled("SyncWindow:", status);
    if !assigned.is_empty() {
        lines += &labelled("Assigned Windows:", &assigned.join(","));
    }
    let policy = match (
        is_automated(&application["spec"]),
        flag(application, "/spec/syncPolicy/automated/prune"),
    ) {
        (true, true) => "Automated (Prune)",
        (true, false) => "Automated",
        (false, _) => "Manual",
    };
    lines += &labelled("Sync Policy:", policy);
    lines += &labelled("Sync Status:", &sync_status(application));
    lines += &labelled("Health Status:", text(application, "/status/health/status"));
    lines
}

/// One source.
pub(crate) fn source_details(source: &Value) -> String {
    let mut lines = labelled("- Repo:", text(source, "/repoURL"));
    lines += &labelled("  Target:", text(source, "/targetRevision"));
    let files: Vec<&str> = list(source, "/helm/valueFiles")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for (label, value) in [
        ("  Path:", text(source, "/path")),
        ("  Ref:", text(source, "/ref")),
        ("  Helm Values:", files.join(",").as_str()),
        ("  Name Prefix:", text(source, "/kustomize/namePrefix")),
    ] {
        if !value.is_empty() {
            lines += &labelled(label, value);
        }
    }
    lines
}

fn is_commit(revision: &str) -> bool {
    revision.len() >= SHORT && revision.len() <= 40 && revision.chars().all(|c| c.is_ascii_hexdigit())
}

fn sync_status(application: &Value) -> String {
    let source = first_source(application).unwrap_or_default();
    let target = text(&source, "/targetRevision");
    let status = text(application, "/status/sync/status");
    let mut words = match status {
        "Synced" => format!("{status} to {target}"),
        "OutOfSync" => format!("{status} from {target}"),
        other => other.to_owned(),
    };
    let revision = text(application, "/status/sync/revision");
    if !is_commit(target)
        && revision.len() > SHORT
        && let Some(short) = revision.get(..SHORT)
    {
        words += &format!(" ({short})");
    }
    words
}

/// Whether a sync would be let through, and which windows are about the Application.
fn window_status(application: &Value, windows: &[Value], now: Timestamp) -> (&'static str, Vec<String>) {
    let subject = Subject {
        application: text(application, "/metadata/name"),
        server: text(application, "/spec/destination/server"),
        cluster: text(application, "/spec/destination/name"),
        namespace: text(application, "/spec/destination/namespace"),
    };
    let read = windows
        .iter()
        .filter_map(|it| serde_json::from_value::<SyncWindow>(it.clone()).ok());
    let about: Vec<SyncWindow> = read.filter(|it| it.is_about(subject)).collect();
    let words = about.iter().map(|it| {
        let kind = match it.kind {
            Kind::Allow => "allow",
            Kind::Deny => "deny",
        };
        format!("{kind}:{}:{}", it.schedule, it.duration)
    });
    let status = match (
        may_sync(&about, now, false, None),
        may_sync(&about, now, true, None),
    ) {
        (Ok(true), _) => "Sync Allowed",
        (Ok(false), Ok(true)) => "Manual Allowed",
        _ => "Sync Denied",
    };
    (status, words.collect())
}

/// What is known of the last operation.
pub fn operation(application: &Value, now: Timestamp) -> String {
    let Some(state) = present(application, "/status/operationState") else {
        return String::new();
    };
    let mut lines = String::new();
    if let Some(result) = present(state, "/syncResult") {
        lines += &labelled("Operation:", "Sync");
        let several: Vec<&str> = list(result, "/revisions")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let revision = if several.is_empty() {
            text(result, "/revision").to_owned()
        } else {
            several.join(", ")
        };
        lines += &labelled("Sync Revision:", &revision);
    }
    let (started, finished) = (text(state, "/startedAt"), text(state, "/finishedAt"));
    lines += &labelled("Phase:", text(state, "/phase"));
    lines += &labelled("Start:", &moment(started));
    // As Go prints what is not there.
    let ended = if finished.is_empty() {
        "<nil>".to_owned()
    } else {
        moment(finished)
    };
    lines += &labelled("Finished:", &ended);
    let second = |text: &str| text.parse::<Timestamp>().map(Timestamp::as_second);
    let end = second(finished).unwrap_or(now.as_second());
    lines += &labelled("Duration:", &span(second(started).map_or(0, |start| end - start)));
    if !text(state, "/message").is_empty() {
        lines += &labelled("Message:", text(state, "/message"));
    }
    lines
}

/// The table of conditions, or nothing.
pub fn conditions(application: &Value) -> String {
    let all = list(application, "/status/conditions");
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["CONDITION", "MESSAGE", "LAST TRANSITION"]);
    for it in all {
        let when = moment(text(it, "/lastTransitionTime"));
        table.line([text(it, "/type"), text(it, "/message"), &when]);
    }
    table.render()
}

/// The Helm parameters of a source, by its place among several.
pub fn parameters(application: &Value, place: usize) -> String {
    let Some(source) = sources(application).into_iter().nth(place) else {
        return String::new();
    };
    let Some(helm) = present(&source, "/helm") else {
        return String::new();
    };
    let mut table = Table::new(["NAME", "VALUE"]);
    for it in list(helm, "/parameters") {
        table.line([text(it, "/name").to_owned(), shortened(text(it, "/value"), 80)]);
    }
    table.render()
}

fn shortened(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit - 3).collect();
    format!("{kept}...")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-16T10:00:30Z".parse().unwrap()
    }

    fn application() -> Value {
        json!({
            "metadata": {"namespace": "argocd", "name": "guestbook"},
            "spec": {
                "project": "default", "destination": {"name": "in-cluster", "namespace": "web"},
                "source": {"repoURL": "https://git/apps", "path": "guestbook", "targetRevision": "main",
                           "helm": {"valueFiles": ["a.yaml", "b.yaml"], "parameters": [{"name": "x", "value": "y".repeat(90)}]}},
                "syncPolicy": {"automated": {}},
            },
            "status": {
                "sync": {"status": "OutOfSync", "revision": "0123456789abcdef"}, "health": {"status": "Missing"},
                "conditions": [{"type": "SyncError", "message": "no", "lastTransitionTime": "2026-11-16T10:00:00Z"}],
                "operationState": {"phase": "Running", "startedAt": "2026-11-16T09:59:00Z", "message": "waiting",
                                   "syncResult": {"revision": "0123456789abcdef"}},
            },
        })
    }

    #[test]
    fn a_summary_is_that_of_argocd() {
        assert_eq!(
            summary(&application(), &[], "https://x/applications/guestbook", now()),
            "Name:               argocd/guestbook\n\
             Project:            default\n\
             Server:             in-cluster\n\
             Namespace:          web\n\
             URL:                https://x/applications/guestbook\n\
             Source:\n\
             - Repo:             https://git/apps\n\
             \x20 Target:           main\n\
             \x20 Path:             guestbook\n\
             \x20 Helm Values:      a.yaml,b.yaml\n\
             SyncWindow:         Sync Allowed\n\
             Sync Policy:        Automated\n\
             Sync Status:        OutOfSync from main (0123456)\n\
             Health Status:      Missing\n"
        );
        assert_eq!(
            operation(&application(), now()),
            "Operation:          Sync\n\
             Sync Revision:      0123456789abcdef\n\
             Phase:              Running\n\
             Start:              2026-11-16 09:59:00 +0000 UTC\n\
             Finished:           <nil>\n\
             Duration:           1m30s\n\
             Message:            waiting\n"
        );
        assert_eq!(
            conditions(&application()),
            "CONDITION  MESSAGE  LAST TRANSITION\nSyncError  no       2026-11-16 10:00:00 +0000 UTC\n"
        );
        let shown = parameters(&application(), 0);
        assert!(
            shown.ends_with(&format!("x     {}...\n", "y".repeat(77))),
            "{shown}"
        );
        assert_eq!(operation(&json!({}), now()) + &conditions(&json!({})), "");
    }

    #[test]
    fn windows_let_through_or_not() {
        let window = |kind: &str, schedule: &str, manual: bool| json!({"kind": kind, "schedule": schedule, "duration": "1h", "applications": ["*"], "manualSync": manual});
        for (windows, status) in [
            (vec![window("deny", "0 10 * * *", false)], "Sync Denied"),
            (vec![window("deny", "0 10 * * *", true)], "Manual Allowed"),
            (vec![window("deny", "0 3 * * *", false)], "Sync Allowed"),
            (vec![window("allow", "0 3 * * *", false)], "Sync Denied"),
            (vec![window("allow", "0 10 * * *", false)], "Sync Allowed"),
            (
                vec![
                    json!({"kind": "deny", "schedule": "0 10 * * *", "duration": "1h", "applications": ["other"]}),
                ],
                "Sync Allowed",
            ),
        ] {
            assert_eq!(
                window_status(&application(), &windows, now()).0,
                status,
                "{windows:?}"
            );
        }
        let (_, words) = window_status(&application(), &[window("deny", "0 10 * * *", false)], now());
        assert_eq!(words, ["deny:0 10 * * *:1h"]);
    }
}
