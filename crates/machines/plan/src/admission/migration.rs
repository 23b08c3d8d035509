//! VirtualMachineInstanceMigrations: one at a time for a machine that runs and can move.

use fairway_admission::{Admission, Impact, Operation, Place, Refusal, Request, Resource, Verdict};
use serde_json::Value;

use super::{INSTANCES, cause, refusal, same, text};
use crate::edit::{append, set};
use crate::impact;
use crate::validate::CauseType;

/// Keeps a migration until it is over.
pub const FINALIZER: &str = "kubevirt.io/migrationJobFinalize";
/// Which instance a migration moves.
pub const SELECTOR_LABEL: &str = "kubevirt.io/vmi-name";

const CREATE_VALIDATOR: &str = "migration-create-validator.kubevirt.io";
const UPDATE_VALIDATOR: &str = "migration-update-validator.kubevirt.io";
const MIGRATIONS: Resource = Resource::new("kubevirt.io", "virtualmachineinstancemigrations");
/// A namespace with more migrations than this is not searched further for one that is under way.
const MOST: usize = 10_000;

/// The kind.
pub(super) struct Migrations;

impl Admission for Migrations {
    fn complete(&self, request: &Request<'_>, migration: &mut Value) -> Verdict {
        if request.operation != Operation::Create {
            return Ok(Vec::new());
        }
        let name = text(migration, "/spec/vmiName").to_owned();
        set(migration, &["metadata", "labels", SELECTOR_LABEL], name);
        let finalizers = migration["metadata"]["finalizers"].as_array();
        if !finalizers.is_some_and(|all| all.iter().any(|it| it == FINALIZER)) {
            append(migration, &["metadata", "finalizers"], vec![FINALIZER.into()]);
        }
        Ok(Vec::new())
    }

    fn judge(&self, request: &Request<'_>, migration: &Value) -> Verdict {
        match (request.operation, request.old) {
            (Operation::Create, _) => create(request, migration)?,
            // The status is the control plane's, and is judged by the schema.
            (Operation::Update, Some(old)) if request.subresource.is_none() => update(old, migration)?,
            _ => {}
        }
        Ok(Vec::new())
    }

    fn impact(&self, request: &Request<'_>, migration: &Value) -> Option<Impact> {
        let name = text(migration, "/spec/vmiName");
        let (class, reason) = match request.operation {
            Operation::Create => (
                impact::Impact::Migration,
                format!("{name} moves to another node, and goes on running"),
            ),
            _ => (impact::Impact::None, String::new()),
        };
        Some(Impact {
            class: class.to_string(),
            reason,
        })
    }
}

fn create(request: &Request<'_>, migration: &Value) -> Result<(), Refusal> {
    let (namespace, name) = (request.namespace, text(migration, "/spec/vmiName"));
    if name.is_empty() {
        let missing = cause(CauseType::Required, "spec.vmiName", "vmiName is missing");
        return Err(refusal(CREATE_VALIDATOR, &[missing]));
    }
    let failed = |message: String| Err(Refusal::failed(CREATE_VALIDATOR, message));
    let Some(instance) = request.world.get(Place::Here, INSTANCES, namespace, name) else {
        return failed(format!("the VMI \"{namespace}/{name}\" does not exist"));
    };
    if matches!(text(&instance, "/status/phase"), "Succeeded" | "Failed") {
        return failed("Cannot migrate VMI in finalized state.".to_owned());
    }
    let conditions = instance["status"]["conditions"].as_array();
    let stays = conditions
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "LiveMigratable" && it["status"] == "False");
    if let Some(why) = stays {
        return failed(format!(
            "Cannot migrate VMI, Reason: {}, Message: {}",
            text(why, "/reason"),
            text(why, "/message")
        ));
    }
    let others = request.world.list(Place::Here, MIGRATIONS, Some(namespace), MOST);
    let under_way = others.iter().find(|it| {
        it["metadata"]["labels"][SELECTOR_LABEL] == name
            && !matches!(text(it, "/status/phase"), "Succeeded" | "Failed")
    });
    if let Some(other) = under_way {
        return failed(format!(
            "in-flight migration detected. Active migration job ({}) is currently already in progress for VMI {}.",
            text(other, "/metadata/uid"),
            text(other, "/spec/vmiName")
        ));
    }
    Ok(())
}

fn update(old: &Value, new: &Value) -> Result<(), Refusal> {
    let refused = |message: &str| {
        Err(refusal(
            UPDATE_VALIDATOR,
            &[cause(CauseType::NotSupported, "", message)],
        ))
    };
    if !same(&old["spec"], &new["spec"]) {
        return refused("update of Migration object's spec is restricted");
    }
    if matches!(text(new, "/status/phase"), "Succeeded" | "Failed") {
        return Ok(());
    }
    let label = |object: &Value| object["metadata"]["labels"][SELECTOR_LABEL].clone();
    match (label(old), new["metadata"]["labels"].is_object()) {
        (Value::Null, _) => Ok(()),
        (_, false) => refused("selector label can't be removed from an in-flight migration"),
        (before, true) if before != label(new) => {
            refused("selector label can't be modified on an in-flight migration")
        }
        _ => Ok(()),
    }
}
