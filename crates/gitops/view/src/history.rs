//! Past deployments.

use serde_json::Value;

use crate::field::{list, text};
use crate::table::Table;
use crate::time::moment;

const SHORT: usize = 7;

fn revision(target: &str, commit: &str) -> String {
    match commit.get(..SHORT) {
        Some(short) => format!("{target} ({short})"),
        None => target.to_owned(),
    }
}

/// The table of deployments, by source.
pub fn table(application: &Value) -> String {
    // By repository in the order in which they were first deployed from.
    let mut found: Vec<(String, Vec<[String; 3]>)> = Vec::new();
    let mut add = |source: &Value, id: &Value, date: &str, commit: &str| {
        let repository = text(source, "/repoURL");
        let line = [
            id.to_string(),
            moment(date),
            revision(text(source, "/targetRevision"), commit),
        ];
        match found.iter_mut().find(|(known, _)| known == repository) {
            Some((_, lines)) => lines.push(line),
            None => found.push((repository.to_owned(), vec![line])),
        }
    };
    for deployment in list(application, "/status/history") {
        let date = text(deployment, "/deployedAt");
        let sources = list(deployment, "/sources");
        let commits = list(deployment, "/revisions");
        if sources.is_empty() {
            add(
                &deployment["source"],
                &deployment["id"],
                date,
                text(deployment, "/revision"),
            );
        }
        for (at, source) in sources.iter().enumerate() {
            let commit = commits.get(at).filter(|_| commits.len() == sources.len());
            let commit = commit.and_then(Value::as_str).unwrap_or_default();
            add(source, &deployment["id"], date, commit);
        }
    }
    let mut table = Table::default();
    for (at, (repository, lines)) in found.iter().enumerate() {
        if at > 0 {
            table.line(Vec::<String>::new());
        }
        table.line(["SOURCE", repository]);
        table.line(["ID", "DATE", "REVISION"]);
        for line in lines {
            table.line(line.clone());
        }
    }
    table.render()
}

/// The numbers alone.
pub fn ids(application: &Value) -> String {
    let all = list(application, "/status/history").iter();
    all.map(|it| format!("{}\n", it["id"])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deployments_are_grouped_by_source() {
        let application = json!({"status": {"history": [
            {"id": 0, "deployedAt": "2026-11-16T10:00:00Z", "revision": "0123456789abcdef",
             "source": {"repoURL": "https://git/a", "targetRevision": "main"}},
            {"id": 1, "deployedAt": "2026-11-16T11:00:00Z", "revisions": ["aaaaaaaaaaaa", "1.2.3"], "sources": [
                {"repoURL": "https://git/a", "targetRevision": "main"},
                {"repoURL": "https://charts", "targetRevision": "1.2.3"}]},
        ]}});
        assert_eq!(
            table(&application),
            "SOURCE  https://git/a\n\
             ID      DATE                           REVISION\n\
             0       2026-11-16 10:00:00 +0000 UTC  main (0123456)\n\
             1       2026-11-16 11:00:00 +0000 UTC  main (aaaaaaa)\n\
             \n\
             SOURCE  https://charts\n\
             ID      DATE                           REVISION\n\
             1       2026-11-16 11:00:00 +0000 UTC  1.2.3\n"
        );
        assert_eq!(ids(&application), "0\n1\n");
        assert_eq!(table(&json!({})), "");
    }
}
