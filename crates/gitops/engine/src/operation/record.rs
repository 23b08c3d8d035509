//! A sync as it is written in `operation` and `status.operationState`.

use fairway_gitops_sync::guard::Spent;
use fairway_gitops_sync::operation::{OperationPhase, ResourceResult, Selected, State};
use fairway_gitops_sync::retry::Retry;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::application::{Application, Source};
use crate::report::timestamp;

/// A sync.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// What was asked for.
    pub(crate) operation: Value,
    pub(crate) state: State,
    pub(crate) started_at: Timestamp,
    pub(crate) finished_at: Option<Timestamp>,
    pub(crate) retry_count: u32,
    /// The commits that are synced; empty until they are known.
    pub(crate) revisions: Vec<String>,
    /// The sources that are synced, as they are written: a list if there are several.
    pub(crate) sources: Value,
    /// The approval that was acted on in this pass. Not kept: whoever comes after a crash finds it unused, and that of objects
    /// that are gone.
    pub(crate) spent: Option<Spent>,
}

/// A result with the fields that Argo CD's schema requires, empty or not.
fn complete(result: &ResourceResult) -> Value {
    let mut entry = json!(result);
    for field in ["group", "version", "kind", "namespace", "name"] {
        if entry.get(field).is_none() {
            entry[field] = "".into();
        }
    }
    entry
}

impl Record {
    /// The sync that an Application asks for or is at; none if there is nothing to do.
    pub(crate) fn of(application: &Application, now: Timestamp) -> Option<Self> {
        let state = &application.status()["operationState"];
        let running = Self::read(application, state).filter(|record| !record.state.phase.is_completed());
        if running.is_some() {
            return running;
        }
        let operation = application.object.get("operation").filter(|it| it.is_object())?;
        Some(Self::begin(application, operation.clone(), now))
    }

    /// A sync that begins now.
    pub(crate) fn begin(application: &Application, operation: Value, now: Timestamp) -> Self {
        let sync = &operation["sync"];
        let listed = |field: &str| sync[field].as_array().is_some_and(|list| !list.is_empty());
        let sources = match () {
            () if listed("sources") => sync["sources"].clone(),
            () if sync["source"].is_object() && sync["source"]["repoURL"].is_string() => {
                sync["source"].clone()
            }
            () => application.raw_sources(),
        };
        Self {
            operation,
            state: State::default(),
            started_at: now,
            finished_at: None,
            retry_count: 0,
            revisions: Vec::new(),
            sources,
            spent: None,
        }
    }

    /// A sync that is written in a status.
    pub(crate) fn read(application: &Application, state: &Value) -> Option<Self> {
        let phase = OperationPhase::deserialize(&state["phase"]).ok()?;
        let result = &state["syncResult"];
        let time = |field: &str| state[field].as_str().and_then(|text| text.parse().ok());
        let resources = Vec::<ResourceResult>::deserialize(&result["resources"]).unwrap_or_default();
        let texts = |value: &Value| Vec::<String>::deserialize(value).unwrap_or_default();
        let revisions = match texts(&result["revisions"]) {
            several if !several.is_empty() => several,
            _ => result["revision"]
                .as_str()
                .map(str::to_owned)
                .into_iter()
                .collect(),
        };
        let sources = match () {
            () if result["sources"].is_array() => result["sources"].clone(),
            () if result["source"].is_object() => result["source"].clone(),
            () => application.raw_sources(),
        };
        Some(Self {
            operation: state["operation"].clone(),
            state: State {
                phase,
                message: state["message"].as_str().unwrap_or_default().to_owned(),
                resources,
                checked: false,
            },
            started_at: time("startedAt").unwrap_or(Timestamp::UNIX_EPOCH),
            finished_at: time("finishedAt"),
            retry_count: state["retryCount"]
                .as_u64()
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(0),
            revisions: revisions
                .into_iter()
                .filter(|revision| !revision.is_empty())
                .collect(),
            sources,
            spent: None,
        })
    }

    /// As it is written.
    pub(crate) fn write(&self, application: &Application) -> Value {
        let mut result = Map::new();
        if !self.state.resources.is_empty() {
            let resources = self.state.resources.iter().map(complete).collect();
            result.insert("resources".to_owned(), Value::Array(resources));
        }
        let several = self.sources.is_array();
        // Argo CD's schema wants both of these, whether there is something to say or not.
        let revision = self.revisions.first().filter(|_| !several).cloned();
        result.insert("revision".to_owned(), revision.unwrap_or_default().into());
        match several {
            true => {
                result.insert("revisions".to_owned(), json!(self.revisions));
                result.insert("sources".to_owned(), self.sources.clone());
            }
            false => {
                result.insert("source".to_owned(), self.sources.clone());
            }
        }
        let metadata = &application.object["spec"]["syncPolicy"]["managedNamespaceMetadata"];
        if !metadata.is_null() {
            result.insert("managedNamespaceMetadata".to_owned(), metadata.clone());
        }
        let mut state = json!({
            "operation": self.operation,
            "phase": self.state.phase,
            "message": self.state.message,
            "startedAt": timestamp(self.started_at),
            "syncResult": result,
        });
        if let Some(at) = self.finished_at {
            state["finishedAt"] = timestamp(at).into();
        }
        if self.retry_count > 0 {
            state["retryCount"] = self.retry_count.into();
        }
        state
    }

    /// Whether it has failed and will be tried again.
    pub(crate) fn waits_for_retry(&self) -> bool {
        self.finished_at.is_some() && self.state.phase == OperationPhase::Running
    }

    fn sync(&self) -> &Value {
        &self.operation["sync"]
    }

    /// The sources to render.
    pub(crate) fn source_list(&self) -> Vec<Source> {
        match &self.sources {
            Value::Array(items) => items
                .iter()
                .filter_map(|item| Source::deserialize(item).ok())
                .collect(),
            single => Source::deserialize(single).into_iter().collect(),
        }
    }

    /// The revisions that were asked for, or found before: one for each source, empty where none was.
    pub(crate) fn wanted_revisions(&self) -> Vec<String> {
        if !self.revisions.is_empty() {
            return self.revisions.clone();
        }
        let several = Vec::<String>::deserialize(&self.sync()["revisions"]).unwrap_or_default();
        match several.is_empty() {
            false => several,
            true => self.sync()["revision"]
                .as_str()
                .map(str::to_owned)
                .into_iter()
                .collect(),
        }
    }

    /// Manifests that somebody sent along, in place of the sources.
    pub(crate) fn local_manifests(&self) -> Option<Vec<Value>> {
        let list = self.sync()["manifests"]
            .as_array()
            .filter(|list| !list.is_empty())?;
        let read = |item: &Value| item.as_str().and_then(|text| serde_json::from_str(text).ok());
        Some(list.iter().filter_map(read).collect())
    }

    pub(crate) fn is_automated(&self) -> bool {
        self.operation["initiatedBy"]["automated"]
            .as_bool()
            .unwrap_or(false)
    }

    pub(crate) fn is_sync(&self) -> bool {
        self.sync().is_object()
    }

    pub(crate) fn prune(&self) -> bool {
        self.sync()["prune"].as_bool().unwrap_or(false)
    }

    pub(crate) fn dry_run(&self) -> bool {
        self.sync()["dryRun"].as_bool().unwrap_or(false)
    }

    pub(crate) fn force(&self) -> bool {
        let strategy = &self.sync()["syncStrategy"];
        ["apply", "hook"]
            .iter()
            .any(|which| strategy[which]["force"].as_bool().unwrap_or(false))
    }

    pub(crate) fn skips_hooks(&self) -> bool {
        self.sync()["syncStrategy"]["apply"].is_object()
    }

    pub(crate) fn sync_options(&self) -> Vec<String> {
        Vec::<String>::deserialize(&self.sync()["syncOptions"]).unwrap_or_default()
    }

    /// The objects that are synced where not all are.
    pub(crate) fn selected(&self) -> Vec<Selected> {
        let list = self.sync()["resources"].as_array();
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        list.into_iter()
            .flatten()
            .map(|entry| Selected {
                group: text(entry, "group"),
                kind: text(entry, "kind"),
                name: text(entry, "name"),
                namespace: text(entry, "namespace"),
            })
            .collect()
    }

    /// Takes whatever the sources are at now.
    pub(crate) fn forget_revisions(&mut self) {
        self.revisions.clear();
        if let Some(sync) = self.operation["sync"].as_object_mut() {
            sync.shift_remove("revision");
            sync.shift_remove("revisions");
        }
    }

    /// How often in a row somebody's changes were put right.
    pub(crate) fn heals_in_a_row(&self) -> u32 {
        let count = self.sync()["autoHealAttemptsCount"].as_u64().unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(crate) fn retry(&self) -> Result<Retry, String> {
        Retry::read(&self.operation["retry"]).map_err(|error| error.to_string())
    }
}
