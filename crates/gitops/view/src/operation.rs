//! The operations that commands ask for, as they are written into an Application.

use serde_json::{Value, json};

use crate::application::{has_several_sources, is_automated, sources};
use crate::field::{list, present, text};

/// What a sync was asked to do.
#[derive(Clone, Debug, Default)]
pub struct SyncRequest {
    /// Who asks.
    pub user: String,
    /// The revision of the one source; empty: what the source says.
    pub revision: String,
    /// Revisions of sources of several, with their positions, which begin at 1.
    pub revisions: Vec<(usize, String)>,
    /// Whether what the source does not have any more is deleted.
    pub prune: bool,
    /// Whether nothing is changed.
    pub dry_run: bool,
    /// `apply` or `hook`.
    pub strategy: String,
    /// Whether objects that cannot be changed are made anew.
    pub force: bool,
    /// In place of the options of the Application.
    pub options: Vec<String>,
    /// Only these resources, as an operation names them.
    pub resources: Vec<Value>,
    /// In place of the retries of the Application.
    pub retry: Option<Value>,
    /// Remarks, name and value.
    pub info: Vec<(String, String)>,
}

impl SyncRequest {
    /// The request in the words of Argo CD's API. Who asks is for the server to know.
    pub fn to_api(&self) -> Value {
        let mut request = json!({
            "revision": self.revision, "prune": self.prune, "dryRun": self.dry_run,
            "resources": self.resources, "syncOptions": {"items": self.options},
            "sourcePositions": self.revisions.iter().map(|(position, _)| *position).collect::<Vec<_>>(),
            "revisions": self.revisions.iter().map(|(_, revision)| revision.as_str()).collect::<Vec<_>>(),
            "infos": self.info.iter().map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>(),
        });
        if !self.strategy.is_empty() {
            request["strategy"] = json!({self.strategy.as_str(): {"force": self.force}});
        }
        if let Some(retry) = &self.retry {
            request["retryStrategy"] = retry.clone();
        }
        request
    }
}

/// The change that ends an operation.
///
/// # Errors
/// None is under way.
pub fn termination(application: &Value) -> Result<Value, String> {
    if present(application, "/operation").is_none()
        || present(application, "/status/operationState").is_none()
    {
        return Err("Unable to terminate operation. No operation is in progress".to_owned());
    }
    Ok(json!({"status": {"operationState": {"phase": "Terminating"}}}))
}

/// Refuses to begin an operation where one is under way.
///
/// # Errors
/// The Application is busy or going.
pub fn may_begin(application: &Value) -> Result<(), String> {
    if present(application, "/metadata/deletionTimestamp").is_some() {
        return Err("application is deleting".to_owned());
    }
    if present(application, "/operation").is_some() {
        return Err("another operation is already in progress".to_owned());
    }
    Ok(())
}

/// The operation of a sync.
///
/// # Errors
/// What is asked for does not fit the Application.
pub fn sync(application: &Value, request: &SyncRequest) -> Result<Value, String> {
    may_begin(application)?;
    let policy = &application["spec"]["syncPolicy"];
    let several = has_several_sources(application);
    let mut all = sources(application);
    if several && !request.revision.is_empty() {
        return Err(
            "an application with several sources takes no --revision; use --revisions with --source-positions or \
             --source-names"
                .to_owned(),
        );
    }
    let automated = is_automated(&application["spec"]) && !request.dry_run;
    let moves = |from: &str, to: &str| {
        let or_head = |revision: &str| {
            if revision.is_empty() {
                "HEAD".to_owned()
            } else {
                revision.to_owned()
            }
        };
        or_head(from) != or_head(to)
    };
    let mut revisions: Vec<String> = all
        .iter()
        .map(|it| text(it, "/targetRevision").to_owned())
        .collect();
    for (position, revision) in &request.revisions {
        let Some(at) = position.checked_sub(1).filter(|at| *at < all.len()) else {
            return Err("source position is out of range".to_owned());
        };
        let (repository, before) = (text(&all[at], "/repoURL"), text(&all[at], "/targetRevision"));
        if automated && moves(before, revision) {
            return Err(format!(
                "Cannot sync source {repository} to {revision}: auto-sync currently set to {before}"
            ));
        }
        revisions[at].clone_from(revision);
    }
    let first = all.first().cloned().unwrap_or_default();
    let before = text(&first, "/targetRevision");
    if automated && !request.revision.is_empty() && moves(before, &request.revision) {
        return Err(format!(
            "Cannot sync to {}: auto-sync currently set to {before}",
            request.revision
        ));
    }
    let strategy = match request.strategy.as_str() {
        kind @ ("apply" | "hook") => kind,
        "" => "hook",
        other => return Err(format!("Unknown sync strategy: '{other}'")),
    };
    let detail = if request.force {
        json!({"force": true})
    } else {
        json!({})
    };
    let mut sync = json!({"syncStrategy": {strategy: detail}});
    let options = match &request.options[..] {
        [] => policy["syncOptions"].clone(),
        some => json!(some),
    };
    let mut set = |field: &str, value: Value| {
        let empty = matches!(&value, Value::Null | Value::Bool(false))
            || value.as_str() == Some("")
            || value.as_array().is_some_and(Vec::is_empty);
        if !empty {
            sync[field] = value;
        }
    };
    set("prune", json!(request.prune));
    set("dryRun", json!(request.dry_run));
    set("syncOptions", options);
    set("resources", json!(request.resources));
    if several {
        set("sources", json!(std::mem::take(&mut all)));
        set("revisions", json!(revisions));
    } else {
        set("source", first.clone());
        let revision = match request.revision.as_str() {
            "" => before,
            revision => revision,
        };
        set("revision", json!(revision));
    }
    let mut operation = json!({"initiatedBy": {"username": request.user}, "sync": sync});
    if let Some(retry) = request.retry.as_ref().or_else(|| present(policy, "/retry")) {
        operation["retry"] = retry.clone();
    }
    if !request.info.is_empty() {
        operation["info"] = request
            .info
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
    }
    Ok(operation)
}

/// The deployment that a rollback goes to: the one of this number, or the one before the last.
///
/// # Errors
/// There is none.
pub fn deployment(application: &Value, id: Option<i64>) -> Result<&Value, String> {
    let name = text(application, "/metadata/name");
    let history = list(application, "/status/history");
    match id {
        None => {
            history.iter().rev().nth(1).ok_or_else(|| {
                format!("application '{name}' should have at least two successful deployments")
            })
        }
        Some(id) => history
            .iter()
            .find(|it| it["id"] == id)
            .ok_or_else(|| format!("application '{name}' does not have deployment id '{id}' in history")),
    }
}

/// The operation of a rollback.
///
/// # Errors
/// The Application syncs by itself, is busy, or has no such deployment.
pub fn rollback(application: &Value, id: Option<i64>, prune: bool, user: &str) -> Result<Value, String> {
    may_begin(application)?;
    if is_automated(&application["spec"]) {
        return Err("rollback cannot be initiated when auto-sync is enabled".to_owned());
    }
    let deployment = deployment(application, id)?;
    let mut sync = json!({"syncStrategy": {"apply": {}}});
    if prune {
        sync["prune"] = json!(true);
    }
    for field in ["revision", "revisions", "source", "sources"] {
        if let Some(value) = deployment.get(field).filter(|it| !it.is_null()) {
            sync[field] = value.clone();
        }
    }
    if let Some(options) = present(application, "/spec/syncPolicy/syncOptions") {
        sync["syncOptions"] = options.clone();
    }
    Ok(json!({"initiatedBy": {"username": user}, "sync": sync}))
}

/// The finalizers that a deletion needs, if they are not the ones there are.
///
/// # Errors
/// The propagation policy is none.
pub fn finalizers(application: &Value, cascade: bool, propagation: &str) -> Result<Option<Value>, String> {
    const PREFIX: &str = "resources-finalizer.argocd.argoproj.io";
    let wanted = match propagation {
        "" | "foreground" => PREFIX,
        "background" => "resources-finalizer.argocd.argoproj.io/background",
        other => return Err(format!("invalid propagation policy: {other}")),
    };
    let present: Vec<&str> = list(application, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let is_cascading = |it: &&str| it.split('/').next() == Some(PREFIX);
    let fulfils = |it: &&str| {
        *it == wanted || (wanted == PREFIX && *it == "resources-finalizer.argocd.argoproj.io/foreground")
    };
    if cascade && present.iter().any(fulfils) || !cascade && !present.iter().any(is_cascading) {
        return Ok(None);
    }
    let mut left: Vec<&str> = present.into_iter().filter(|it| !is_cascading(it)).collect();
    if cascade {
        left.push(wanted);
    }
    Ok(Some(json!(left)))
}

/// What the sync of an Application that waits for approval asks for.
pub fn awaited_approval(application: &Value) -> Option<&str> {
    let message = text(application, "/status/operationState/message");
    let (_, digest) = message.split_once(&format!("{}: ", fairway_gitops_sync::guard::APPROVE))?;
    let end = digest
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(digest.len());
    Some(&digest[..end]).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests;
