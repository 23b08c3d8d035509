//! What makes an object a hook, in which phases, and when it is deleted. Helm's annotations are understood, too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::annotation::{self, HOOK, HOOK_DELETE_POLICY, SYNC_WAVE};

const HELM_HOOK: &str = "helm.sh/hook";
const HELM_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
const HELM_WEIGHT: &str = "helm.sh/hook-weight";

/// When things happen, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Before anything is applied.
    PreSync,
    /// When everything is applied.
    Sync,
    /// When everything is healthy.
    PostSync,
    /// When the sync has failed.
    SyncFail,
    /// Before an application's objects are deleted.
    PreDelete,
    /// After they are gone.
    PostDelete,
}

impl Phase {
    /// Argo CD's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
            Self::PreDelete => "PreDelete",
            Self::PostDelete => "PostDelete",
        }
    }

    /// Whether it is a phase of a sync, and not of a deletion.
    pub fn is_of_sync(self) -> bool {
        self <= Self::SyncFail
    }
}

/// What an object is to a sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Applied in the phase `Sync`, compared and pruned.
    Managed,
    /// Left alone: `Skip`.
    Skipped,
    /// Run in these phases; none if the annotation names no phase that is known, and then never.
    Hook(Vec<Phase>),
}

/// When a hook is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletePolicy {
    /// Before it is made again.
    BeforeHookCreation,
    /// When it has succeeded.
    HookSucceeded,
    /// When it has failed.
    HookFailed,
}

/// What an object is to a sync. Helm's annotation counts only without Argo CD's own; a definition that Helm installs first
/// is no hook.
pub fn role(object: &Value) -> Role {
    let words = annotation::list(object, HOOK);
    let (mut phases, mut skip) = (Vec::new(), false);
    for word in &words {
        match *word {
            "PreSync" => phases.push(Phase::PreSync),
            "Sync" => phases.push(Phase::Sync),
            "PostSync" => phases.push(Phase::PostSync),
            "SyncFail" => phases.push(Phase::SyncFail),
            "PreDelete" => phases.push(Phase::PreDelete),
            "PostDelete" => phases.push(Phase::PostDelete),
            "Skip" => skip = true,
            _ => {}
        }
    }
    if skip && phases.is_empty() {
        return Role::Skipped;
    }
    let helm = annotation::get(object, HELM_HOOK);
    let is_hook =
        annotation::has(object, HOOK) || annotation::has(object, HELM_HOOK) && helm != "crd-install";
    if !is_hook {
        return Role::Managed;
    }
    if phases.is_empty() && !skip {
        phases = helm_phases(object);
    }
    phases.sort_unstable();
    phases.dedup();
    Role::Hook(phases)
}

fn helm_phases(object: &Value) -> Vec<Phase> {
    annotation::list(object, HELM_HOOK)
        .into_iter()
        .filter_map(|word| match word {
            "pre-install" | "pre-upgrade" => Some(Phase::PreSync),
            "post-install" | "post-upgrade" => Some(Phase::PostSync),
            "pre-delete" => Some(Phase::PreDelete),
            "post-delete" => Some(Phase::PostDelete),
            _ => None,
        })
        .collect()
}

/// Whether an object is a hook of anything.
pub fn is_hook(object: &Value) -> bool {
    matches!(role(object), Role::Hook(_))
}

/// When a hook is deleted; before it is made again if it does not say.
pub fn delete_policies(object: &Value) -> Vec<DeletePolicy> {
    let own = annotation::list(object, HOOK_DELETE_POLICY)
        .into_iter()
        .filter_map(|word| match word {
            "BeforeHookCreation" => Some(DeletePolicy::BeforeHookCreation),
            "HookSucceeded" => Some(DeletePolicy::HookSucceeded),
            "HookFailed" => Some(DeletePolicy::HookFailed),
            _ => None,
        });
    let helm = annotation::list(object, HELM_DELETE_POLICY)
        .into_iter()
        .filter_map(|word| match word {
            "before-hook-creation" => Some(DeletePolicy::BeforeHookCreation),
            "hook-succeeded" => Some(DeletePolicy::HookSucceeded),
            "hook-failed" => Some(DeletePolicy::HookFailed),
            _ => None,
        });
    let policies: Vec<DeletePolicy> = own.chain(helm).collect();
    match policies.is_empty() {
        true => vec![DeletePolicy::BeforeHookCreation],
        false => policies,
    }
}

/// The wave of an object: Argo CD's annotation, or Helm's weight, or none.
pub fn wave(object: &Value) -> i64 {
    let number = |name: &str| annotation::get(object, name).parse::<i64>().ok();
    number(SYNC_WAVE).or_else(|| number(HELM_WEIGHT)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(annotations: &[(&str, &str)]) -> Value {
        let map: serde_json::Map<String, Value> = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
            .collect();
        json!({"metadata": {"annotations": map}})
    }

    #[test]
    fn roles() {
        use Phase::{PostSync, PreDelete, PreSync, Sync, SyncFail};
        let hook = |phases: &[Phase]| Role::Hook(phases.to_vec());
        let cases = [
            ("nothing", with(&[]), Role::Managed),
            ("one", with(&[(HOOK, "SyncFail")]), hook(&[SyncFail])),
            (
                "two, with spaces",
                with(&[(HOOK, "PostSync , PreSync")]),
                hook(&[PreSync, PostSync]),
            ),
            ("twice the same", with(&[(HOOK, "Sync,Sync")]), hook(&[Sync])),
            ("left alone", with(&[(HOOK, "Skip")]), Role::Skipped),
            (
                "left alone and not",
                with(&[(HOOK, "Skip,PreSync")]),
                hook(&[PreSync]),
            ),
            ("misspelt", with(&[(HOOK, "BeforeSync")]), hook(&[])),
            ("half misspelt", with(&[(HOOK, "Sync,Nonsense")]), hook(&[Sync])),
            (
                "Helm's",
                with(&[(HELM_HOOK, "pre-install,pre-upgrade")]),
                hook(&[PreSync]),
            ),
            (
                "Helm's deletion",
                with(&[(HELM_HOOK, "pre-delete")]),
                hook(&[PreDelete]),
            ),
            ("Helm's test", with(&[(HELM_HOOK, "test")]), hook(&[])),
            (
                "Helm's definition",
                with(&[(HELM_HOOK, "crd-install")]),
                Role::Managed,
            ),
            (
                "both",
                with(&[(HOOK, "Sync"), (HELM_HOOK, "pre-install")]),
                hook(&[Sync]),
            ),
        ];
        for (reason, object, expected) in cases {
            assert_eq!(role(&object), expected, "{reason}");
        }
    }

    #[test]
    fn waves_and_policies() {
        let waves = [
            (with(&[]), 0),
            (with(&[(SYNC_WAVE, "-5")]), -5),
            (with(&[(SYNC_WAVE, "x"), (HELM_WEIGHT, "3")]), 3),
            (with(&[(SYNC_WAVE, "1"), (HELM_WEIGHT, "3")]), 1),
        ];
        for (object, expected) in waves {
            assert_eq!(wave(&object), expected, "{object}");
        }
        use DeletePolicy::{BeforeHookCreation, HookFailed, HookSucceeded};
        let policies = [
            (with(&[]), vec![BeforeHookCreation]),
            (with(&[(HOOK_DELETE_POLICY, "never")]), vec![BeforeHookCreation]),
            (
                with(&[(HOOK_DELETE_POLICY, "HookSucceeded,HookFailed")]),
                vec![HookSucceeded, HookFailed],
            ),
            (
                with(&[(HELM_DELETE_POLICY, "hook-succeeded")]),
                vec![HookSucceeded],
            ),
        ];
        for (object, expected) in policies {
            assert_eq!(delete_policies(&object), expected, "{object}");
        }
    }
}
