//! From the commit to the cluster: what the Application says of its source, of what the API refused, and of its sync.

use serde_json::Value;

use crate::Facts;
use crate::cause::{is_admission, is_limit};
use crate::link::{Evidence, Link, State};
use crate::machine::Machine;
use crate::object::{condition, field, items, name, title, told};

mod sync;

pub(crate) use sync::sync;

/// What the engine says when it cannot read a source.
const TARGET: &str = "Failed to load target state: ";

/// Why there is no Application to judge, if there is none.
fn nobody(facts: &Facts, link: &'static str) -> Link {
    let is_on_its_way = facts
        .voyage
        .as_ref()
        .is_some_and(|it| field(it, "/status/phase") != "Succeeded");
    match facts.unreadable.get("applications") {
        Some(why) => Link::new(link, State::Unknown, "Applications cannot be read")
            .shown_by([Evidence::new("answer to reading Applications", "", why)]),
        None if is_on_its_way => Link::new(link, State::Waiting, "the run has not come to it"),
        None if facts.missing_application.is_some() => {
            Link::new(link, State::Waiting, "there is no Application to do it")
        }
        None => Link::new(link, State::Unused, "no Application keeps it"),
    }
}

/// The conditions of a type.
fn complaints<'v>(application: &'v Value, kind: &str) -> Vec<&'v Value> {
    let all = items(application, "/status/conditions").iter();
    all.filter(|it| it["type"] == kind).collect()
}

/// The complaint about the source, if there is one.
fn unloaded(application: &Value) -> Option<&Value> {
    complaints(application, "ComparisonError")
        .into_iter()
        .find(|it| field(it, "/message").starts_with(TARGET))
}

/// Commits that were compared with; none if sources have none.
fn revisions(application: &Value) -> Vec<&str> {
    let one = field(application, "/status/sync/revision");
    let many = items(application, "/status/sync/revisions")
        .iter()
        .filter_map(Value::as_str);
    std::iter::once(one)
        .chain(many)
        .filter(|it| !it.is_empty())
        .collect()
}

fn sources(application: &Value) -> Vec<&Value> {
    let many = items(application, "/spec/sources");
    match (many, application["spec"].get("source")) {
        ([], Some(one)) => vec![one],
        (many, _) => many.iter().collect(),
    }
}

fn short(revision: &str) -> &str {
    revision.get(..8).unwrap_or(revision)
}

/// The repository, and the commit that the Application follows in it.
pub(crate) fn commit(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("commit", state, finding);
    if let Some(missing) = &facts.missing_repository {
        return link(State::Broken, format!("the repository {missing} does not exist any more"))
            .shown_by(facts.application.as_ref().and_then(unloaded).map(|it| told(it, "")))
            .advised("make it again, or correct spec.source.repoURL of the Application: `fairway repo list` shows what there is");
    }
    if let Some(repository) = &facts.repository {
        for kind in ["Ready", "Mirrored"] {
            let Some(bad) = condition(repository, kind).filter(|it| it["status"] == "False") else {
                continue;
            };
            return link(
                State::Broken,
                format!("{}: {}", title(repository), field(bad, "/message")),
            )
            .shown_by([told(bad, &title(repository))])
            .advised(format!(
                "`kubectl describe repository {}` shows more",
                name(repository)
            ));
        }
    }
    let Some(application) = &facts.application else {
        return match &facts.repository {
            Some(repository) => link(State::Good, field(repository, "/status/cloneURL").to_owned())
                .since(field(repository, "/metadata/creationTimestamp")),
            None => nobody(facts, "commit"),
        };
    };
    let all = sources(application);
    let Some(source) = all.first() else {
        return link(State::Broken, format!("{} names no source", title(application)))
            .advised("write spec.source: a repoURL with a path, or a chart");
    };
    let (url, wanted) = (field(source, "/repoURL"), field(source, "/targetRevision"));
    let wanted = if wanted.is_empty() { "HEAD" } else { wanted };
    let known = revisions(application);
    if let Some(bad) = unloaded(application).filter(|_| known.is_empty()) {
        let why = field(bad, "/message").trim_start_matches(TARGET);
        return link(State::Broken, format!("{wanted} of {url} cannot be read: {why}"))
            .shown_by([told(bad, &title(application))])
            .advised(
                "check spec.source.repoURL and targetRevision of the Application, that the branch was pushed, and that its credentials are good",
            );
    }
    if known.is_empty() {
        if application["status"]["sync"].is_null() {
            return link(State::Waiting, format!("{url} has not been looked at yet"));
        }
        return link(
            State::Unknown,
            format!("which commit of {url} counts is not known"),
        );
    }
    let listed: Vec<&str> = known.iter().map(|it| short(it)).collect();
    let deployed = items(application, "/status/history").last();
    let deployed = deployed.filter(|it| known.contains(&field(it, "/revision")));
    let published = facts.voyage.as_ref().and_then(|voyage| {
        items(voyage, "/status/steps")
            .iter()
            .find(|it| known.contains(&field(it, "/output/commitHash")))
    });
    let at = published
        .map(|it| field(it, "/endedAt"))
        .or_else(|| deployed.map(|it| field(it, "/deployStartedAt")));
    link(State::Good, format!("{} of {url} ({wanted})", listed.join(", ")))
        .since(at.unwrap_or_else(|| field(application, "/status/reconciledAt")))
}

/// What the commit comes to.
pub(crate) fn render(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("render", state, finding);
    let Some(application) = &facts.application else {
        return nobody(facts, "render");
    };
    if let Some(bad) = unloaded(application) {
        if revisions(application).is_empty() {
            return link(State::Waiting, "there is no commit to render".to_owned());
        }
        let why = field(bad, "/message").trim_start_matches(TARGET);
        let all = sources(application);
        let path = all.first().map_or("", |it| field(it, "/path"));
        return link(State::Broken, why.to_owned())
            .shown_by([told(bad, &title(application))])
            .advised(format!(
                "put right {} in the repository and push; `fairway render` on a clone shows the same before a push",
                if path.is_empty() { "the source" } else { path }
            ));
    }
    if revisions(application).is_empty() {
        return link(State::Waiting, "nothing has been rendered yet".to_owned());
    }
    let kind = match field(application, "/status/sourceType") {
        "" => "manifests",
        kind => kind,
    };
    let count = items(application, "/status/resources").len();
    link(State::Good, format!("{kind}, {count} objects")).since(field(application, "/status/reconciledAt"))
}

/// What the API refused in the last sync: the object, and why.
fn refused(application: &Value) -> impl Iterator<Item = &Value> {
    let results = items(application, "/status/operationState/syncResult/resources").iter();
    results.filter(|it| {
        it["status"] == "SyncFailed" || it["hookPhase"] == "Failed" || it["hookPhase"] == "Error"
    })
}

fn is_synced(application: &Value) -> bool {
    let running = matches!(
        field(application, "/status/operationState/phase"),
        "Running" | "Terminating"
    );
    field(application, "/status/sync/status") == "Synced" && !running
}

fn result_title(result: &Value) -> String {
    let named = field(result, "/name");
    match field(result, "/namespace") {
        "" => format!("{} {named}", field(result, "/kind")),
        namespace => format!("{} {namespace}/{named}", field(result, "/kind")),
    }
}

fn as_evidence(result: &Value, application: &Value) -> Evidence {
    let place = format!(
        "result of {} in the sync of {}",
        result_title(result),
        title(application)
    );
    let state = &application["status"]["operationState"];
    let at = match field(state, "/finishedAt") {
        "" => field(state, "/startedAt"),
        at => at,
    };
    Evidence::new(place, at, field(result, "/message"))
}

/// Whether the API takes the objects.
pub(crate) fn admission(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("admission", state, finding);
    let of_machine = facts.machines.iter().find_map(limited);
    if let Some((machine, evidence)) = of_machine {
        let finding = format!("what {machine} needs is refused: {}", evidence.message);
        return link(State::Broken, finding)
            .shown_by([evidence])
            .advised(remedy("exceeded quota"));
    }
    let Some(application) = &facts.application else {
        return match facts.machines.iter().find_map(|it| it.vm.as_ref()) {
            Some(vm) => link(State::Good, format!("{} was taken", title(vm)))
                .since(field(vm, "/metadata/creationTimestamp")),
            None => nobody(facts, "admission"),
        };
    };
    if is_synced(application) {
        let count = items(application, "/status/resources").len();
        return link(State::Good, format!("{count} objects were taken"))
            .since(field(application, "/status/operationState/finishedAt"));
    }
    let bad: Vec<&Value> = refused(application)
        .filter(|it| is_admission(field(it, "/message")))
        .collect();
    let message = field(application, "/status/operationState/message");
    if let Some(first) = bad.first() {
        let finding = format!("{} is refused: {}", result_title(first), field(first, "/message"));
        return link(State::Broken, finding)
            .shown_by(bad.iter().take(3).map(|it| as_evidence(it, application)))
            .advised(remedy(field(first, "/message")));
    }
    if refused(application).next().is_none() && is_admission(message) && has_failed(application) {
        return link(State::Broken, message.to_owned())
            .shown_by([operation(application)])
            .advised(remedy(message));
    }
    match application["status"]["operationState"].is_null() {
        true => link(State::Waiting, "nothing was sent to the API yet".to_owned()),
        false => link(State::Good, "the API has refused nothing".to_owned())
            .since(field(application, "/status/operationState/startedAt")),
    }
}

/// A machine for which a quota or a policy refuses an instance or a disk.
fn limited(machine: &Machine) -> Option<(String, Evidence)> {
    let vm = machine.vm.as_ref()?;
    let failure = condition(vm, "Failure").filter(|it| it["status"] == "True");
    let failure = failure.filter(|it| is_limit(field(it, "/message")));
    let of_vm = failure.map(|it| told(it, &title(vm)));
    let of_events = || {
        let mut events = machine.warnings("VirtualMachine", &machine.name).into_iter();
        events.find(|it| is_limit(&it.message) && machine.vmi.is_none())
    };
    Some((title(vm), of_vm.or_else(of_events)?))
}

fn remedy(message: &str) -> &'static str {
    if message.contains("exceeded quota") || message.contains("must specify limits") {
        "ask for less, delete what is not needed, or have the quota raised: `kubectl describe quota -n NAMESPACE` shows it"
    } else if message.contains("unknown field")
        || message.contains("is invalid")
        || message.contains("strict decoding")
    {
        "correct the field in the repository and push; `kubectl explain` shows what a field takes"
    } else {
        "correct the manifest in the repository as the message says, and push"
    }
}

fn has_failed(application: &Value) -> bool {
    let state = &application["status"]["operationState"];
    matches!(field(state, "/phase"), "Failed" | "Error")
        || field(state, "/message").contains("Retrying attempt #")
}

fn operation(application: &Value) -> Evidence {
    let state = &application["status"]["operationState"];
    let at = match field(state, "/finishedAt") {
        "" => field(state, "/startedAt"),
        at => at,
    };
    let place = format!("operation {} of {}", field(state, "/phase"), title(application));
    Evidence::new(place, at, field(state, "/message"))
}
