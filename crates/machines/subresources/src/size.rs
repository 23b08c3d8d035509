//! The size and the taste that a machine names, to be written out.

use fairway_machines_plan::view::{self, InstancetypeSpec, PreferenceSpec};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::objects::Objects;
use crate::refusal::Refusal;

/// Sizes, or tastes.
struct Family {
    field: &'static str,
    reference: &'static str,
    /// Resources of a namespace and of everybody; a machine may name them by these words or by their kinds.
    own: &'static str,
    shared: &'static str,
    matcher: &'static str,
}

const SIZES: Family = Family {
    field: "instancetype",
    reference: "instancetypeRef",
    own: "virtualmachineinstancetypes",
    shared: "virtualmachineclusterinstancetypes",
    matcher: "InstancetypeMatcher",
};
const TASTES: Family = Family {
    field: "preference",
    reference: "preferenceRef",
    own: "virtualmachinepreferences",
    shared: "virtualmachineclusterpreferences",
    matcher: "PreferenceMatcher",
};

/// The label by which a copy says of what it is one.
const OBJECT_NAME: &str = "instancetype.kubevirt.io/object-name";

/// What a machine names.
pub(crate) async fn of(
    objects: &Objects,
    vm: &Value,
) -> Result<(Option<InstancetypeSpec>, Option<PreferenceSpec>), Refusal> {
    Ok((
        find(objects, vm, &SIZES, "VirtualMachineInstancetype").await?,
        find(objects, vm, &TASTES, "VirtualMachinePreference").await?,
    ))
}

async fn find<T: DeserializeOwned>(
    objects: &Objects,
    vm: &Value,
    family: &Family,
    kind: &'static str,
) -> Result<Option<T>, Refusal> {
    let named = &vm["spec"][family.field];
    if !named.is_object() {
        return Ok(None);
    }
    let found = match copy(objects, vm, family).await? {
        Some(copy) => copy["data"]["spec"].clone(),
        None => original(objects, vm, family).await?["spec"].clone(),
    };
    view::read(kind, &found)
        .map(Some)
        .map_err(|error| Refusal::internal(&error.to_string()))
}

/// What the size said when the machine first used it. What the machine names itself counts before what its status says.
async fn copy(objects: &Objects, vm: &Value, family: &Family) -> Result<Option<Value>, Refusal> {
    let named = &vm["spec"][family.field];
    let recorded = &vm["status"][family.reference]["controllerRevisionRef"]["name"];
    let text = |value: &Value| value.as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let (name, is_named) = match (text(&named["revisionName"]), text(recorded)) {
        (Some(name), _) => (name, true),
        (None, Some(name)) => (name, false),
        (None, None) => return Ok(None),
    };
    let namespace = vm["metadata"]["namespace"].as_str().unwrap_or_default();
    let path = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions/{name}");
    let found = objects
        .other(&path)
        .await?
        .ok_or_else(|| missing("controllerrevisions.apps", &name))?;
    let is_of_it = found["metadata"]["labels"][OBJECT_NAME] == named["name"];
    Ok(Some(found).filter(|_| is_named || is_of_it))
}

async fn original(objects: &Objects, vm: &Value, family: &Family) -> Result<Value, Refusal> {
    let named = &vm["spec"][family.field];
    let word = named["kind"].as_str().unwrap_or_default().to_lowercase();
    let name = named["name"].as_str().unwrap_or_default();
    let is = |plural: &str| word == plural || plural.strip_suffix('s') == Some(&word);
    let root = "/apis/instancetype.kubevirt.io/v1beta1";
    let (resource, path) = if word.is_empty() || is(family.shared) {
        (family.shared, format!("{root}/{}/{name}", family.shared))
    } else if is(family.own) {
        let namespace = vm["metadata"]["namespace"].as_str().unwrap_or_default();
        (
            family.own,
            format!("{root}/namespaces/{namespace}/{}/{name}", family.own),
        )
    } else {
        let why = format!("got unexpected kind in {}: {word}", family.matcher);
        return Err(Refusal::internal(&why));
    };
    let found = objects.other(&path).await?;
    found.ok_or_else(|| missing(&format!("{resource}.instancetype.kubevirt.io"), name))
}

fn missing(resource: &str, name: &str) -> Refusal {
    Refusal::internal(&format!("{resource} {name:?} not found"))
}
