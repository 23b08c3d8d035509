//! Options of a sync: the application's, and those that one object has for itself.

use serde_json::Value;

use crate::annotation::{self, SYNC_OPTIONS};
use crate::key;

/// What happens to dependents of what is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// They go first.
    #[default]
    Foreground,
    /// They go later.
    Background,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// Kubernetes' word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Foreground => "Foreground",
            Self::Background => "Background",
            Self::Orphan => "Orphan",
        }
    }
}

/// `spec.syncPolicy.syncOptions` and the operation's own, read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyncOptions {
    /// Make the destination's namespace if it is not there.
    pub create_namespace: bool,
    /// Prune after everything else.
    pub prune_last: bool,
    /// What happens to dependents of what is pruned.
    pub propagation: Propagation,
    /// Server-side apply.
    pub server_side_apply: bool,
    /// Replace instead of apply.
    pub replace: bool,
    /// Delete and make again what cannot be changed.
    pub force: bool,
    /// Leave alone what is in sync.
    pub apply_out_of_sync_only: bool,
    /// No dry run for kinds that are not there yet.
    pub skip_dry_run_on_missing_resource: bool,
    /// Fail rather than take what another application has.
    pub fail_on_shared_resource: bool,
    /// Do not let the API server check fields.
    pub skip_validation: bool,
    /// Leave ignored fields as they are.
    pub respect_ignore_differences: bool,
    /// Prune nothing.
    pub never_prune: bool,
    /// Prune only what somebody has confirmed.
    pub confirm_prune: bool,
    /// Words that are not known, for a warning.
    pub unknown: Vec<String>,
}

impl SyncOptions {
    /// Reads a list of `Name=value`.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut options = Self::default();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, "true"));
            let on = value == "true";
            match name {
                "CreateNamespace" => options.create_namespace = on,
                "PruneLast" => options.prune_last = on,
                "PrunePropagationPolicy" => match value {
                    "foreground" => options.propagation = Propagation::Foreground,
                    "background" => options.propagation = Propagation::Background,
                    "orphan" => options.propagation = Propagation::Orphan,
                    _ => options.unknown.push(word.to_owned()),
                },
                "ServerSideApply" => options.server_side_apply = on,
                "Replace" => options.replace = on,
                "Force" => options.force = on,
                "ApplyOutOfSyncOnly" => options.apply_out_of_sync_only = on,
                "SkipDryRunOnMissingResource" => options.skip_dry_run_on_missing_resource = on,
                "FailOnSharedResource" => options.fail_on_shared_resource = on,
                "Validate" => options.skip_validation = value == "false",
                "RespectIgnoreDifferences" => options.respect_ignore_differences = on,
                "Prune" => {
                    options.never_prune = value == "false";
                    options.confirm_prune = value == "confirm";
                }
                // Read where objects are deleted with their application, and by whoever migrates managers.
                "Delete" | "ClientSideApplyMigration" => {}
                _ => options.unknown.push(word.to_owned()),
            }
        }
        options
    }

    /// How an object is written.
    pub fn mode_for(&self, target: &Value, is_live: bool) -> ApplyMode {
        let own = |option: &str| annotation::has_option(target, SYNC_OPTIONS, option);
        let force = self.force || own("Force=true");
        let validate = !(self.skip_validation || own("Validate=false"));
        let replace = (self.replace || own("Replace=true")) && !own("Replace=false");
        if replace {
            // Replacing may delete and make again, and with a definition or a namespace goes everything in it.
            let precious = key::is_definition(target) || key::is(target, "", "Namespace");
            return match (is_live, precious) {
                (false, _) => ApplyMode::Create { validate },
                (true, true) => ApplyMode::Update,
                (true, false) => ApplyMode::Replace { force },
            };
        }
        let server_side =
            (self.server_side_apply || own("ServerSideApply=true")) && !own("ServerSideApply=false");
        ApplyMode::Apply {
            server_side,
            force,
            validate,
        }
    }
}

/// Whether a dry run that was refused ends a sync: only if the object itself is to blame. A namespace, a quota or a definition
/// that the same sync brings may make the rest good.
pub fn is_dry_run_failure(is_its_own_fault: bool, defined_here: bool) -> bool {
    is_its_own_fault && !defined_here
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// As `kubectl apply` does.
    Apply {
        /// By server-side apply.
        server_side: bool,
        /// Delete and make again what cannot be changed.
        force: bool,
        /// Let the API server check fields.
        validate: bool,
    },
    /// As `kubectl create` does.
    Create {
        /// Let the API server check fields.
        validate: bool,
    },
    /// As `kubectl replace` does.
    Replace {
        /// Delete and make again.
        force: bool,
    },
    /// A PUT over what is there.
    Update,
}
