//! The open pull requests of a repository, for parts of this process that need no leave to read it.

use fairway_gitops_git::{ObjectId, RefName, Repository};

use super::PULLS;
use crate::gitea::{labels, records};

/// An open pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPull {
    /// Its number.
    pub number: u64,
    /// What it is about.
    pub title: String,
    /// The branch that wants to be merged.
    pub head: String,
    /// The last commit of that branch.
    pub head_commit: String,
    /// The branch that it wants to be merged into.
    pub base: String,
    /// Who made it.
    pub author: String,
    /// The names of its labels.
    pub labels: Vec<String>,
}

/// All that are open, newest first. One whose branch is gone is left out.
pub(crate) async fn open(repository: &Repository) -> Result<Vec<OpenPull>, String> {
    let all = records::read(repository, PULLS.to_owned()).await;
    let all = all.map_err(|problem| problem.message)?;
    let names = labels::names(repository)
        .await
        .map_err(|problem| problem.message)?;
    let mut found = Vec::new();
    for pull in all.iter().rev().filter(|pull| pull["state"] == "open") {
        let text = |field: &str| pull[field].as_str().unwrap_or_default().to_owned();
        let head = text("head");
        let branch = RefName::branch(&head).map_err(|error| error.full())?;
        let commit = repository
            .reference(&branch)
            .await
            .map_err(|error| error.full())?;
        if let Some(commit) = commit.as_ref().map(ObjectId::as_str) {
            found.push(OpenPull {
                number: pull["number"].as_u64().unwrap_or_default(),
                title: text("title"),
                head,
                head_commit: commit.to_owned(),
                base: text("base"),
                author: text("user"),
                labels: labels::ids(pull)
                    .iter()
                    .filter_map(|id| names.iter().find(|(known, _)| known == id))
                    .map(|(_, name)| name.clone())
                    .collect(),
            });
        }
    }
    Ok(found)
}
