//! `fairway app sync`, `rollback` and `terminate-op`: the engine is asked for operations, whose policies then decide. Where there
//! is no engine to ask they are written into the Application, as `argocd --core` does.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use fairway_api::argoproj::APPLICATION;
use fairway_controller::requests::version;
use fairway_gitops_view::application::{project, sources};
use fairway_gitops_view::field::{qualified_name, text};
use fairway_gitops_view::operation::{self, SyncRequest};
use fairway_gitops_view::progress::{Goal, complaint};
use fairway_gitops_view::selection::{Selected, resources};
use serde_json::{Value, json};

use super::super::gitops::{Session, pairs, path_of, told};
use super::follow::{Following, chosen, follow};
use super::show::find;
use crate::cli::app::{Named, Rollback, Strategy, Sync};

/// How often a write is tried again because somebody else was quicker.
const ATTEMPTS: usize = 10;

pub(super) async fn sync(options: &Sync) -> anyhow::Result<ExitCode> {
    let apps = &options.apps;
    let one_name = apps.names.len() == 1;
    if apps.names.is_empty() && apps.selector.is_none() && options.project.is_empty() {
        bail!("name an application, or choose some with --selector or --project");
    }
    if !apps.names.is_empty() && apps.selector.is_some() {
        bail!("Cannot use selector option when application name(s) passed as argument(s)");
    }
    if !one_name && !options.revisions.is_empty() {
        bail!("--revisions needs exactly one application name");
    }
    let session = Session::open(&apps.place).await?;
    let mut all = chosen(&session, apps).await?;
    if !options.project.is_empty() {
        if apps.names.is_empty() && apps.selector.is_none() {
            all = session
                .list(APPLICATION, apps.app_namespace.as_deref(), None)
                .await?;
        }
        all.retain(|it| options.project.iter().any(|wanted| wanted == project(it)));
        if all.is_empty() {
            bail!(
                "No matching apps found for filter: projects {}",
                options.project.join(", ")
            );
        }
    }
    let selected: Vec<Selected> = options
        .resource
        .iter()
        .map(|it| Selected::parse(it).map_err(|error| anyhow!("{error}")))
        .collect::<Result<_, _>>()?;
    let user = session.user().await;
    let mut worst = ExitCode::SUCCESS;
    for application in all {
        let request = |live: &Value| request(options, live, &selected, &user);
        let wanted = request(&application).map_err(|error| about(&application, &error))?;
        if !ask(&session, &application, "sync", &wanted.to_api()).await? {
            begin(&session, &application, |live| {
                operation::sync(live, &request(live)?)
            })
            .await?;
        }
        if options.r#async {
            continue;
        }
        let following = Following {
            goal: Goal {
                operation: true,
                ..Goal::default()
            },
            selected: &selected,
            timeout: options.timeout,
            output: options.output,
        };
        let ended = follow(&session, &application, &following).await?;
        if let Some(why) = ended.and_then(|it| complaint(&it, selected.is_empty())) {
            eprintln!("fairway: {}: {why}", qualified_name(&application));
            worst = ExitCode::FAILURE;
        }
    }
    Ok(worst)
}

fn request(options: &Sync, live: &Value, selected: &[Selected], user: &str) -> Result<SyncRequest, String> {
    let meant = resources(live, selected);
    if !selected.is_empty() && meant.is_empty() {
        return Err(format!(
            "No matching app resources found for resource filter: {}",
            options.resource.join(", ")
        ));
    }
    let mut positions = options.source_positions.clone();
    for name in &options.source_names {
        let place = sources(live).iter().position(|it| text(it, "/name") == name);
        positions.push(place.ok_or_else(|| format!("Unknown source name '{name}'"))? + 1);
    }
    if positions.len() != options.revisions.len() {
        return Err("--revisions needs as many --source-positions or --source-names".to_owned());
    }
    let words = [
        (options.replace, "Replace=true"),
        (options.server_side, "ServerSideApply=true"),
        (options.apply_out_of_sync_only, "ApplyOutOfSyncOnly=true"),
    ];
    Ok(SyncRequest {
        user: user.to_owned(),
        revision: options.revision.clone().unwrap_or_default(),
        revisions: positions.into_iter().zip(options.revisions.clone()).collect(),
        prune: options.prune,
        dry_run: options.dry_run,
        strategy: match options.strategy {
            Some(Strategy::Apply) => "apply",
            Some(Strategy::Hook) | None => "hook",
        }
        .to_owned(),
        force: options.force,
        options: words
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, word)| (*word).to_owned())
            .collect(),
        resources: meant,
        retry: (options.retry_limit != 0).then(|| {
            let mut retry = json!({"limit": options.retry_limit, "backoff": {
                "duration": options.retry_backoff_duration,
                "maxDuration": options.retry_backoff_max_duration,
                "factor": options.retry_backoff_factor,
            }});
            if options.retry_refresh {
                retry["refresh"] = json!(true);
            }
            retry
        }),
        info: pairs(&options.info).map_err(|error| error.to_string())?,
    })
}

fn about(application: &Value, why: &str) -> anyhow::Error {
    anyhow!("application {}: {why}", qualified_name(application))
}

/// Asks the engine, whose policies then decide; false if that is not possible here.
async fn ask(session: &Session, application: &Value, what: &str, body: &Value) -> anyhow::Result<bool> {
    let path = format!("{}/{what}", path_of(APPLICATION, application));
    let answer = session.ask_engine(&path, body).await;
    Ok(answer
        .map_err(|error| about(application, &format!("{error:#}")))?
        .is_some())
}

/// Writes an operation into an Application, again if somebody else was quicker.
async fn begin(
    session: &Session,
    application: &Value,
    make: impl Fn(&Value) -> Result<Value, String>,
) -> anyhow::Result<()> {
    change(session, application, |live| {
        let operation = make(live)?;
        Ok(json!({"operation": operation, "status": {"operationState": null}}))
    })
    .await
}

async fn change(
    session: &Session,
    application: &Value,
    make: impl Fn(&Value) -> Result<Value, String>,
) -> anyhow::Result<()> {
    let name = qualified_name(application);
    let path = path_of(APPLICATION, application);
    let mut failure = None;
    for _ in 0..ATTEMPTS {
        let live = session.requests.get(&path).await.map_err(told)?;
        let Some(live) = live else {
            bail!("application {name} is gone")
        };
        let mut patch = make(&live).map_err(|error| anyhow!("application {name}: {error}"))?;
        patch["metadata"] = json!({"resourceVersion": version(&live)});
        match session.requests.merge(&path, &patch).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => bail!("application {name} is gone"),
            Err(error) if error.is_conflict() => failure = Some(error),
            Err(error) => return Err(told(error)),
        }
    }
    bail!(
        "application {name} changes too often: {}",
        failure.map_or_else(String::new, |it| it.sentence())
    )
}

pub(super) async fn rollback(options: &Rollback) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.app.place).await?;
    let application = find(&session, &options.app).await?;
    let wanted = json!({"id": options.id, "prune": options.prune});
    if !ask(&session, &application, "rollback", &wanted).await? {
        let user = session.user().await;
        begin(&session, &application, |live| {
            operation::rollback(live, options.id, options.prune, &user)
        })
        .await?;
    }
    let following = Following {
        goal: Goal {
            operation: true,
            ..Goal::default()
        },
        selected: &[],
        timeout: options.timeout,
        output: options.output,
    };
    follow(&session, &application, &following).await?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn terminate(named: &Named) -> anyhow::Result<ExitCode> {
    let session = Session::open(&named.place).await?;
    let application = find(&session, named).await?;
    if !ask(&session, &application, "terminate", &json!({})).await? {
        change(&session, &application, operation::termination).await?;
    }
    println!(
        "Application '{}' operation terminating",
        text(&application, "/metadata/name")
    );
    Ok(ExitCode::SUCCESS)
}
