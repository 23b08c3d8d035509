//! Examples of actions, as `v2/actions` shows them: steps of a template that could be there as they are.

use serde_json::{Value, json};

/// By action: what the example does, and the step.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "argocd:create-resources",
        "Deploy the directory manifests of the repository that was published.",
        r"
- id: deploy
  name: Deploy
  action: argocd:create-resources
  input:
    appName: ${{ parameters.name }}
    repoUrl: ${{ steps.publish.output.remoteUrl }}
    path: manifests
    namespace: ${{ parameters.name }}
",
    ),
    (
        "catalog:fetch",
        "Read the team that owns what is made.",
        r"
- id: owner
  name: Look up the owner
  action: catalog:fetch
  input:
    entityRef: ${{ parameters.owner }}
    defaultKind: group
    optional: true
",
    ),
    (
        "catalog:register",
        "Register what was published.",
        r"
- id: register
  name: Register
  action: catalog:register
  input:
    repoContentsUrl: ${{ steps.publish.output.repoContentsUrl }}
    catalogInfoPath: catalog-info.yaml
",
    ),
    (
        "catalog:write",
        "Write a component that is owned by who started the run.",
        r"
- id: describe
  name: Write catalog-info.yaml
  action: catalog:write
  input:
    entity:
      apiVersion: backstage.io/v1alpha1
      kind: Component
      metadata:
        name: ${{ parameters.name }}
      spec:
        type: service
        lifecycle: production
        owner: ${{ user.ref }}
",
    ),
    (
        "crossplane:create",
        "Ask for a database.",
        r"
- id: database
  name: Ask for a database
  action: crossplane:create
  input:
    namespace: ${{ parameters.name }}
    manifestObject:
      apiVersion: example.org/v1
      kind: Database
      metadata:
        name: ${{ parameters.name }}
      spec:
        size: small
",
    ),
    (
        "debug:log",
        "Say something, and list the working tree.",
        r"
- id: look
  name: Look at the files
  action: debug:log
  input:
    message: Files of ${{ parameters.name }}
    listWorkspace: true
",
    ),
    (
        "debug:wait",
        "Wait for ten seconds.",
        r"
- id: wait
  name: Wait
  action: debug:wait
  input:
    seconds: 10
",
    ),
    (
        "fetch:plain",
        "Copy a directory beside the template.",
        r"
- id: fetch
  name: Copy the documentation
  action: fetch:plain
  input:
    url: ./docs
    targetPath: docs
",
    ),
    (
        "fetch:plain:file",
        "Copy one file.",
        r"
- id: licence
  name: Copy the licence
  action: fetch:plain:file
  input:
    url: ./LICENSE
    targetPath: LICENSE
",
    ),
    (
        "fetch:template",
        "Make a repository of a skeleton, with workflows copied as they are.",
        r"
- id: skeleton
  name: Write the files
  action: fetch:template
  input:
    url: ./skeleton
    copyWithoutTemplating:
      - .gitea/workflows/*
    values:
      name: ${{ parameters.name }}
      owner: ${{ parameters.owner }}
",
    ),
    (
        "fetch:template:file",
        "Write one file of a skeleton.",
        r"
- id: readme
  name: Write the README
  action: fetch:template:file
  input:
    url: ./skeleton/README.md
    targetPath: README.md
    values:
      name: ${{ parameters.name }}
",
    ),
    (
        "fs:copy",
        "Begin a configuration with its example.",
        r"
- id: configure
  name: Copy the example
  action: fs:copy
  input:
    files:
      - from: config.example.yaml
        to: config.yaml
",
    ),
    (
        "fs:delete",
        "Leave out what was not asked for.",
        r"
- id: tidy
  name: Leave out the database
  if: ${{ not parameters.database }}
  action: fs:delete
  input:
    files:
      - manifests/database.yaml
",
    ),
    (
        "fs:readdir",
        "List the manifests.",
        r"
- id: list
  name: List the manifests
  action: fs:readdir
  input:
    paths:
      - manifests
    recursive: true
",
    ),
    (
        "fs:rename",
        "Give a file the name of what is made.",
        r"
- id: name
  name: Name the manifest
  action: fs:rename
  input:
    files:
      - from: manifests/app.yaml
        to: manifests/${{ parameters.name }}.yaml
",
    ),
    (
        "http:backstage:request",
        "Ask the catalog for the systems of a team.",
        r"
- id: systems
  name: Look up systems
  action: http:backstage:request
  input:
    method: GET
    path: catalog/entities
    params:
      filter: kind=system,spec.owner=${{ parameters.owner }}
",
    ),
    (
        "kubernetes:apply",
        "Apply a namespace for each stage that is wanted.",
        r"
- id: namespaces
  name: Make the namespaces
  each: ${{ parameters.stages }}
  if: ${{ each.value.wanted }}
  action: kubernetes:apply
  input:
    manifestObject:
      apiVersion: v1
      kind: Namespace
      metadata:
        name: ${{ parameters.name }}-${{ each.value.name }}
",
    ),
    (
        "notification:send",
        "Write a mail to the team.",
        r"
- id: tell
  name: Tell the team
  action: notification:send
  input:
    recipients: entity
    entityRefs:
      - ${{ parameters.owner }}
    title: ${{ parameters.name }} is on its way
    link: ${{ steps.publish.output.remoteUrl }}
",
    ),
    (
        "publish:gitea",
        "Make a repository of the working tree.",
        r"
- id: publish
  name: Make the repository
  action: publish:gitea
  input:
    repoUrl: fairway?repo=${{ parameters.name }}
    description: ${{ parameters.description }}
    defaultBranch: main
",
    ),
    (
        "publish:gitea:pull-request",
        "Propose the working tree to a repository that is there.",
        r"
- id: propose
  name: Open a pull request
  action: publish:gitea:pull-request
  input:
    repoUrl: fairway?repo=platform
    branchName: add-${{ parameters.name }}
    title: Add ${{ parameters.name }}
    targetPath: apps/${{ parameters.name }}
",
    ),
];

/// Those of an action, as Backstage's API has them.
pub(super) fn of(action: &str) -> Value {
    let own = EXAMPLES.iter().filter(|(name, ..)| *name == action);
    own.map(|(_, description, step)| json!({"description": description, "example": format!("steps:{step}")}))
        .collect()
}

#[cfg(test)]
mod tests {
    use fairway_portal_template::template::Template;

    use super::super::{ACTIONS, looked_at, names};
    use super::*;

    #[test]
    fn every_action_has_an_example_that_it_takes() {
        let mut shown: Vec<&str> = EXAMPLES.iter().map(|(action, ..)| *action).collect();
        shown.dedup();
        let mut all = names();
        all.sort_unstable();
        assert_eq!(shown, all);
        for action in ACTIONS {
            for example in of(action.id).as_array().unwrap() {
                let text = example["example"].as_str().unwrap();
                let read = fairway_text_yaml::documents(text, fairway_text_yaml::Limits::default()).unwrap();
                let template = Template::read(&json!({
                    "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
                    "spec": {"steps": read[0]["steps"]},
                }));
                let steps = template.unwrap().steps;
                assert_eq!(steps.len(), 1, "{text}");
                assert_eq!(steps[0].action, action.id, "{text}");
                assert_eq!(looked_at(action, &steps[0].input), Ok(vec![]), "{text}");
            }
        }
    }
}
