//! ApplicationSets.

use serde_json::Value;

use crate::application::{has_several_sources, is_automated, project, server, sources};
use crate::field::{flag, list, present, qualified_name, text};
use crate::summary::{labelled, source_details};
use crate::table::Table;
use crate::time::moment;

/// The template, in the form of an Application.
fn template(set: &Value) -> &Value {
    present(set, "/spec/template").unwrap_or(&Value::Null)
}

/// What the set may do to its Applications.
fn policy(set: &Value) -> String {
    let Some(policy) = present(set, "/spec/syncPolicy") else {
        return "nil".to_owned();
    };
    let mut words = Vec::new();
    if flag(policy, "/preserveResourcesOnDeletion") {
        words.push("preserveResourcesOnDeletion".to_owned());
    }
    match text(policy, "/applicationsSync") {
        "" => {}
        kind => words.push(kind.to_owned()),
    }
    if words.is_empty() {
        "nil".to_owned()
    } else {
        words.join(",")
    }
}

/// The table of sets. Where argocd prints Go's form of structures, this prints their words.
pub fn table(sets: &[Value], wide: bool) -> String {
    let mut headings = vec!["NAME", "PROJECT", "SYNCPOLICY", "CONDITIONS"];
    if wide {
        headings.extend(["REPO", "PATH", "TARGET"]);
    }
    let mut table = Table::default();
    table.line(headings);
    for set in sets {
        let holding = list(set, "/status/conditions")
            .iter()
            .filter(|it| text(it, "/status") == "True");
        let holding: Vec<&str> = holding.map(|it| text(it, "/type")).collect();
        let mut cells = vec![
            qualified_name(set),
            text(template(set), "/spec/project").to_owned(),
            policy(set),
            if holding.is_empty() {
                "<none>".to_owned()
            } else {
                holding.join(",")
            },
        ];
        if wide {
            let source = sources(template(set)).into_iter().next().unwrap_or_default();
            cells.extend(["/repoURL", "/path", "/targetRevision"].map(|it| text(&source, it).to_owned()));
        }
        table.line(cells);
    }
    table.render()
}

/// A set in detail.
pub fn summary(set: &Value) -> String {
    let template = template(set);
    let mut lines = labelled("Name:", &qualified_name(set));
    lines += &labelled("Project:", project(template));
    lines += &labelled("Server:", server(template));
    lines += &labelled("Namespace:", text(template, "/spec/destination/namespace"));
    lines += if has_several_sources(template) {
        "Sources:\n"
    } else {
        "Source:\n"
    };
    let all = sources(template);
    for source in if all.is_empty() { vec![Value::Null] } else { all } {
        lines += &source_details(&source);
    }
    let policy = match (
        is_automated(&template["spec"]),
        flag(template, "/spec/syncPolicy/automated/prune"),
    ) {
        (true, true) => "Automated (Prune)",
        (true, false) => "Automated",
        (false, _) => "<none>",
    };
    lines += &labelled("SyncPolicy:", policy);
    lines
}

/// The table of conditions, or nothing.
pub fn conditions(set: &Value) -> String {
    let all = list(set, "/status/conditions");
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["CONDITION", "STATUS", "MESSAGE", "LAST TRANSITION"]);
    for it in all {
        let when = moment(text(it, "/lastTransitionTime"));
        table.line([
            text(it, "/type"),
            text(it, "/status"),
            text(it, "/message"),
            &when,
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_are_shown() {
        let set = json!({
            "metadata": {"namespace": "argocd", "name": "all"},
            "spec": {
                "syncPolicy": {"applicationsSync": "create-update", "preserveResourcesOnDeletion": true},
                "template": {"spec": {"project": "p", "destination": {"name": "{{name}}"},
                    "source": {"repoURL": "r", "path": "{{path}}", "targetRevision": "main"}}},
            },
            "status": {"conditions": [
                {"type": "ErrorOccurred", "status": "False"},
                {"type": "ResourcesUpToDate", "status": "True", "message": "ok", "lastTransitionTime": "2026-11-16T10:00:00Z"},
            ]},
        });
        assert_eq!(
            table(&[set.clone()], true),
            "NAME        PROJECT  SYNCPOLICY                                 CONDITIONS         REPO  PATH      TARGET\n\
             argocd/all  p        preserveResourcesOnDeletion,create-update  ResourcesUpToDate  r     {{path}}  main\n"
        );
        assert!(summary(&set).contains("Server:             {{name}}\n"));
        assert!(summary(&set).ends_with("SyncPolicy:         <none>\n"));
        assert!(
            conditions(&set).contains("ResourcesUpToDate  True    ok       2026-11-16 10:00:00 +0000 UTC\n")
        );
        assert_eq!(
            table(&[json!({"metadata": {"name": "x"}})], false),
            "NAME  PROJECT  SYNCPOLICY  CONDITIONS\nx              nil         <none>\n"
        );
    }
}
