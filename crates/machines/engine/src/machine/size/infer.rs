//! What the volume of a machine says about machines that start from it.

use fairway_api::kubevirt::{DATA_SOURCE, DATA_VOLUME};
use fairway_controller::Failure;
use serde_json::{Value, json};

use super::{Family, Library, SizeError};
use crate::objects::{IMAGES, claim, items, path, read, text};

/// Why nothing was found out.
enum Unknown {
    /// The volume does not say, which a machine may be content with.
    Unsaid(String),
    /// It cannot be found out.
    Wrong(String),
    Api(Failure),
}

impl From<Failure> for Unknown {
    fn from(failure: Failure) -> Self {
        Self::Api(failure)
    }
}

/// A name and the word for its kind.
type Found = (String, String);

/// What a volume says; nothing if it does not, and the machine is content with that.
pub(super) async fn from_volume(
    family: &Family,
    vm: &mut Value,
    volume: &str,
    library: Library<'_>,
) -> Result<Option<Found>, SizeError> {
    let content = vm["spec"][family.field]["inferFromVolumeFailurePolicy"] == "Ignore";
    match search(family, vm, volume, library).await {
        Ok(found) => {
            // A size that was found says what the machine would say otherwise.
            if content && family.field == "instancetype" {
                vm["spec"]["template"]["spec"]["domain"]["memory"] = Value::Null;
            }
            Ok(Some(found))
        }
        Err(Unknown::Unsaid(_)) if content => Ok(None),
        Err(Unknown::Unsaid(why) | Unknown::Wrong(why)) => Err(SizeError::Wrong(why)),
        Err(Unknown::Api(failure)) => Err(failure.into()),
    }
}

async fn search(family: &Family, vm: &Value, name: &str, library: Library<'_>) -> Result<Found, Unknown> {
    let namespace = text(vm, "/metadata/namespace");
    let mut volumes = items(vm, "/spec/template/spec/volumes");
    let Some(volume) = volumes.find(|it| it["name"] == name) else {
        return Err(Unknown::Wrong(format!(
            "unable to find volume {name} to infer defaults"
        )));
    };
    if volume["persistentVolumeClaim"].is_object() {
        let claim = text(volume, "/persistentVolumeClaim/claimName");
        return of_claim(family, namespace, claim, library).await;
    }
    if volume["dataVolume"].is_object() {
        return of_data_volume(family, vm, text(volume, "/dataVolume/name"), library).await;
    }
    let why = format!("unable to infer defaults from volume {name} as type is not supported");
    Err(Unknown::Unsaid(why))
}

fn of_labels(family: &Family, object: &Value) -> Result<Found, Unknown> {
    let labels = &object["metadata"]["labels"];
    let Some(name) = labels[family.name_label].as_str() else {
        return Err(Unknown::Unsaid(format!(
            "unable to find required {} label on the volume",
            family.name_label
        )));
    };
    let kind = labels[family.kind_label].as_str().unwrap_or_default();
    Ok((name.to_owned(), kind.to_owned()))
}

async fn of_claim(
    family: &Family,
    namespace: &str,
    name: &str,
    library: Library<'_>,
) -> Result<Found, Unknown> {
    match read(library.requests, &claim(namespace, name)).await? {
        Some(claim) => of_labels(family, &claim),
        None => Err(Unknown::Wrong(format!(
            "persistentvolumeclaims \"{name}\" not found"
        ))),
    }
}

async fn of_data_volume(
    family: &Family,
    vm: &Value,
    name: &str,
    library: Library<'_>,
) -> Result<Found, Unknown> {
    let namespace = text(vm, "/metadata/namespace");
    if let Some(template) = super::super::disks::template(vm, name) {
        return of_source(family, &template["spec"], namespace, library).await;
    }
    let Some(data_volume) = read(library.requests, &path(&DATA_VOLUME, namespace, name)).await? else {
        return of_claim(family, namespace, name, library).await;
    };
    match of_labels(family, &data_volume) {
        Ok(found) => Ok(found),
        Err(_) => of_source(family, &data_volume["spec"], namespace, library).await,
    }
}

/// What the source of a DataVolume says.
async fn of_source(
    family: &Family,
    spec: &Value,
    namespace: &str,
    library: Library<'_>,
) -> Result<Found, Unknown> {
    let near = json!(namespace);
    let there = |it: &Value| -> String {
        let named = it["namespace"].as_str().filter(|it| !it.is_empty());
        named.or(near.as_str()).unwrap_or_default().to_owned()
    };
    let claim = &spec["source"]["pvc"];
    if claim.is_object() {
        return of_claim(family, &there(claim), text(claim, "/name"), library).await;
    }
    let source = &spec["sourceRef"];
    if !source.is_object() {
        let why = "unable to infer defaults from DataVolumeSpec as DataVolumeSource is not supported";
        return Err(Unknown::Unsaid(why.to_owned()));
    }
    if source["kind"] != "DataSource" {
        return Err(Unknown::Unsaid(format!(
            "unable to infer defaults from DataVolumeSourceRef as Kind {} is not supported",
            text(source, "/kind")
        )));
    }
    let (namespace, name) = (there(source), text(source, "/name"));
    let place = path(&DATA_SOURCE, &namespace, name);
    let mut found = read(library.requests, &place).await?;
    if found.is_none() && namespace == IMAGES {
        found = read(library.root, &place).await?;
    }
    let Some(found) = found else {
        return Err(Unknown::Wrong(format!(
            "datasources.cdi.kubevirt.io \"{name}\" not found"
        )));
    };
    if let Ok(labels) = of_labels(family, &found) {
        return Ok(labels);
    }
    let claim = &found["spec"]["source"]["pvc"];
    if claim.is_object() {
        return of_claim(family, &there(claim), text(claim, "/name"), library).await;
    }
    let why = "unable to infer defaults from DataSource that doesn't provide DataVolumeSourcePVC";
    Err(Unknown::Unsaid(why.to_owned()))
}
