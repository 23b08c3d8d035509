//! `fairway app plan`: what a sync, a branch or a pull request would do. The engine answers; RBAC decides whom.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use fairway_api::argoproj::APPLICATION;
use fairway_gitops_sync::project::normalize_url;
use fairway_gitops_view::application::sources;
use fairway_gitops_view::field::text;
use fairway_gitops_view::plan::{describe, diff, difference};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::super::gitops::{Session, path_of, print_value};
use crate::cli::app::{Plan, PlanFormat};

/// How many Applications are asked about at once.
const AT_ONCE: usize = 4;

pub(super) async fn run(options: &Plan) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    let url = match &options.repo {
        Some(repo) => Some(address(&session, repo).await?),
        None => None,
    };
    let applications = match (&options.name, &url) {
        (Some(name), _) => vec![
            session
                .find(APPLICATION, name, options.app_namespace.as_deref())
                .await?,
        ],
        (None, Some(url)) => followers(&session, options, url).await?,
        (None, None) => bail!("name an application, or a repository with --repo and --branch or --pull"),
    };
    let request = request(options, url.as_deref())?;
    let asked = applications
        .iter()
        .map(|application| ask(&session, application, &request));
    let answers: Vec<anyhow::Result<Value>> = futures::stream::iter(asked).buffered(AT_ONCE).collect().await;
    let mut plans = Vec::new();
    for answer in answers {
        let plan = answer?;
        if options.name.is_some() || plan["touched"] == true {
            plans.push(plan);
        }
    }
    print(options.output, &plans);
    Ok(ExitCode::SUCCESS)
}

fn print(output: PlanFormat, plans: &[Value]) {
    match output {
        PlanFormat::Json | PlanFormat::Yaml => print_value(&json!(plans), output == PlanFormat::Yaml),
        PlanFormat::Text | PlanFormat::Diff => {
            if plans.is_empty() {
                println!("No application is touched.");
            }
            for plan in plans {
                print!("{}", describe(plan));
                if output == PlanFormat::Diff {
                    let yaml = |value: &Value| fairway_text_yaml::to_string(value);
                    print!(
                        "{}",
                        diff(plan, &mut |live, target| difference(live, target, &yaml))
                    );
                }
            }
        }
    }
}

fn request(options: &Plan, url: Option<&str>) -> anyhow::Result<Value> {
    let mut request = json!({"onlyTouched": options.name.is_none()});
    match (url, &options.branch, options.pull) {
        (Some(url), Some(branch), _) => {
            request["repoURL"] = url.into();
            request["branch"] = branch.as_str().into();
            if let Some(base) = &options.base {
                request["base"] = base.as_str().into();
            }
        }
        (Some(url), None, Some(pull)) => {
            request["repoURL"] = url.into();
            request["pull"] = pull.into();
        }
        (Some(_), None, None) => bail!("say what of the repository is meant, with --branch or --pull"),
        (None, ..) => {
            if let Some(revision) = &options.revision {
                request["revision"] = revision.as_str().into();
            }
        }
    }
    Ok(request)
}

/// Where a repository is: an address as it is, a hosted one by its object.
async fn address(session: &Session, repo: &str) -> anyhow::Result<String> {
    if repo.contains("://") || repo.contains('@') {
        return Ok(repo.to_owned());
    }
    let (_, name) = repo
        .split_once('/')
        .with_context(|| format!("{repo:?} is neither OWNER/NAME of a hosted repository nor an address"))?;
    let path = format!("/apis/fairway.dev/v1alpha1/repositories/{name}");
    let found = session
        .requests
        .get(&path)
        .await
        .map_err(super::super::gitops::told)?;
    let found = found.with_context(|| format!("there is no repository {name} in {}", session.address()))?;
    match text(&found, "/status/cloneURL") {
        "" => bail!("the repository {repo} is not ready yet"),
        // By its address, in which the owner is written as people write it.
        url if url.ends_with(&format!("/{repo}.git")) => Ok(url.to_owned()),
        url => bail!(
            "the repository {name} of {} is {url}, not {repo}; choose its workspace with -w",
            session.address()
        ),
    }
}

/// The Applications with a source in a repository, of those that one may see.
async fn followers(session: &Session, options: &Plan, url: &str) -> anyhow::Result<Vec<Value>> {
    let wanted = normalize_url(url);
    let mut all = session
        .list(APPLICATION, options.app_namespace.as_deref(), None)
        .await?;
    all.retain(|application| {
        let of = |source: &Value| normalize_url(text(source, "/repoURL")) == wanted;
        sources(application).iter().any(of)
    });
    Ok(all)
}

/// The engine's answer for one Application.
pub(super) async fn ask(session: &Session, application: &Value, request: &Value) -> anyhow::Result<Value> {
    let path = format!("{}/plan", path_of(APPLICATION, application));
    session.post(&path, request).await
}
