//! `fairway credential`: what kubectl and git run to get a token. It renews the tokens that `fairway login` has brought.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use super::session::Session;
use crate::cli::identity::{Credential, Program};
use crate::command::identity::run_async;

/// Prints what the program wants.
pub(crate) fn run(options: &Credential) -> anyhow::Result<ExitCode> {
    match options.program {
        Program::Kubernetes => kubernetes(options),
        Program::Git => git(options),
    }
}

/// An ExecCredential. kubectl keeps it until its end and asks again then.
fn kubernetes(options: &Credential) -> anyhow::Result<ExitCode> {
    let session = run_async(Session::fresh(&options.session))?;
    let credential = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {
            "token": session.bearer(), "expirationTimestamp": fairway_portal_realm::time::write(session.expires),
        },
    });
    writeln!(std::io::stdout(), "{credential}").context("the credential could not be printed")?;
    Ok(ExitCode::SUCCESS)
}

/// git's protocol for helpers: what it asks for comes as lines, and so does the answer. Only `get` means anything here.
fn git(options: &Credential) -> anyhow::Result<ExitCode> {
    let wanted: Vec<String> = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    if options.operation.as_deref() != Some("get") {
        return Ok(ExitCode::SUCCESS);
    }
    let session = Session::read(&options.session)?.context("nobody is signed in; run `fairway login`")?;
    let host = wanted
        .iter()
        .find_map(|line| line.strip_prefix("host="))
        .unwrap_or_default();
    let is_https = wanted.iter().any(|line| line == "protocol=https");
    // The token goes to the Git host of the same Fairway and nowhere else, whatever a repository names as its submodule.
    if !is_https || !is_git_host_of(&session.issuer, host) {
        return Ok(ExitCode::SUCCESS);
    }
    let session = run_async(Session::fresh(&options.session))?;
    write!(
        std::io::stdout(),
        "username={}\npassword={}\n",
        session.user(),
        session.bearer()
    )
    .context("the credential could not be printed")?;
    Ok(ExitCode::SUCCESS)
}

fn is_git_host_of(issuer: &str, host: &str) -> bool {
    let of_issuer = issuer
        .strip_prefix("https://id.")
        .and_then(|rest| rest.split('/').next());
    of_issuer.is_some_and(|domain| host == format!("git.{domain}"))
}

#[cfg(test)]
mod tests {
    use super::is_git_host_of;

    #[test]
    fn a_token_goes_to_one_host() {
        let issuer = "https://id.fairway.localhost:7443/realms/acme";
        for (host, expected) in [
            ("git.fairway.localhost:7443", true),
            ("git.fairway.localhost:7444", false),
            ("git.fairway.localhost", false),
            ("evil.example", false),
            ("git.fairway.localhost:7443.evil.example", false),
            ("", false),
        ] {
            assert_eq!(is_git_host_of(issuer, host), expected, "{host}");
        }
        assert!(!is_git_host_of("https://keycloak/realms/x", "git."));
    }
}
