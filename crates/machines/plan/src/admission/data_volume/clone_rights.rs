//! A disk is copied from another namespace only for somebody who may read it there.
//!
//! The disks of a machine are made by the control plane, which may read everything: there the service account counts
//! that the machine's guest would have.

use fairway_admission::{Account, Action, Place, Request, Resource, Verdict};
use serde_json::Value;

use super::super::{DATA_SOURCES, DATA_VOLUMES, MACHINES, cause, importer_refusal, is_ours, not_found, text};
use super::{IMAGES_NAMESPACE, MUTATOR, failed};
use crate::validate::CauseType;

const NAMESPACES: Resource = Resource::new("", "namespaces");

/// What a disk is copied from.
struct Origin {
    namespace: String,
    name: String,
    is_snapshot: bool,
}

/// On a DataVolume whose source is in another namespace: what who asked may copy. Nobody writes it himself, and it stays as it was
/// written first, so that a DataSource which means something else later leads nowhere.
pub const CLONE_SOURCE_ANNOTATION: &str = "fairway.dev/clone-source";

/// Refuses copies that who asks may not make, and notes those that he may.
pub(super) fn check(request: &Request<'_>, volume: &mut Value) -> Verdict {
    let noted = match request.old {
        Some(old) => old["metadata"]["annotations"][CLONE_SOURCE_ANNOTATION].clone(),
        None => Value::Null,
    };
    note(volume, noted);
    // The source does not change; whether it is still there is not asked of whoever writes a label.
    if request.old.is_some() {
        return Ok(Vec::new());
    }
    let mut noted = None;
    let verdict = verdict(request, volume, &mut noted);
    if let Some(noted) = noted {
        note(volume, Value::String(noted));
    }
    verdict
}

fn note(volume: &mut Value, noted: Value) {
    let metadata = &mut volume["metadata"];
    if !noted.is_null() {
        metadata["annotations"][CLONE_SOURCE_ANNOTATION] = noted;
    } else if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.shift_remove(CLONE_SOURCE_ANNOTATION);
    }
}

/// Whether the copy may be made; of what, is noted.
fn verdict(request: &Request<'_>, volume: &Value, noted: &mut Option<String>) -> Verdict {
    // A disk that is filled already needs no source, so nobody minds what it says of it.
    let annotations = &volume["metadata"]["annotations"];
    let is_filled = ["prePopulated", "checkStaticVolume"]
        .iter()
        .any(|it| annotations[format!("cdi.kubevirt.io/storage.{it}")].is_string());
    if is_filled {
        return Ok(Vec::new());
    }
    let origin = match origin(request, volume) {
        Found::Nothing => return Ok(Vec::new()),
        Found::NotYet(warning) => return Ok(vec![warning]),
        Found::Missing(why) => return Err(failed(why)),
        Found::Here(origin) => origin,
    };
    if origin.namespace == request.namespace {
        return Ok(Vec::new());
    }
    let namespace = (request.world).get(Place::Here, NAMESPACES, "", &origin.namespace);
    if namespace.is_none() {
        return Err(failed(not_found(NAMESPACES, &origin.namespace)));
    }
    let account = account(request, volume);
    let account = account.as_deref().map(|name| Account {
        namespace: request.namespace,
        name,
    });
    if may_copy(request, &origin, account) {
        *noted = Some(format!("{}/{}", origin.namespace, origin.name));
        return Ok(Vec::new());
    }
    let who = match account {
        Some(account) => format!("system:serviceaccount:{}:{}", account.namespace, account.name),
        None => request.user.to_owned(),
    };
    let message = format!(
        "User {who} has insufficient permissions in clone source namespace {}",
        origin.namespace
    );
    let field = "spec.source.PVC.namespace";
    Err(importer_refusal(
        MUTATOR,
        &[cause(CauseType::Invalid, field, message)],
    ))
}

enum Found {
    /// It is no copy.
    Nothing,
    /// An image that is not there yet.
    NotYet(String),
    /// What is named is not there.
    Missing(String),
    Here(Origin),
}

fn origin(request: &Request<'_>, volume: &Value) -> Found {
    let spec = &volume["spec"];
    if spec["source"].is_object() {
        return named(request, &spec["source"]);
    }
    let reference = &spec["sourceRef"];
    if reference["kind"] != "DataSource" {
        return Found::Nothing;
    }
    let wanted = text(reference, "/name");
    let namespace = match text(reference, "/namespace") {
        "" => request.namespace,
        other => other,
    };
    let world = request.world;
    if let Some(source) = world.get(Place::Here, DATA_SOURCES, namespace, wanted) {
        return named(request, &source["spec"]["source"]);
    }
    if namespace != IMAGES_NAMESPACE {
        return Found::Missing(not_found(DATA_SOURCES, wanted));
    }
    match world.get(Place::Root, DATA_SOURCES, namespace, wanted) {
        // The platform made it for everybody.
        Some(_) => Found::Nothing,
        None => Found::NotYet(format!(
            "spec.sourceRef: there is no image {wanted} in {IMAGES_NAMESPACE} yet; the disk waits for it"
        )),
    }
}

fn named(request: &Request<'_>, source: &Value) -> Found {
    for (part, is_snapshot) in [("pvc", false), ("snapshot", true)] {
        let from = &source[part];
        if from.is_object() {
            let namespace = match text(from, "/namespace") {
                "" => request.namespace,
                other => other,
            };
            return Found::Here(Origin {
                namespace: namespace.to_owned(),
                name: text(from, "/name").to_owned(),
                is_snapshot,
            });
        }
    }
    Found::Nothing
}

/// The account that counts in place of who asks: that of the machine whose disk it is.
fn account(request: &Request<'_>, volume: &Value) -> Option<String> {
    if !is_ours(request) {
        return None;
    }
    let owners = volume["metadata"]["ownerReferences"].as_array();
    let owner = owners
        .into_iter()
        .flatten()
        .find(|it| it["controller"] == true && it["kind"] == "VirtualMachine")?;
    let machine = (request.world).get(Place::Here, MACHINES, request.namespace, text(owner, "/name"));
    let volumes = machine
        .as_ref()
        .and_then(|vm| vm.pointer("/spec/template/spec/volumes"));
    let volumes = volumes.and_then(Value::as_array);
    let named = volumes
        .into_iter()
        .flatten()
        .map(|it| text(it, "/serviceAccount/serviceAccountName"))
        .find(|it| !it.is_empty());
    Some(named.unwrap_or("default").to_owned())
}

fn may_copy(request: &Request<'_>, origin: &Origin, account: Option<Account<'_>>) -> bool {
    let may = |resource: Resource, subresource: &str| {
        let action = Action {
            verb: "create",
            resource,
            subresource,
            namespace: &origin.namespace,
            name: &origin.name,
        };
        request.world.may(&action, account)
    };
    let pods = Resource::new("", "pods");
    // Who may run a pod beside a claim can read it.
    may(DATA_VOLUMES, "source")
        || match origin.is_snapshot {
            true => may(pods, "") && may(Resource::new("", "pvcs"), ""),
            false => may(pods, ""),
        }
}
