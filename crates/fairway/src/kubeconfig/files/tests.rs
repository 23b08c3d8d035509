//! What happens to the user's files.

use std::os::unix::fs::symlink;

use super::super::contexts;
use super::*;

const ONE: &str = "apiVersion: v1
kind: Config
x-own: kept
clusters:
- name: c
  cluster: {server: https://h, certificate-authority: ca.crt, x-more: 1}
users:
- name: u
  user: {exec: {command: login}, client-key: key.pem}
contexts:
- name: mine
  context: {cluster: c, user: u, x-note: kept}
current-context: mine
";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn enter(paths: &[PathBuf], server: &str) -> anyhow::Result<()> {
    Files::change(paths, |config| contexts::enter(config, server))
}

#[test]
fn one_file_keeps_mode_link_and_all_that_is_not_ours() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("config"));
    fs::write(&real, ONE).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    let paths = [link.clone()];
    enter(&paths, "https://h/clusters/root:a").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(mode(&real), 0o640);
    let now = Files::read(&paths).unwrap();
    let config = now.merged();
    assert_eq!(config["x-own"], "kept");
    assert_eq!(config["users"][0]["user"]["exec"]["command"], "login");
    assert_eq!(
        config["clusters"][1]["cluster"],
        json!({"server": "https://h/clusters/root:a", "certificate-authority": "ca.crt", "x-more": 1})
    );
    assert_eq!(config["contexts"][0]["context"]["x-note"], "kept");
    let absolute = now.for_client();
    assert_eq!(
        absolute["clusters"][1]["cluster"]["certificate-authority"],
        directory.path().join("ca.crt").to_str().unwrap()
    );
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "neither lock nor temporary file is left: {left:?}");
}

#[test]
fn of_several_files_only_those_concerned_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    let other = "clusters:\n- {name: o, cluster: {server: 'https://o'}}\n# a comment\n";
    fs::write(at("first"), other).unwrap();
    fs::write(at("sub/second"), ONE).unwrap();
    let paths = [at("missing"), at("first"), at("sub/second")];
    enter(&paths, "https://h/clusters/root:a").unwrap();
    assert_eq!(fs::read_to_string(at("first")).unwrap(), other);
    assert!(!at("missing").exists());
    let now = Files::read(&paths).unwrap();
    assert_eq!(
        contexts::current_server(now.merged()).unwrap(),
        "https://h/clusters/root:a"
    );
    let cluster = entry(now.merged(), "clusters", contexts::CURRENT).unwrap();
    assert_eq!(
        cluster["certificate-authority"],
        at("sub/ca.crt").to_str().unwrap()
    );
    // An entry stays in the file where it is.
    fs::write(
        at("first"),
        format!(
            "{other}contexts:\n- {{name: {}, context: {{cluster: o, user: u}}}}\n",
            contexts::PREVIOUS
        ),
    )
    .unwrap();
    enter(&paths, "https://h/clusters/root:b").unwrap();
    let first = Files::read(&[at("first")]).unwrap();
    let previous = entry(first.merged(), "contexts", contexts::PREVIOUS).unwrap();
    assert_eq!(previous["cluster"], contexts::PREVIOUS);
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    for content in ["a: [", "- a list", "text", "{}", ""] {
        fs::write(&path, content).unwrap();
        assert!(
            enter(std::slice::from_ref(&path), "https://h").is_err(),
            "{content}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let error = enter(&[directory.path().join("none")], "https://h").unwrap_err();
    assert!(error.to_string().contains("there is no kubeconfig at"), "{error}");
    // Somebody else's lock is respected.
    fs::write(&path, ONE).unwrap();
    fs::write(directory.path().join("config.lock"), "").unwrap();
    let error = enter(std::slice::from_ref(&path), "https://h").unwrap_err();
    assert!(error.to_string().contains("config.lock"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), ONE);
    assert!(directory.path().join("config.lock").exists());
}
