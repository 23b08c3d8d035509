//! What steps can do: Backstage's actions by name, with what they take and give.

pub(crate) mod argocd;
mod catalog;
mod debug;
mod examples;
mod fetch;
mod fs;
mod http;
pub(crate) mod notify;
pub(crate) mod objects;
mod publish;

use serde_json::{Value, json};

use crate::drive::{Job, Mode, StepError};

/// What is known of an action.
pub struct Action {
    /// As steps name it.
    pub id: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Inputs: name, type (several with a bar between them, or `any`), whether it must be there.
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
            ("labelValue", "string", false),
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
            ("defaultKind", "string", false),
            ("defaultNamespace", "string", false),
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
            ("manifest", "string|array|object", false),
            ("manifestString", "string", false),
            ("manifestPath", "string", false),
            ("manifestObject", "object", false),
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
            ("message", "any", false),
            ("listWorkspace", "boolean|string", false),
            ("extra", "any", false),
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
            ("copyWithoutTemplating", "array|string", false),
            ("copyWithoutRender", "array|string", false),
            ("cookiecutterCompat", "boolean", false),
            ("templateFileExtension", "boolean|string", false),
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
            ("cookiecutterCompat", "boolean", false),
            ("trimBlocks", "boolean", false),
            ("lstripBlocks", "boolean", false),
        ],
        &[],
        true,
    ),
    action(
        "fs:delete",
        "Removes files of the working tree.",
        &[("files", "array|string", true)],
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
        &[("paths", "array|string", true), ("recursive", "boolean", false)],
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
            ("body", "any", false),
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
            ("manifest", "string|array|object", false),
            ("manifestString", "string", false),
            ("object", "object", false),
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
            ("message", "string", false),
            ("link", "string", false),
            ("email", "array|string", false),
            ("webhook", "string", false),
            ("recipients", "string", false),
            ("entityRefs", "array|string", false),
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
            ("gitAuthorName", "string", false),
            ("gitAuthorEmail", "string", false),
            ("signCommit", "boolean", false),
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
        &[
            ("pullRequestUrl", "string"),
            ("remoteUrl", "string"),
            ("pullRequestNumber", "number"),
            ("targetBranchName", "string"),
        ],
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

/// The types that an input may have; none if it may be anything.
fn types(kind: &str) -> Vec<&str> {
    kind.split('|').filter(|kind| *kind != "any").collect()
}

/// Judges an input by what the action says of itself: why it cannot be done with it, or which of it nobody looks at.
fn looked_at<'i>(known: &Action, input: &'i Value) -> Result<Vec<&'i str>, String> {
    let name = known.id;
    let is_there = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let missing = known
        .inputs
        .iter()
        .find(|(field, _, must)| *must && !is_there(input.get(field)));
    if let Some((field, ..)) = missing {
        return Err(format!("{name} needs input.{field}"));
    }
    let mut unknown = Vec::new();
    for (field, value) in input.as_object().into_iter().flatten() {
        let Some((_, kind, _)) = known.inputs.iter().find(|(known, ..)| known == field) else {
            unknown.push(field.as_str());
            continue;
        };
        let wanted = types(kind);
        let is = match value {
            // What an expression found nothing for was not given.
            Value::Null => continue,
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        if !wanted.is_empty() && !wanted.contains(&is) {
            return Err(format!(
                "{name} takes input.{field} as {}, and was given {}",
                wanted
                    .iter()
                    .map(|kind| with_article(kind))
                    .collect::<Vec<_>>()
                    .join(" or "),
                with_article(is)
            ));
        }
    }
    Ok(unknown)
}

fn with_article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'o']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// As Backstage's API shows them.
pub fn describe(action: &Action) -> Value {
    let property = |kind: &str| match types(kind) {
        types if types.is_empty() => json!({}),
        types if types.len() == 1 => json!({"type": types[0]}),
        types => json!({ "type": types }),
    };
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
        "id": action.id, "description": action.description, "examples": examples::of(action.id),
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
    // The values are not said: they may be secret.
    let unknown: Vec<String> = looked_at(known, &job.input)
        .map_err(StepError::Failed)?
        .into_iter()
        .map(|field| format!("input.{field}"))
        .collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        job.log_once(&format!("{name} does not know {unknown}: nobody looks at it"));
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

    #[test]
    fn inputs_are_judged_by_what_an_action_says_of_itself() {
        /// An action, an input, and which of it nobody looks at, or why it is refused.
        type Case<'c> = (&'c str, Value, Result<&'c [&'c str], &'c str>);
        let action = |name: &str| ACTIONS.iter().find(|action| action.id == name).unwrap();
        let cases: [Case<'_>; 11] = [
            ("debug:log", json!({"message": 3, "extra": [1]}), Ok(&[])),
            (
                "debug:log",
                json!({"listWorkspace": "with-filenames", "verbose": true}),
                Ok(&["verbose"]),
            ),
            ("debug:wait", json!({"seconds": null}), Ok(&[])),
            (
                "debug:wait",
                json!({"seconds": "5"}),
                Err("debug:wait takes input.seconds as a number, and was given a string"),
            ),
            ("fetch:plain", json!({}), Err("fetch:plain needs input.url")),
            (
                "fetch:plain",
                json!({"url": null}),
                Err("fetch:plain needs input.url"),
            ),
            (
                "fetch:template",
                json!({"url": "./x", "values": ["a"]}),
                Err("fetch:template takes input.values as an object, and was given an array"),
            ),
            (
                "fetch:template",
                json!({"url": "./x", "templateFileExtension": 1}),
                Err(
                    "fetch:template takes input.templateFileExtension as a boolean or a string, and was given a number",
                ),
            ),
            (
                "fs:rename",
                json!({"files": {"from": "a", "to": "b"}}),
                Err("fs:rename takes input.files as an array, and was given an object"),
            ),
            (
                "publish:gitea",
                json!({"repoUrl": "fairway?repo=x", "allowedHosts": [], "protectDefaultBranch": false}),
                Ok(&["allowedHosts", "protectDefaultBranch"]),
            ),
            (
                "publish:gitea",
                json!({"repoUrl": "fairway?repo=x", "signCommit": "yes"}),
                Err("publish:gitea takes input.signCommit as a boolean, and was given a string"),
            ),
        ];
        for (name, input, expected) in cases {
            let found = looked_at(action(name), &input);
            match expected {
                Ok(unknown) => assert_eq!(found.as_deref(), Ok(unknown), "{name} {input}"),
                Err(why) => assert_eq!(found, Err(why.to_owned()), "{name} {input}"),
            }
        }
        assert_eq!(
            describe(action("debug:log"))["schema"]["input"]["properties"]["message"],
            json!({})
        );
        assert_eq!(
            describe(action("debug:log"))["schema"]["input"]["properties"]["listWorkspace"],
            json!({"type": ["boolean", "string"]})
        );
    }

    /// What an action reads and does not say would be taken for unknown, and what it says and does not read is a promise that nobody keeps.
    #[test]
    fn what_actions_read_is_what_they_say() {
        let sources: String = [
            include_str!("actions/argocd.rs"),
            include_str!("actions/catalog.rs"),
            include_str!("actions/debug.rs"),
            include_str!("actions/fetch.rs"),
            include_str!("actions/fs.rs"),
            include_str!("actions/http.rs"),
            include_str!("actions/notify.rs"),
            include_str!("actions/objects.rs"),
            include_str!("actions/publish.rs"),
        ]
        .join("\n");
        for action in ACTIONS {
            for (field, ..) in action.inputs {
                assert!(
                    sources.contains(&format!("\"{field}\"")),
                    "nobody reads {field} of {}",
                    action.id
                );
            }
        }
        for field in reads_in(&sources) {
            let is_said = ACTIONS
                .iter()
                .any(|action| action.inputs.iter().any(|(known, ..)| *known == field));
            assert!(is_said, "{field} is read, and no action says so");
        }
    }

    fn reads_in(sources: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for call in [
            "job.text(\"",
            "job.texts(\"",
            "job.flag(\"",
            "job.required(\"",
            "input.get(\"",
        ] {
            for (at, _) in sources.match_indices(call) {
                let rest = &sources[at + call.len()..];
                found.extend(rest.split('"').next());
            }
        }
        assert!(found.len() > 40, "{found:?}");
        found
    }
}
