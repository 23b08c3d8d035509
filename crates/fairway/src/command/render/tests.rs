//! What the command reads and fetches, and what it refuses, on directories that lie in no repository.

use std::fs;
use std::process::Command;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    render: Render,
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n";

fn rendered(path: &Path, flags: &[&str]) -> anyhow::Result<Rendered> {
    let path = fs::canonicalize(path)?;
    let arguments = ["render", path.to_str().unwrap()]
        .into_iter()
        .chain(flags.iter().copied());
    let options = Cli::parse_from(arguments).render;
    render_within(&roots(&options, &path)?, &path, &options, &params(&options)?)
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

#[test]
fn an_overlay_outside_of_any_repository_reaches_its_base() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", MAP),
            (
                "env/prod/kustomization.yaml",
                "resources: [../../base]\nnamePrefix: p-\n",
            ),
            (
                "env/file/kustomization.yaml",
                "resources: [../../base/map.yaml]\n",
            ),
        ],
    );
    let built = rendered(&folder.path().join("env/prod"), &[]).unwrap();
    assert!(built.text.contains("name: p-m"), "{}", built.text);
    assert!(built.inputs.files.contains("base/map.yaml"), "{:?}", built.inputs);
    // Bases may lie anywhere, files may not: as kustomize has it.
    let error = rendered(&folder.path().join("env/file"), &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("map.yaml"), "{error}");
    // A root that was named is one.
    let root = folder.path().join("env");
    let error = rendered(&root.join("prod"), &["--root", root.to_str().unwrap()])
        .unwrap_err()
        .to_string();
    assert!(error.contains("leads out"), "{error}");
    // And so is a repository.
    fs::create_dir(root.join(".git")).unwrap();
    let error = rendered(&root.join("prod"), &[]).unwrap_err().to_string();
    assert!(error.contains("--root"), "{error}");
}

#[test]
fn a_remote_base_is_fetched_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    write(
        &work,
        &[
            ("b/kustomization.yaml", "resources: [map.yaml]\n"),
            ("b/map.yaml", MAP),
        ],
    );
    for arguments in [
        ["init", "--quiet", "."].as_slice(),
        &["add", "."],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "--quiet",
            "-m",
            "one",
        ],
    ] {
        assert!(
            Command::new("git")
                .args(arguments)
                .current_dir(&work)
                .status()
                .unwrap()
                .success()
        );
    }
    let remote = format!("resources: ['file://{}//b']\nnameSuffix: -r\n", work.display());
    write(folder.path(), &[("overlay/kustomization.yaml", &remote)]);
    let overlay = folder.path().join("overlay");
    let error = rendered(&overlay, &[]).unwrap_err().to_string();
    assert!(error.contains("to fetch it, pass --allow-remote"), "{error}");
    let cache = folder.path().join("cache");
    let flags = ["--allow-remote", "--remote-cache", cache.to_str().unwrap()];
    let built = rendered(&overlay, &flags).unwrap();
    assert!(built.text.contains("name: m-r"), "{}", built.text);
}
