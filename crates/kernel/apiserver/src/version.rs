//! `/version`: what this server says it is.

use serde_json::{Value, json};

/// The Kubernetes version whose API this is.
pub const GIT_VERSION: &str = concat!("v1.36.3+fairway-", env!("CARGO_PKG_VERSION"));

/// The `version.Info` document.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": GIT_VERSION,
        "gitCommit": option_env!("FAIRWAY_COMMIT").unwrap_or("unknown"),
        "gitTreeState": "clean",
        "buildDate": option_env!("FAIRWAY_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
        "goVersion": "none (Rust)",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture()),
    })
}

fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
