//! Where the sources that Fairway takes facts from are on this machine.
//!
//! Kubernetes is a Go module and is fetched through the Go tool chain, which checks it against the checksum database;
//! the `k8s-openapi` crate comes through Cargo, checked against its published checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The version of Kubernetes that Fairway serves.
pub(crate) const KUBERNETES: &str = "v1.36.3";
/// The Go module of Argo CD.
pub(crate) const ARGO_CD_MODULE: &str = "github.com/argoproj/argo-cd/v3";
/// The version of Argo CD whose kinds Fairway serves.
pub(crate) const ARGO_CD: &str = "v3.2.11";
/// The Go module of KubeVirt, with its version.
pub(crate) const KUBEVIRT: &str = "kubevirt.io/kubevirt@v1.5.2";
/// The Go module of KubeVirt's data importer, with its version.
pub(crate) const CDI: &str = "kubevirt.io/containerized-data-importer@v1.61.1";
/// The Go module of Multus' networks, with its version.
pub(crate) const MULTUS: &str = "github.com/k8snetworkplumbingwg/network-attachment-definition-client@v1.7.5";
/// The Go module of Kubernetes' snapshots of volumes, with its version.
pub(crate) const SNAPSHOTTER: &str = "github.com/kubernetes-csi/external-snapshotter/client/v8@v8.2.0";
/// The Go module of Gateway API, with its version.
pub(crate) const GATEWAY_API: &str = "sigs.k8s.io/gateway-api@v1.4.0";
/// The Go module of OpenShift's kinds, with its version.
pub(crate) const OPENSHIFT_API: &str = "github.com/openshift/api@v0.0.0-20250207102212-9e59a77ed2e0";
/// The crate that the descriptions are taken from.
pub(crate) const K8S_OPENAPI: &str = "0.29.0";
/// The module of that crate for [`KUBERNETES`].
pub(crate) const K8S_OPENAPI_MODULE: &str = "v1_36";

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// The directory of the Kubernetes module, fetched if need be.
pub(crate) fn kubernetes() -> Result<PathBuf> {
    go_module(&format!("k8s.io/kubernetes@{KUBERNETES}"))
}

/// The directory of a Go module (`path@version`), fetched if need be.
pub(crate) fn go_module(module: &str) -> Result<PathBuf> {
    // Outside of any Go module, so that none is changed by looking.
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(std::env::temp_dir())
        .output()
        .context("running go; install Go to regenerate the facts")?;
    let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "go mod download {module}: {}",
            String::from_utf8_lossy(&output.stderr)
        )
    })?;
    match answer["Dir"].as_str() {
        Some(dir) => Ok(dir.into()),
        None => bail!(
            "go mod download {module}: {}",
            answer["Error"].as_str().unwrap_or("no directory")
        ),
    }
}

/// The directory of the `k8s-openapi` sources, fetched if need be.
pub(crate) fn k8s_openapi() -> Result<PathBuf> {
    // A throw-away package, so that the answer does not depend on who else in the workspace uses the crate.
    let scratch = std::env::temp_dir().join(format!("fairway-codegen-{}", std::process::id()));
    fs::create_dir_all(scratch.join("src"))?;
    fs::write(scratch.join("src/lib.rs"), "")?;
    fs::write(
        scratch.join("Cargo.toml"),
        format!(
            "[package]\nname = \"scratch\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n\
             k8s-openapi = {{ version = \"={K8S_OPENAPI}\", features = [\"{K8S_OPENAPI_MODULE}\"] }}\n"
        ),
    )?;
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1"])
        .current_dir(&scratch)
        .output()
        .context("running cargo metadata")?;
    let _ = fs::remove_dir_all(&scratch);
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)))?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata lists no packages")?;
    let manifest = packages
        .iter()
        .find(|p| p["name"] == "k8s-openapi")
        .and_then(|p| p["manifest_path"].as_str())
        .context("cargo metadata does not know k8s-openapi")?;
    Ok(Path::new(manifest)
        .parent()
        .context("a manifest has a directory")?
        .to_owned())
}

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("parsing {}", path.display()))
}
