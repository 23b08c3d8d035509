//! `fairway login`, `logout`, `whoami`: a sign-in at a realm, or at another issuer that the server believes, becomes a context of the
//! kubeconfig whose token renews itself.
//!
//! The refresh token lies in a file of its own ([`session`]); the kubeconfig only says which program to ask, and kubectl asks
//! `fairway credential`. The same file answers git.

pub(crate) mod credential;
mod flow;
mod issuer;
mod session;
mod wire;

use std::process::ExitCode;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_api::identity::workspace_of_realm;
use fairway_controller::Requests;
use fairway_kernel_tenancy::WorkspacePath;
use fairway_kernel_x509::encode;
use fairway_portal_realm::params;
use serde_json::{Value, json};

use super::identity::run_async;
use super::workspace::server::Server;
use crate::cli::identity::{Login, Logout, Whoami};
use crate::kubeconfig::files::Files;
use issuer::Issuer;
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

async fn sign_in(options: &Login) -> anyhow::Result<ExitCode> {
    let issuer = Issuer::find(
        &options.org,
        &options.external,
        options.sign_in_url.as_deref(),
        &options.place,
    )?;
    let server = Server::of_context(&options.place, None).await?;
    // The authority of the cluster vouches for its own realms, and for nobody else.
    let trust = match (&options.issuer_ca, issuer.is_own) {
        (Some(file), _) => issuer::certificates(file)?,
        (None, true) => server.config().root_cert.clone().unwrap_or_default(),
        (None, false) => Vec::new(),
    };
    let http = Http::new(trust.clone())?;
    let provider = issuer.ask(&http, options.scope.as_deref()).await?;
    let tokens = match (&options.username, options.device) {
        (Some(user), _) => flow::with_password(&http, &provider, user, options.otp.as_deref()).await?,
        (None, true) => flow::with_device(&http, &provider).await?,
        (None, false) => flow::with_browser(&http, &provider, !options.no_browser).await?,
    };
    let session = Session::new(&issuer.url, issuer.is_own, &provider, &trust, &tokens)?;
    let user = match issuer.is_own {
        true => format!("{}/{}", options.org, session.user()),
        false => known_as(&server, &options.org, &session).await?,
    };
    let path = session::path(&issuer.url, &issuer.client_id)?;
    session.write(&path)?;
    let context = issuer.context(&options.org);
    write_context(options, &server, &path, &context)?;
    println!("Signed in as {user}. The context {context:?} is current.");
    if session.refresh_token.is_empty() {
        println!(
            "{} gave nothing to renew the sign-in with, so it ends soon; some do if they are asked: --scope \"{} offline_access\".",
            issuer.url, provider.scope
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Whom the server takes the bearer of a token of another issuer for: what becomes of its claims is configured there.
async fn known_as(server: &Server, org: &str, session: &Session) -> anyhow::Result<String> {
    let mut config = server.config().clone();
    let path = WorkspacePath::parse(&workspace_of_realm(org))?;
    let url = server.here.of(&path).to_string();
    config.cluster_url = url.parse().with_context(|| format!("{url} is not an address"))?;
    config.auth_info = kube::config::AuthInfo {
        token: Some(session.bearer().to_owned().into()),
        ..kube::config::AuthInfo::default()
    };
    let client = kube::Client::try_from(config).with_context(|| format!("{url} cannot be used"))?;
    let user = review(&Requests::new(client)).await.with_context(|| {
        format!(
            "{} has signed you in, but {url} does not accept its token: the authentication configuration of the server has to \
             name this issuer with the audience {}, and the workspace as home of its users",
            session.issuer, session.client_id
        )
    })?;
    Ok(user["username"].as_str().unwrap_or_default().to_owned())
}

fn write_context(
    options: &Login,
    server: &Server,
    session_file: &std::path::Path,
    name: &str,
) -> anyhow::Result<()> {
    let path = WorkspacePath::parse(&workspace_of_realm(&options.org))?;
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let authority = server.config().root_cert.as_ref().map(|certs| {
        let pem: String = certs.iter().map(|der| encode("CERTIFICATE", der)).collect();
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
    Ok(())
}

async fn sign_out(options: &Logout) -> anyhow::Result<ExitCode> {
    let issuer = Issuer::find(
        &options.org,
        &options.external,
        options.sign_in_url.as_deref(),
        &options.place,
    )?;
    let path = session::path(&issuer.url, &issuer.client_id)?;
    let issuer = issuer.url;
    let Some(session) = Session::read(&path)? else {
        println!("Nobody is signed in to {issuer} here.");
        return Ok(ExitCode::SUCCESS);
    };
    if session.revocation_endpoint.is_empty() || session.refresh_token.is_empty() {
        std::fs::remove_file(&path).with_context(|| format!("{} could not be removed", path.display()))?;
        println!("Signed out here; {issuer} has no way to be told.");
        return Ok(ExitCode::SUCCESS);
    }
    let http = Http::new(session.trust()?)?;
    let form = params::query([
        ("token", session.refresh_token.as_str()),
        ("client_id", session.client_id.as_str()),
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

/// What the server knows of whoever asks.
async fn review(requests: &Requests) -> anyhow::Result<Value> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let mut answer = requests
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
        .await
        .map_err(|failure| anyhow::anyhow!("{}", failure.sentence()))?;
    Ok(answer["status"]["userInfo"].take())
}

async fn show(options: &Whoami) -> anyhow::Result<ExitCode> {
    let server = Server::of_context(&options.place, None).await?;
    let user = review(&Requests::new(server.own_client()?)).await?;
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
