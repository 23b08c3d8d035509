//! `fairway login`, `logout`, `whoami`: a sign-in at a realm becomes a context of the kubeconfig whose token renews itself.
//!
//! The refresh token lies in a file of its own ([`session`]); the kubeconfig only says which program to ask, and kubectl asks
//! `fairway credential`. The same file answers git.

pub(crate) mod credential;
mod flow;
mod session;
mod wire;

use std::process::ExitCode;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::identity::workspace_of_realm;
use fairway_controller::Requests;
use fairway_kernel_tenancy::WorkspacePath;
use fairway_portal_realm::{client, params};
use serde_json::{Value, json};

use super::identity::run_async;
use super::running::Running;
use super::workspace::server::Server;
use crate::cli::identity::{Login, Logout, Whoami};
use crate::cli::workspace::Where;
use crate::data_dir::DataDir;
use crate::kubeconfig::files::Files;
use session::Session;
use wire::Http;

/// Signs in.
pub(crate) fn run(options: &Login) -> anyhow::Result<ExitCode> {
    run_async(sign_in(options))
}

/// Signs out.
pub(crate) fn log_out(options: &Logout) -> anyhow::Result<ExitCode> {
    run_async(sign_out(options))
}

/// Says who one is.
pub(crate) fn who_am_i(options: &Whoami) -> anyhow::Result<ExitCode> {
    run_async(show(options))
}

/// Where the people of a realm sign in.
fn issuer(realm: &str, given: Option<&str>, place: &Where) -> anyhow::Result<String> {
    if !client::is_name(realm) {
        bail!("{realm:?} cannot be the name of an organisation");
    }
    let base = match given {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let data = DataDir::find(place.data.dir.as_deref())?;
            let running = Running::find(&data)?;
            running.and_then(|it| it.sign_in()).with_context(|| {
                format!(
                    "no Fairway runs on {}; start one with `fairway up`, or name another with --sign-in-url",
                    data.path().display()
                )
            })?
        }
    };
    Ok(format!("{base}/realms/{realm}"))
}

async fn sign_in(options: &Login) -> anyhow::Result<ExitCode> {
    let issuer = issuer(&options.org, options.sign_in_url.as_deref(), &options.place)?;
    let server = Server::of_context(&options.place, None).await?;
    let trust = server.config().root_cert.clone().unwrap_or_default();
    let http = Http::new(trust.clone())?;
    let provider = http
        .json(&format!("{issuer}/.well-known/openid-configuration"))
        .await?;
    if provider["issuer"] != issuer.as_str() {
        bail!(
            "{issuer} says that it is {}, so it is not believed",
            provider["issuer"]
        );
    }
    let tokens = match (&options.username, options.device) {
        (Some(user), _) => flow::with_password(&http, &provider, user, options.otp.as_deref()).await?,
        (None, true) => flow::with_device(&http, &provider).await?,
        (None, false) => flow::with_browser(&http, &provider, !options.no_browser).await?,
    };
    let path = session::path(&issuer)?;
    let session = Session::new(&issuer, &provider, &trust, &tokens)?;
    session.write(&path)?;
    let user = write_context(options, &server, &path, &session)?;
    println!(
        "Signed in as {user}. The context {:?} is current.",
        context_name(&options.org)
    );
    Ok(ExitCode::SUCCESS)
}

fn context_name(realm: &str) -> String {
    format!("fairway-{realm}")
}

fn write_context(
    options: &Login,
    server: &Server,
    session_file: &std::path::Path,
    session: &Session,
) -> anyhow::Result<String> {
    let name = context_name(&options.org);
    let path = WorkspacePath::parse(&workspace_of_realm(&options.org))?;
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let authority = server.config().root_cert.as_ref().map(|certs| {
        let pem: String = certs.iter().map(|der| pem(der)).collect();
        STANDARD.encode(pem)
    });
    let mut cluster = json!({"server": server.here.of(&path).to_string()});
    if let Some(authority) = authority {
        cluster["certificate-authority-data"] = json!(authority);
    }
    let exec = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "command": program, "interactiveMode": "Never",
        "provideClusterInfo": false,
        "args": ["credential", "kubernetes", "--session", session_file],
        "installHint": "the program fairway was moved or removed; run `fairway login` again",
    });
    let ours = json!({
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"exec": exec}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    });
    let edit = |config: &mut Value| -> anyhow::Result<()> {
        crate::kubeconfig::merge(config, &ours);
        config["current-context"] = json!(name);
        Ok(())
    };
    match &options.write {
        None => Files::change(server.paths(), edit)?,
        Some(file) => {
            let before = crate::data_dir::read_if_there(file)?;
            let limits = fairway_text_yaml::Limits::default();
            let mut config = match before {
                Some(content) => fairway_text_yaml::from_slice(&content, limits)
                    .with_context(|| format!("{} is not a kubeconfig that can be read", file.display()))?,
                None => Value::Null,
            };
            edit(&mut config)?;
            crate::data_dir::write_private(file, fairway_text_yaml::to_string(&config).as_bytes())?;
        }
    }
    Ok(format!("{}/{}", options.org, session.user()))
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .filter_map(|line| std::str::from_utf8(line).ok())
        .collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

async fn sign_out(options: &Logout) -> anyhow::Result<ExitCode> {
    let issuer = issuer(&options.org, options.sign_in_url.as_deref(), &options.place)?;
    let path = session::path(&issuer)?;
    let Some(session) = Session::read(&path)? else {
        println!("Nobody is signed in to {issuer} here.");
        return Ok(ExitCode::SUCCESS);
    };
    let http = Http::new(session.trust()?)?;
    let form = params::query([
        ("token", session.refresh_token.as_str()),
        ("client_id", client::COMMAND_LINE),
    ]);
    let ended = http.post(&session.revocation_endpoint, &form).await;
    // Gone here in any case; if the server could not be told, the session ends by itself.
    std::fs::remove_file(&path).with_context(|| format!("{} could not be removed", path.display()))?;
    match ended {
        Ok(answer) if answer.status == 200 => println!("Signed out of {issuer}."),
        Ok(answer) => bail!(
            "signed out here, but {issuer} answered {}: {}",
            answer.status,
            answer.text()
        ),
        Err(error) => return Err(error.context(format!("signed out here, but {issuer} could not be told"))),
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(options: &Whoami) -> anyhow::Result<ExitCode> {
    let server = Server::of_context(&options.place, None).await?;
    let requests = Requests::new(server.own_client()?);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = requests
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
        .await
        .map_err(|failure| anyhow::anyhow!("{}", failure.sentence()))?;
    let user = &answer["status"]["userInfo"];
    let groups: Vec<&str> = user["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let text = format!(
        "User       {}\nGroups     {}\nWorkspace  {}",
        user["username"].as_str().unwrap_or_default(),
        groups.join(", "),
        server.here.path
    );
    let value = json!({
        "username": user["username"], "uid": user["uid"], "groups": groups, "extra": user["extra"],
        "workspace": server.here.path.as_str(),
    });
    options.output.print(&value, &text);
    Ok(ExitCode::SUCCESS)
}
