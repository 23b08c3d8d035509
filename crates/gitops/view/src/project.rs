//! AppProjects.

use serde_json::Value;

use crate::field::{list, text};
use crate::table::Table;

/// None, the one, or how many.
fn some(all: &[Value], one: impl Fn(&Value) -> String, several: &str) -> String {
    match all {
        [] => "<none>".to_owned(),
        [it] => one(it),
        all => format!("{} {several}", all.len()),
    }
}

fn count(all: &[Value], what: &str) -> String {
    if all.is_empty() {
        "<none>".to_owned()
    } else {
        format!("{} {what}", all.len())
    }
}

fn joined(value: &Value, fields: &[&str], by: &str) -> String {
    fields
        .iter()
        .map(|it| text(value, it))
        .collect::<Vec<_>>()
        .join(by)
}

fn destination(value: &Value) -> String {
    joined(value, &["/server", "/namespace"], ",")
}

fn account(value: &Value) -> String {
    joined(value, &["/server", "/namespace", "/defaultServiceAccount"], ",")
}

fn group_kind(value: &Value) -> String {
    joined(value, &["/group", "/kind"], "/")
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn orphans(project: &Value) -> String {
    match project.pointer("/spec/orphanedResources") {
        None | Some(Value::Null) => "disabled".to_owned(),
        Some(it) => {
            let warns = it.get("warn") == Some(&Value::Bool(true));
            let mut details = vec![format!("warn={warns}")];
            let ignored = list(it, "/ignore").len();
            if ignored > 0 {
                details.push(format!("ignored {ignored}"));
            }
            format!("enabled ({})", details.join(", "))
        }
    }
}

/// The table of projects.
pub fn table(projects: &[Value]) -> String {
    let mut table = Table::new([
        "NAME",
        "DESCRIPTION",
        "DESTINATIONS",
        "SOURCES",
        "CLUSTER-RESOURCE-WHITELIST",
        "NAMESPACE-RESOURCE-BLACKLIST",
        "SIGNATURE-KEYS",
        "ORPHANED-RESOURCES",
        "DESTINATION-SERVICE-ACCOUNTS",
    ]);
    for it in projects {
        table.line([
            text(it, "/metadata/name").to_owned(),
            text(it, "/spec/description").to_owned(),
            some(list(it, "/spec/destinations"), destination, "destinations"),
            some(list(it, "/spec/sourceRepos"), plain, "repos"),
            some(
                list(it, "/spec/clusterResourceWhitelist"),
                group_kind,
                "resources",
            ),
            count(list(it, "/spec/namespaceResourceBlacklist"), "resources"),
            count(list(it, "/spec/signatureKeys"), "key(s)"),
            orphans(it),
            some(
                list(it, "/spec/destinationServiceAccounts"),
                account,
                "destinationServiceAccounts",
            ),
        ]);
    }
    table.render()
}

/// A project in detail, with the repositories and the servers that are its own.
pub fn summary(project: &Value, repositories: &[String], servers: &[String]) -> String {
    const LABEL: usize = 29;
    let mut lines = String::new();
    let mut several = |label: &str, values: &[String]| {
        let first = values.first().map_or("<none>", String::as_str);
        lines += &format!("{label:<LABEL$}{first}\n");
        for value in values.iter().skip(1) {
            lines += &format!("{:<LABEL$}{value}\n", "");
        }
    };
    let all =
        |field: &str, show: fn(&Value) -> String| list(project, field).iter().map(show).collect::<Vec<_>>();
    let keys = all("/spec/signatureKeys", |it| text(it, "/keyID").to_owned()).join(", ");
    let keys = if keys.is_empty() { Vec::new() } else { vec![keys] };
    several("Name:", &[text(project, "/metadata/name").to_owned()]);
    several("Description:", &[text(project, "/spec/description").to_owned()]);
    several("Destinations:", &all("/spec/destinations", destination));
    several("Repositories:", &all("/spec/sourceRepos", plain));
    several("Source Namespaces:", &all("/spec/sourceNamespaces", plain));
    several("Scoped Repositories:", repositories);
    several(
        "Allowed Cluster Resources:",
        &all("/spec/clusterResourceWhitelist", group_kind),
    );
    several("Scoped Clusters:", servers);
    several(
        "Denied Namespaced Resources:",
        &all("/spec/namespaceResourceBlacklist", group_kind),
    );
    several("Signature keys:", &keys);
    several("Orphaned Resources:", &[orphans(project)]);
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn projects_are_counted() {
        let default = json!({"metadata": {"name": "default"}, "spec": {
            "destinations": [{"server": "*", "namespace": "*"}], "sourceRepos": ["*"],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
        let team = json!({"metadata": {"name": "team"}, "spec": {
            "description": "Team", "destinations": [{"server": "a", "namespace": "b"}, {"server": "c", "namespace": "d"}],
            "sourceRepos": ["x", "y"], "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}],
            "orphanedResources": {"warn": true, "ignore": [{}]},
            "destinationServiceAccounts": [{"server": "a", "namespace": "b", "defaultServiceAccount": "sa"}]}});
        let shown = table(&[default, team.clone()]);
        let lines: Vec<Vec<&str>> = shown
            .lines()
            .map(|it| {
                it.split("  ")
                    .map(str::trim)
                    .filter(|it| !it.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(
            lines[1],
            [
                "default", "*,*", "*", "*/*", "<none>", "<none>", "disabled", "<none>"
            ]
        );
        assert_eq!(
            lines[2],
            [
                "team",
                "Team",
                "2 destinations",
                "2 repos",
                "<none>",
                "1 resources",
                "<none>",
                "enabled (warn=true, ignored 1)",
                "a,b,sa"
            ]
        );
        let detail = summary(&team, &[], &["https://own".to_owned()]);
        assert!(
            detail.contains("Destinations:                a,b\n                             c,d\n"),
            "{detail}"
        );
        assert!(
            detail.contains("Scoped Clusters:             https://own\n"),
            "{detail}"
        );
        assert!(
            detail.contains("Denied Namespaced Resources: /Secret\n"),
            "{detail}"
        );
    }
}
