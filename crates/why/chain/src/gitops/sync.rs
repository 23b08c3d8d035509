//! Whether the cluster is as the commit says, and who keeps it from being so.

use fairway_gitops_sync::automated::Automated;
use serde_json::Value;

use super::{
    as_evidence, complaints, has_failed, is_synced, nobody, operation, refused, result_title, revisions,
    short, unloaded,
};
use crate::Facts;
use crate::cause::is_admission;
use crate::link::{Evidence, Link, State};
use crate::object::{field, items, name, title, told};

/// Whether the cluster is as the commit says.
pub(crate) fn sync(facts: &Facts) -> Link {
    let link = |state, finding: String| Link::new("sync", state, finding);
    let Some(application) = &facts.application else {
        let Some((missing, who)) = &facts.missing_application else {
            return nobody(facts, "sync");
        };
        if facts.unreadable.contains_key("applications") {
            return nobody(facts, "sync");
        }
        return link(
            State::Broken,
            format!("the Application {missing} does not exist any more"),
        )
        .shown_by([Evidence::new(who.clone(), "", &format!("Application {missing}"))])
        .advised("apply it again, or start another run of the template");
    };
    let (titled, named) = (title(application), name(application));
    if !field(application, "/metadata/deletionTimestamp").is_empty() {
        let stuck = complaints(application, "DeletionError");
        let state = if stuck.is_empty() {
            State::Off
        } else {
            State::Broken
        };
        return link(state, format!("{titled} is being deleted"))
            .since(field(application, "/metadata/deletionTimestamp"))
            .shown_by(stuck.iter().map(|it| told(it, &titled)));
    }
    if let Some(bad) = complaints(application, "InvalidSpecError").first() {
        return link(State::Broken, field(bad, "/message").to_owned())
            .shown_by([told(bad, &titled)])
            .advised(format!(
                "correct destination, project and source: `kubectl edit application {named}`"
            ));
    }
    if unloaded(application).is_some() {
        return link(State::Waiting, "there is nothing rendered to sync".to_owned());
    }
    if let Some(bad) = complaints(application, "ComparisonError").first() {
        return link(State::Broken, field(bad, "/message").to_owned())
            .shown_by([told(bad, &titled)])
            .advised(format!("`fairway app get {named} --hard-refresh` looks again"));
    }
    let state = &application["status"]["operationState"];
    let (status, message) = (
        field(application, "/status/sync/status"),
        field(state, "/message"),
    );
    if is_synced(application) {
        return synced(facts, application);
    }
    if let Some(link) = failing(application, message) {
        return link;
    }
    let running =
        matches!(field(state, "/phase"), "Running" | "Terminating") || !application["operation"].is_null();
    if running {
        return link(
            State::Waiting,
            format!(
                "{titled}: {}",
                if message.is_empty() { "syncing" } else { message }
            ),
        )
        .shown_by([operation(application)]);
    }
    match status {
        "OutOfSync" => out_of_sync(facts, application),
        "" => link(State::Waiting, format!("{titled} has not been compared yet")),
        other => link(State::Unknown, format!("{titled} is {other}")),
    }
}

/// A sync that fails, or waits for what does not come.
fn failing(application: &Value, message: &str) -> Option<Link> {
    let link = |state, finding: String| Link::new("sync", state, finding);
    let titled = title(application);
    if message.starts_with("waiting for the kind ") {
        return Some(
            link(State::Broken, message.to_owned())
                .shown_by([operation(application)])
                .advised("define the kind (a CustomResourceDefinition), or correct apiVersion and kind in the repository"),
        );
    }
    let held = message.starts_with("Sync operation blocked by sync window") || message.contains("approv");
    if held {
        return Some(
            link(State::Broken, format!("{titled} is held: {message}"))
                .shown_by([operation(application)])
                .advised("`fairway app get` shows windows and what waits for approval; `fairway app approve` lets it go on"),
        );
    }
    let bad: Vec<&Value> = refused(application).collect();
    if !bad.is_empty() && bad.iter().all(|it| is_admission(field(it, "/message"))) {
        return Some(link(
            State::Waiting,
            "the sync waits for what is refused".to_owned(),
        ));
    }
    let own = bad.iter().find(|it| !is_admission(field(it, "/message")));
    let errors = complaints(application, "SyncError");
    if !has_failed(application) && own.is_none() && errors.is_empty() {
        return None;
    }
    if own.is_none() && is_admission(message) {
        return Some(link(
            State::Waiting,
            "the sync waits for what is refused".to_owned(),
        ));
    }
    let finding = match own {
        Some(result) => format!("{}: {}", result_title(result), field(result, "/message")),
        None if !errors.is_empty() => field(errors[0], "/message").to_owned(),
        None => message.to_owned(),
    };
    let advice = advice(&finding, name(application));
    Some(
        link(State::Broken, finding)
            .shown_by(own.map(|it| as_evidence(it, application)))
            .shown_by([operation(application)])
            .shown_by(errors.iter().map(|it| told(it, &titled)))
            .advised(advice),
    )
}

fn advice(finding: &str, named: &str) -> String {
    if finding.contains("namespaces \"") && finding.contains("not found") {
        "put the Namespace into the repository, or add CreateNamespace=true to spec.syncPolicy.syncOptions"
            .to_owned()
    } else if finding.contains("conflict") {
        format!(
            "somebody else owns the field: leave it to one of both; `fairway app diff {named}` shows the difference"
        )
    } else if finding.contains("is forbidden: User ") {
        "give the one who syncs (the project's service account) the right to write it".to_owned()
    } else {
        format!("put right what it says; `fairway app sync {named}` tries again")
    }
}

/// In sync; what is in no later link and is not healthy counts here.
fn synced(facts: &Facts, application: &Value) -> Link {
    let link = |state, finding: String| Link::new("sync", state, finding);
    let later = [
        "VirtualMachine",
        "VirtualMachineInstance",
        "DataVolume",
        "PersistentVolumeClaim",
        "Service",
        "Gateway",
        "HTTPRoute",
        "GRPCRoute",
        "AuthPolicy",
        "RateLimitPolicy",
        "TLSPolicy",
        "DNSPolicy",
        "PlanPolicy",
        "Route",
        "Application",
    ];
    let is_degraded =
        |it: &&Value| it["health"]["status"] == "Degraded" && !later.contains(&field(it, "/kind"));
    let resources = items(application, "/status/resources");
    if let Some(bad) = resources.iter().find(is_degraded) {
        let finding = format!(
            "{} is Degraded: {}",
            result_title(bad),
            field(bad, "/health/message")
        );
        let place = format!("health of {} in {}", result_title(bad), title(application));
        let at = field(application, "/status/health/lastTransitionTime");
        return link(State::Broken, finding)
            .shown_by([Evidence::new(place, at, field(bad, "/health/message"))])
            .advised(format!(
                "`fairway app get {}` shows the health of every object",
                name(application)
            ));
    }
    let known = revisions(application);
    let listed: Vec<&str> = known.iter().map(|it| short(it)).collect();
    let at = match field(application, "/status/operationState/finishedAt") {
        "" => field(application, "/status/reconciledAt"),
        at => at,
    };
    let absent = facts.machines.iter().find(|it| it.is_absent());
    if let Some(absent) = absent.filter(|it| !lists(application, &it.name)) {
        return link(
            State::Broken,
            format!(
                "{} is Synced, and has no VirtualMachine {}",
                title(application),
                absent.name
            ),
        )
        .since(at)
        .advised("put its manifest into the repository and push");
    }
    link(
        State::Good,
        format!("{} is Synced to {}", title(application), listed.join(", ")),
    )
    .since(at)
}

fn lists(application: &Value, machine: &str) -> bool {
    items(application, "/status/resources")
        .iter()
        .any(|it| it["kind"] == "VirtualMachine" && it["name"] == machine)
}

/// Out of sync, and nothing is being done about it.
fn out_of_sync(facts: &Facts, application: &Value) -> Link {
    let link = |state, finding: String| Link::new("sync", state, finding);
    let (titled, named) = (title(application), name(application));
    let off: Vec<&Value> = items(application, "/status/resources")
        .iter()
        .filter(|it| it["status"] == "OutOfSync")
        .collect();
    let listed: Vec<String> = off.iter().take(3).map(|it| result_title(it)).collect();
    let more = off.len().saturating_sub(listed.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let at = field(application, "/status/reconciledAt");
    let seen = Evidence::new(
        format!("status.resources of {titled}"),
        at,
        &format!("OutOfSync: {}{more}", listed.join(", ")),
    );
    let Some(policy) = Automated::read(&application["spec"]["syncPolicy"]) else {
        return link(
            State::Broken,
            format!("{titled} is OutOfSync, and does not sync by itself"),
        )
        .shown_by([
            Evidence::new(format!("spec.syncPolicy of {titled}"), at, "no automated policy"),
            seen,
        ])
        .advised(format!(
            "`fairway app sync {named}` syncs it once; spec.syncPolicy.automated has it sync by itself"
        ));
    };
    if !policy.prune && !off.is_empty() && off.iter().all(|it| it["requiresPruning"] == true) {
        return link(
            State::Broken,
            format!(
                "{titled} is OutOfSync: {} is left that the commit does not have, and it does not prune",
                listed.join(", ")
            ),
        )
        .shown_by([seen])
        .advised(format!("`fairway app sync {named} --prune` removes it"));
    }
    if let Some(shared) = complaints(application, "SharedResourceWarning").first() {
        return link(State::Broken, field(shared, "/message").to_owned())
            .shown_by([told(shared, &titled), seen])
            .advised("let one Application have the object: rename it in one of the repositories");
    }
    let phase = field(application, "/status/operationState/phase");
    if phase == "Succeeded" && !policy.self_heal {
        return link(
            State::Broken,
            format!(
                "{titled} is OutOfSync: {}{more} was changed by hand, and it does not heal itself",
                listed.join(", ")
            ),
        )
        .shown_by([seen])
        .advised(format!(
            "`fairway app sync {named}` puts it back; spec.syncPolicy.automated.selfHeal does so by itself"
        ));
    }
    // A window that keeps it back leaves no trace in the Application.
    let windows = facts
        .project
        .as_ref()
        .map_or(&[][..], |it| items(it, "/spec/syncWindows"));
    let synced = field(application, "/status/operationState/syncResult/revision");
    if let Some(window) = windows
        .first()
        .filter(|_| synced != field(application, "/status/sync/revision"))
    {
        let project = facts.project.as_ref().map(title).unwrap_or_default();
        let said = format!(
            "{} {} for {}",
            field(window, "/kind"),
            field(window, "/schedule"),
            field(window, "/duration")
        );
        return link(
            State::Broken,
            format!("{titled} is OutOfSync, and held back by sync windows of its project"),
        )
        .shown_by([
            Evidence::new(format!("spec.syncWindows of {project}"), at, &said),
            seen,
        ])
        .advised(format!(
            "wait until the window ends, or sync by hand where it allows that: `fairway app sync {named}`"
        ));
    }
    link(
        State::Waiting,
        format!("{titled} is OutOfSync, and will sync by itself"),
    )
    .shown_by([seen])
}
