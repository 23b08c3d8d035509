//! The original tools on the same repository: same bytes. Tools that are not there are told and left out;
//! `scripts/tools.sh python` brings helm, `scripts/peers.sh kustomize` kustomize, and the system has envsubst.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use fairway_gitops_helm::{Offline, Release};
use fairway_gitops_render::{Dialect, HelmSource, Params, Ports, ValuesFile, envsubst, render};

use crate::repository::{Repository, folder};

/// A program of ours under .tools, else one of the system.
fn tool(name: &str, version: &str) -> Option<PathBuf> {
    let ours = folder().join("../../.tools/bin").join(name);
    let program = if ours.exists() { ours } else { PathBuf::from(name) };
    let runs = Command::new(&program)
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !runs {
        println!("SKIPPED: needs {name}; run scripts/tools.sh python and scripts/peers.sh kustomize");
    }
    runs.then_some(program)
}

fn output(command: &mut Command, input: &str) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The plugin's own command, step by step, on every kustomization and for every cluster.
#[test]
fn kustomize_and_envsubst_make_the_same_of_every_kustomization() {
    let (Some(helm), Some(kustomize)) = (tool("helm", "version"), tool("kustomize", "version")) else {
        return;
    };
    let envsubst_program = tool("envsubst", "--version");
    let repository = Repository::load();
    let directories = repository.kustomizations();
    assert!(directories.len() > 40, "{directories:?}");
    for directory in directories {
        let mut command = Command::new(&kustomize);
        command
            .args(["build", "--enable-helm", "--helm-command"])
            .arg(&helm)
            .arg(folder().join(&directory));
        let theirs = output(&mut command, "");
        let ours = repository.render(&directory, None).text;
        assert_eq!(ours, theirs, "{directory}");
        let Some(program) = &envsubst_program else {
            continue;
        };
        for cluster in ["hub", "etl4", "etl6"] {
            let mut variables = repository.variables(cluster);
            variables.insert("ARGOCD_ENV_S3_BUCKET".to_owned(), "b".to_owned());
            let mut command = Command::new(program);
            command.env_clear().envs(&variables);
            let theirs = output(&mut command, &theirs);
            for dialect in [Dialect::Gnu, Dialect::Extended] {
                let ours = envsubst(&ours, &variables, dialect).unwrap();
                assert_eq!(ours, theirs, "{directory} for {cluster}, {dialect:?}");
            }
        }
    }
}

/// The charts by themselves, with the values of every place that uses them.
#[test]
fn helm_makes_the_same_of_every_chart() {
    let Some(helm) = tool("helm", "version") else {
        return;
    };
    let repository = Repository::load();
    for (chart, release, values) in [
        ("argocd-app-of-app", "all", Some("groups/all/values.yaml")),
        ("argocd-app-of-app", "prod", Some("groups/prod/values.yaml")),
        ("argocd-app-of-app", "hub", Some("clusters/hub/values.yaml")),
        ("argocd-app-of-app", "etl4", Some("clusters/etl4/values.yaml")),
        ("argocd-app-of-app", "etl6", Some("clusters/etl6/values.yaml")),
        ("argocd-app-of-app", "empty", None),
        (
            "bm-cluster-agent-install",
            "etl4",
            Some("clusters/hub/overlays/cluster-etl4/values.yaml"),
        ),
        (
            "cluster-registration",
            "etl4",
            Some("clusters/hub/overlays/cluster-etl4/registration.yaml"),
        ),
    ] {
        let directory = format!(".helm-charts/{chart}");
        let mut command = Command::new(&helm);
        command
            .args(["template", release, "--namespace", "openshift-gitops"])
            .arg(folder().join(&directory));
        let mut values_files = Vec::new();
        if let Some(file) = values {
            command.arg("--values").arg(folder().join(file));
            values_files.push(ValuesFile::InTree(format!("../../{file}")));
        }
        let theirs = output(&mut command, "");
        let params = Params {
            helm: HelmSource {
                release: Release {
                    name: release.to_owned(),
                    namespace: "openshift-gitops".to_owned(),
                    ..Release::default()
                },
                values_files,
                ..HelmSource::default()
            },
            ..Params::default()
        };
        let offline = Offline::default();
        let ports = Ports {
            environment: &offline,
            fetcher: None,
        };
        let ours = render(&repository.tree, &directory, None, &params, ports).unwrap();
        assert_eq!(ours.text, theirs, "{chart} with {values:?}");
    }
}
