//! Following an Application: a tree that is drawn again in a terminal, lines in a pipe.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use fairway_api::argoproj::APPLICATION;
use fairway_gitops_view::field::{qualified_name, text};
use fairway_gitops_view::progress::{Goal, Look, Progress, heading, lines};
use fairway_gitops_view::selection::Selected;
use fairway_gitops_view::{drawing, summary};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Value;

use super::super::gitops::{Session, is_forbidden, now, path_of, print_value};
use super::show::{header, print_resources};
use crate::cli::app::{Several, Wait};
use crate::cli::gitops::DetailFormat;

/// What to follow for, and how to show it.
pub(super) struct Following<'a> {
    pub(super) goal: Goal,
    pub(super) selected: &'a [Selected],
    pub(super) timeout: u64,
    pub(super) output: DetailFormat,
}

/// The Applications that are meant by names or labels.
pub(super) async fn chosen(session: &Session, several: &Several) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    for name in &several.names {
        all.push(
            session
                .find(APPLICATION, name, several.app_namespace.as_deref())
                .await?,
        );
    }
    if let Some(selector) = &several.selector {
        let found = session
            .list(APPLICATION, several.app_namespace.as_deref(), Some(selector))
            .await?;
        if found.is_empty() {
            bail!("no apps match selector {selector}");
        }
        all.extend(found);
    }
    Ok(all)
}

pub(super) async fn wait(options: &Wait) -> anyhow::Result<ExitCode> {
    if options.apps.names.is_empty() && options.apps.selector.is_none() {
        bail!("name an application, or choose some with --selector");
    }
    let session = Session::open(&options.apps.place).await?;
    let selected: Vec<Selected> = options
        .resource
        .iter()
        .map(|it| Selected::parse(it).map_err(|error| anyhow!("{error}")))
        .collect::<Result<_, _>>()?;
    let goal = Goal {
        sync: options.sync,
        health: options.health,
        operation: options.operation,
        suspended: options.suspended,
        degraded: options.degraded,
        delete: options.delete,
        hydrated: options.hydrated,
    };
    let following = Following {
        goal: goal.or_usual(),
        selected: &selected,
        timeout: options.timeout,
        output: options.output,
    };
    for application in chosen(&session, &options.apps).await? {
        follow(&session, &application, &following).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the following came to.
enum End {
    Done(Value),
    Gone,
    Failed(Value, String),
}

/// Follows an Application to its goal; the Application as it was then, or nothing if it is gone.
pub(super) async fn follow(
    session: &Session,
    application: &Value,
    following: &Following<'_>,
) -> anyhow::Result<Option<Value>> {
    let name = qualified_name(application);
    let mut screen = Screen::new(following.output);
    let watching = watch(session, application, following, &mut screen);
    let end = if following.timeout == 0 {
        watching.await?
    } else {
        match tokio::time::timeout(Duration::from_secs(following.timeout), watching).await {
            Ok(end) => end?,
            Err(_) => {
                let last = session.find(APPLICATION, &name, None).await?;
                let seconds = following.timeout;
                let why = format!("timed out ({seconds}s) waiting for app {name:?} match desired state");
                if screen.is_text() {
                    println!("\nThis is the state of the app after wait timed out:");
                }
                End::Failed(last, why)
            }
        }
    };
    match end {
        End::Gone if following.goal.delete => {
            println!("Application '{name}' deleted");
            Ok(None)
        }
        End::Gone => bail!("application {name} was deleted"),
        End::Done(last) => {
            conclude(session, &last, following).await?;
            Ok(Some(last))
        }
        End::Failed(last, why) => {
            conclude(session, &last, following).await?;
            bail!("{why}")
        }
    }
}

async fn watch(
    session: &Session,
    application: &Value,
    following: &Following<'_>,
    screen: &mut Screen,
) -> anyhow::Result<End> {
    let name = qualified_name(application);
    let mut progress = Progress::new(&name, following.goal, following.selected.to_vec());
    let mut states = states(session, application).await;
    let mut failures = 0;
    while let Some(state) = states.next().await {
        let now = match state {
            Ok(Some(object)) => object,
            Ok(None) => return Ok(End::Gone),
            // A server that is away comes back; one that never was there does not.
            Err(error) if failures > 10 => bail!("{name} cannot be followed: {error}"),
            Err(_) => {
                failures += 1;
                tokio::time::sleep(Duration::from_millis(500)).await;
                continue;
            }
        };
        failures = 0;
        let look = progress.look(&now);
        screen.show(&now, following.selected, &look)?;
        match look {
            Look::Done => return Ok(End::Done(now)),
            Look::Failed(why) => return Ok(End::Failed(now, why)),
            Look::Waiting(_) => {}
        }
    }
    bail!("{name} cannot be followed any longer")
}

/// An Application as it changes: watched, or looked at again and again by who may not watch.
async fn states<'a>(
    session: &'a Session,
    application: &Value,
) -> BoxStream<'a, Result<Option<Value>, String>> {
    let path = path_of(APPLICATION, application);
    if matches!(session.requests.get(&path).await, Err(failure) if is_forbidden(&failure)) {
        let looks = futures::stream::unfold((path, true), move |(path, is_first)| async move {
            if !is_first {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let seen = session.view(&path).await.map_err(|failure| failure.sentence());
            Some((seen, (path, false)))
        });
        return looks.boxed();
    }
    let api = session.api(APPLICATION, text(application, "/metadata/namespace"));
    let watch = kube::runtime::watcher::watch_object(api, text(application, "/metadata/name"));
    let as_value = |object| serde_json::to_value(object).map_err(|error| error.to_string());
    watch
        .map(move |state| match state {
            Ok(Some(object)) => as_value(object).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error.to_string()),
        })
        .boxed()
}

/// What is printed at the end.
async fn conclude(session: &Session, application: &Value, following: &Following<'_>) -> anyhow::Result<()> {
    match following.output {
        DetailFormat::Json | DetailFormat::Yaml => {
            print_value(application, following.output == DetailFormat::Yaml);
            return Ok(());
        }
        _ => {}
    }
    println!("\n{}", header(session, application).await);
    if following.goal.operation {
        print!("{}", summary::operation(application, now()));
    }
    print_resources(session, application, following.output).await
}

/// Where progress is shown.
enum Screen {
    /// Nowhere: the end alone is wanted.
    Off,
    /// Lines, one after the other.
    Lines { begun: bool },
    /// A tree in a terminal; so many lines of it are there now.
    Tree { drawn: usize },
}

impl Screen {
    fn new(output: DetailFormat) -> Self {
        match output {
            DetailFormat::Json | DetailFormat::Yaml => Self::Off,
            _ if std::io::stdout().is_terminal() => Self::Tree { drawn: 0 },
            _ => Self::Lines { begun: false },
        }
    }

    fn is_text(&self) -> bool {
        !matches!(self, Self::Off)
    }

    fn show(&mut self, application: &Value, selected: &[Selected], look: &Look) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        match self {
            Self::Off => {}
            Self::Lines { begun } => {
                if !*begun {
                    write!(out, "{}", heading())?;
                    *begun = true;
                }
                if let Look::Waiting(changed) = look {
                    write!(out, "{}", lines(changed, now()))?;
                }
            }
            Self::Tree { drawn } => {
                let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
                let (width, height): (usize, usize) = size.map_or((120, 40), |it| {
                    (it.ws_col.max(20).into(), it.ws_row.max(5).into())
                });
                let mut tree = drawing::lines(application, selected, Some(width));
                // What does not fit would scroll away and could not be drawn over.
                tree.truncate(height - 1);
                if *drawn > 0 {
                    write!(out, "\u{1b}[{drawn}A\u{1b}[J")?;
                }
                for line in &tree {
                    writeln!(out, "{line}")?;
                }
                *drawn = tree.len();
            }
        }
        out.flush()?;
        Ok(())
    }
}
