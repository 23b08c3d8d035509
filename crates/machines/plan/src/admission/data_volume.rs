//! DataVolumes: disks that are filled.

use fairway_admission::{Admission, Impact, Operation, Place, Refusal, Request, Verdict};
use serde_json::Value;

use super::{CLAIMS, cause, importer_refusal, is_leaving, name, same, text};
use crate::impact;
use crate::validate::{Cause, CauseType};

mod clone_rights;
mod source;
pub(super) mod spec;

pub use clone_rights::CLONE_SOURCE_ANNOTATION;

/// The namespace of images that everybody may start from. It is in the root workspace, and is found from every other.
pub const IMAGES_NAMESPACE: &str = "fairway-images";

const MUTATOR: &str = "datavolume-mutate.cdi.kubevirt.io";
const VALIDATOR: &str = "datavolume-validate.cdi.kubevirt.io";
/// The longest name of a subdomain.
const MAX_NAME: usize = 253;

/// The kind.
pub(super) struct DataVolumes;

impl Admission for DataVolumes {
    fn complete(&self, request: &Request<'_>, volume: &mut Value) -> Verdict {
        if request.subresource.is_some() || is_leaving(volume) {
            return Ok(Vec::new());
        }
        clone_rights::check(request, volume)
    }

    fn judge(&self, request: &Request<'_>, volume: &Value) -> Verdict {
        if request.subresource.is_some() {
            return Ok(Vec::new());
        }
        let causes = match (request.operation, request.old) {
            (Operation::Delete, _) => Vec::new(),
            (Operation::Update, Some(old)) if !may_become(old, volume) => vec![cause(
                CauseType::Duplicate,
                "DataVolume.Spec",
                "Cannot update DataVolume Spec",
            )],
            _ => faults(request, volume),
        };
        match causes.as_slice() {
            [] => Ok(unserved(request, volume)),
            causes => Err(importer_refusal(VALIDATOR, causes)),
        }
    }

    fn impact(&self, request: &Request<'_>, _: &Value) -> Option<Impact> {
        let (class, reason) = match request.operation {
            Operation::Delete => (
                impact::Impact::DataLoss,
                "the claim and what is on its disk are deleted with it",
            ),
            _ => (impact::Impact::None, ""),
        };
        Some(Impact {
            class: class.to_string(),
            reason: reason.to_owned(),
        })
    }
}

fn faults(request: &Request<'_>, volume: &Value) -> Vec<Cause> {
    if let Some(fault) = spec::name_length(name(volume), MAX_NAME) {
        return vec![fault];
    }
    if request.operation == Operation::Create
        && let Some(fault) = taken(request, volume)
    {
        return vec![fault];
    }
    spec::faults("spec", &volume["spec"]).into_iter().collect()
}

/// What a disk is filled with does not change, except that copies in stages go on to their next stage.
fn may_become(old: &Value, new: &Value) -> bool {
    let without_stages = |volume: &Value| {
        let mut spec = volume["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.shift_remove("checkpoints");
            fields.shift_remove("finalCheckpoint");
        }
        spec
    };
    let source = &new["spec"]["source"];
    let in_stages = new["spec"]["checkpoints"]
        .as_array()
        .is_some_and(|it| !it.is_empty())
        && (source["vddk"].is_object() || source["imageio"].is_object());
    match in_stages {
        true => same(&without_stages(old), &without_stages(new)),
        false => same(&old["spec"], &new["spec"]),
    }
}

/// A claim of the name that is none of a DataVolume's, and was not made to be one.
fn taken(request: &Request<'_>, volume: &Value) -> Option<Cause> {
    let claim = request
        .world
        .get(Place::Here, CLAIMS, request.namespace, name(volume))?;
    let annotations = |object: &Value, key: &str| object["metadata"]["annotations"][key].clone();
    let is_filled = annotations(&claim, "cdi.kubevirt.io/storage.populatedFor") == name(volume)
        || annotations(volume, "cdi.kubevirt.io/storage.prePopulated") == name(volume)
        || annotations(&claim, "cdi.kubevirt.io/allowClaimAdoption") == "true"
        || annotations(volume, "cdi.kubevirt.io/allowClaimAdoption") == "true";
    let owners = claim["metadata"]["ownerReferences"].as_array();
    let is_owned = owners
        .into_iter()
        .flatten()
        .any(|it| it["controller"] == true && it["kind"] == "DataVolume");
    (!is_filled && !is_owned).then(|| {
        let message = format!(
            "Destination PVC {}/{} already exists",
            request.namespace,
            name(volume)
        );
        cause(CauseType::Duplicate, "DataVolume.Name", message)
    })
}

/// What is accepted and not followed: sources that nothing here fills a disk from, and how and when it is filled.
fn unserved(request: &Request<'_>, volume: &Value) -> Vec<String> {
    if request.operation != Operation::Create {
        return Vec::new();
    }
    let source = &volume["spec"]["source"];
    let sources = ["s3", "gcs", "imageio", "vddk"];
    let mut warnings: Vec<String> = sources
        .iter()
        .filter(|it| source[**it].is_object())
        .map(|it| {
            format!("spec.source.{it}: disks cannot be filled from such a source; the DataVolume will fail")
        })
        .collect();
    if !text(source, "/registry/imageStream").is_empty() {
        warnings.push(
            "spec.source.registry.imageStream: there are no image streams here; the DataVolume will fail"
                .to_owned(),
        );
    }
    if text(source, "/registry/pullMethod") == "node" {
        warnings.push(
            "spec.source.registry.pullMethod: no effect: Fairway pulls the image itself, in the same way always"
                .to_owned(),
        );
    }
    if !text(volume, "/spec/priorityClassName").is_empty() {
        warnings.push("spec.priorityClassName: no effect: no pod fills the disk".to_owned());
    }
    if volume["spec"]["contentType"] == "archive" {
        warnings.push("spec.contentType: archives are not unpacked; the DataVolume will fail".to_owned());
    }
    warnings
}

/// A refusal of a request that makes no sense as things are.
fn failed(message: String) -> Refusal {
    Refusal::failed(MUTATOR, message)
}
