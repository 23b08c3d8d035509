//! What steps can do: Backstage's actions by name, with what they take and give.

mod argocd;
mod catalog;
mod debug;
mod fetch;
mod fs;
mod http;
pub(crate) mod notify;
mod objects;
mod publish;

use serde_json::{Value, json};

use crate::drive::{Job, Mode, StepError};

/// What is known of an action.
pub struct Action {
    /// As steps name it.
    pub id: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Inputs: name, type, whether it must be there.
    pub inputs: &'static [(&'static str, &'static str, bool)],
    /// Outputs: name and type.
    pub outputs: &'static [(&'static str, &'static str)],
    /// It changes the working tree and nothing else, so that it can be done again.
    pub is_of_files: bool,
}

const fn action(
    id: &'static str,
    description: &'static str,
    inputs: &'static [(&'static str, &'static str, bool)],
    outputs: &'static [(&'static str, &'static str)],
    is_of_files: bool,
) -> Action {
    Action {
        id,
        description,
        inputs,
        outputs,
        is_of_files,
    }
}

/// All of them, by name.
pub const ACTIONS: &[Action] = &[
    action(
        "argocd:create-resources",
        "Makes an Application that syncs a directory of a repository, automatically, with pruning, self-healing and server-side apply.",
        &[
            ("appName", "string", true),
            ("repoUrl", "string", true),
            ("path", "string", true),
            ("namespace", "string", true),
            ("argoInstance", "string", false),
            ("argoNamespace", "string", false),
            ("projectName", "string", false),
            ("targetRevision", "string", false),
            ("labels", "object", false),
            ("ignoreDifferences", "array", false),
        ],
        &[("applicationName", "string"), ("applicationNamespace", "string")],
        false,
    ),
    action(
        "catalog:fetch",
        "Reads entities of the catalog.",
        &[
            ("entityRef", "string", false),
            ("entityRefs", "array", false),
            ("optional", "boolean", false),
        ],
        &[("entity", "object"), ("entities", "array")],
        false,
    ),
    action(
        "catalog:register",
        "Registers a catalog-info.yaml in the catalog.",
        &[
            ("repoContentsUrl", "string", false),
            ("catalogInfoPath", "string", false),
            ("catalogInfoUrl", "string", false),
            ("optional", "boolean", false),
        ],
        &[("catalogInfoUrl", "string"), ("entityRef", "string")],
        false,
    ),
    action(
        "catalog:write",
        "Writes an entity into the working tree.",
        &[("entity", "object", true), ("filePath", "string", false)],
        &[],
        true,
    ),
    action(
        "crossplane:create",
        "Creates one object, such as a claim; one of the same name is an error.",
        &[
            ("manifest", "string", false),
            ("object", "object", false),
            ("namespace", "string", false),
        ],
        &[("objects", "array")],
        false,
    ),
    action(
        "debug:log",
        "Writes a line into the log, and lists the working tree.",
        &[
            ("message", "string", false),
            ("listWorkspace", "boolean", false),
            ("extra", "object", false),
        ],
        &[],
        false,
    ),
    action(
        "debug:wait",
        "Waits, ten minutes at most.",
        &[
            ("seconds", "number", false),
            ("minutes", "number", false),
            ("milliseconds", "number", false),
        ],
        &[],
        false,
    ),
    action(
        "fetch:plain",
        "Copies files into the working tree as they are.",
        &[("url", "string", true), ("targetPath", "string", false)],
        &[],
        true,
    ),
    action(
        "fetch:plain:file",
        "Copies one file into the working tree as it is.",
        &[("url", "string", true), ("targetPath", "string", true)],
        &[],
        true,
    ),
    action(
        "fetch:template",
        "Copies a skeleton into the working tree, with names and contents worked out.",
        &[
            ("url", "string", true),
            ("targetPath", "string", false),
            ("values", "object", false),
            ("copyWithoutTemplating", "array", false),
            ("copyWithoutRender", "array", false),
            ("cookiecutterCompat", "boolean", false),
            ("templateFileExtension", "boolean", false),
            ("replace", "boolean", false),
            ("trimBlocks", "boolean", false),
            ("lstripBlocks", "boolean", false),
        ],
        &[],
        true,
    ),
    action(
        "fetch:template:file",
        "The same for one file.",
        &[
            ("url", "string", true),
            ("targetPath", "string", true),
            ("values", "object", false),
        ],
        &[],
        true,
    ),
    action(
        "fs:delete",
        "Removes files of the working tree.",
        &[("files", "array", true)],
        &[],
        true,
    ),
    action(
        "fs:rename",
        "Moves files of the working tree.",
        &[("files", "array", true)],
        &[],
        true,
    ),
    action(
        "fs:copy",
        "Copies files within the working tree.",
        &[("files", "array", true)],
        &[],
        true,
    ),
    action(
        "fs:readdir",
        "Lists directories of the working tree.",
        &[("paths", "array", true), ("recursive", "boolean", false)],
        &[("files", "array"), ("folders", "array")],
        true,
    ),
    action(
        "http:backstage:request",
        "Asks an API of this installation's portal, such as /api/catalog, as who started the run.",
        &[
            ("path", "string", true),
            ("method", "string", false),
            ("params", "object", false),
            ("headers", "object", false),
            ("body", "object", false),
            ("timeout", "number", false),
            ("logRequestPath", "boolean", false),
            ("continueOnBadResponse", "boolean", false),
        ],
        &[("code", "number"), ("headers", "object"), ("body", "object")],
        false,
    ),
    action(
        "kubernetes:apply",
        "Applies objects to this workspace by server-side apply; those that are not there are created.",
        &[
            ("manifest", "string", false),
            ("manifestPath", "string", false),
            ("manifestObject", "object", false),
            ("namespace", "string", false),
        ],
        &[("objects", "array")],
        false,
    ),
    action(
        "notification:send",
        "Sends a mail, and calls a webhook. Neither keeps the run waiting.",
        &[
            ("title", "string", true),
            ("info", "string", false),
            ("link", "string", false),
            ("email", "array", false),
            ("webhook", "string", false),
            ("recipients", "string", false),
            ("entityRefs", "array", false),
            ("severity", "string", false),
        ],
        &[],
        false,
    ),
    action(
        "publish:gitea",
        "Makes a repository on the Git host of this installation and commits the working tree into it.",
        &[
            ("repoUrl", "string", true),
            ("description", "string", false),
            ("defaultBranch", "string", false),
            ("repoVisibility", "string", false),
            ("gitCommitMessage", "string", false),
            ("sourcePath", "string", false),
        ],
        &[
            ("remoteUrl", "string"),
            ("repoContentsUrl", "string"),
            ("commitHash", "string"),
        ],
        false,
    ),
    action(
        "publish:gitea:pull-request",
        "Commits the working tree to a new branch of a repository and opens a pull request.",
        &[
            ("repoUrl", "string", true),
            ("branchName", "string", true),
            ("title", "string", true),
            ("description", "string", false),
            ("targetBranchName", "string", false),
            ("sourcePath", "string", false),
            ("targetPath", "string", false),
        ],
        &[("pullRequestUrl", "string"), ("pullRequestNumber", "number")],
        false,
    ),
];

/// Their names.
pub fn names() -> Vec<&'static str> {
    ACTIONS.iter().map(|action| action.id).collect()
}

/// Whether an action changes the working tree and nothing else.
pub(crate) fn is_of_files(name: &str) -> bool {
    ACTIONS
        .iter()
        .any(|action| action.id == name && action.is_of_files)
}

/// As Backstage's API shows them.
pub fn describe(action: &Action) -> Value {
    let property = |kind: &str| json!({"type": kind});
    let inputs: serde_json::Map<String, Value> = action
        .inputs
        .iter()
        .map(|(name, kind, _)| ((*name).to_owned(), property(kind)))
        .collect();
    let required: Vec<&str> = action
        .inputs
        .iter()
        .filter(|(_, _, must)| *must)
        .map(|(name, ..)| *name)
        .collect();
    let outputs: serde_json::Map<String, Value> = action
        .outputs
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), property(kind)))
        .collect();
    json!({
        "id": action.id, "description": action.description,
        "schema": {
            "input": {"type": "object", "properties": inputs, "required": required},
            "output": {"type": "object", "properties": outputs},
        },
    })
}

/// Does what a step says.
pub(crate) async fn act(job: &mut Job<'_>, name: &str) -> Result<Value, StepError> {
    let known = ACTIONS.iter().find(|action| action.id == name);
    let known = known.ok_or_else(|| StepError::Failed(format!("the action {name:?} is not known here")))?;
    let missing = known
        .inputs
        .iter()
        .find(|(input, _, must)| *must && job.input.get(input).is_none_or(Value::is_null));
    if let Some((input, ..)) = missing {
        return Err(StepError::Failed(format!("{name} needs input.{input}")));
    }
    if job.mode == Mode::Again && !known.is_of_files {
        return Ok(Value::Null);
    }
    match name {
        "argocd:create-resources" => argocd::create(job).await,
        "catalog:fetch" => catalog::fetch(job).await,
        "catalog:register" => catalog::register(job).await,
        "catalog:write" => catalog::write(job),
        "crossplane:create" => objects::create(job).await,
        "debug:log" => debug::log(job),
        "debug:wait" => debug::wait(job),
        "fetch:plain" => fetch::plain(job).await,
        "fetch:plain:file" => fetch::plain_file(job).await,
        "fetch:template" => fetch::template(job).await,
        "fetch:template:file" => fetch::template_file(job).await,
        "fs:delete" => fs::delete(job),
        "fs:rename" => fs::rename(job, false),
        "fs:copy" => fs::rename(job, true),
        "fs:readdir" => fs::readdir(job),
        "http:backstage:request" => http::request(job).await,
        "kubernetes:apply" => objects::apply(job).await,
        "notification:send" => notify::send(job).await,
        "publish:gitea" => publish::repository(job).await,
        "publish:gitea:pull-request" => publish::pull_request(job).await,
        other => Err(StepError::Failed(format!(
            "the action {other:?} is not known here"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_described_once_and_in_order_of_its_group() {
        let names = names();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        for action in ACTIONS {
            let shown = describe(action);
            assert_eq!(shown["schema"]["input"]["type"], "object", "{}", action.id);
            assert!(action.description.ends_with('.'), "{}", action.id);
        }
    }
}
