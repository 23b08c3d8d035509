//! What this says it is: KubeVirt of a version, so that virtctl knows whom it speaks to.

use serde_json::{Value, json};

/// The version of KubeVirt whose API this is.
const GIT_VERSION: &str = concat!("v1.5.2+fairway-", env!("CARGO_PKG_VERSION"));

/// The `version.Info` document of KubeVirt.
pub(crate) fn version() -> Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "gitVersion": GIT_VERSION,
        "gitCommit": option_env!("FAIRWAY_COMMIT").unwrap_or("unknown"),
        "gitTreeState": "clean",
        "buildDate": option_env!("FAIRWAY_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
        "goVersion": "none (Rust)",
        "compiler": "rustc",
        "platform": format!("{}/{architecture}", std::env::consts::OS),
    })
}
