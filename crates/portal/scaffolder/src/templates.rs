//! Finding Templates: objects of the workspace, entities that the catalog found in Git, and those that are part of the program.

use fairway_api::backstage::TEMPLATE;
use fairway_controller::Requests;
use fairway_portal_template::names::EntityRef;
use serde_json::Value;

use crate::builtin::{Builtin, to_entity};
use crate::who::{collection, is_name};

/// Where the catalog keeps entities.
const ENTITIES: &str = "/apis/fairway.dev/v1alpha1/catalogentities";

/// A Template by its reference, as Backstage writes it.
pub async fn find(requests: &Requests, builtins: &[Builtin], reference: &str) -> Result<Value, String> {
    let entity = EntityRef::parse(reference, Some("template"), None)?.folded();
    let missing = || {
        format!("there is no {entity}, or you may not read it; `fairway template list` shows which there are")
    };
    if entity.kind != "template" || !is_name(&entity.namespace) || !is_name(&entity.name) {
        return Err(format!(
            "{reference:?} is not a reference to a template, such as template:default/virtual-machine"
        ));
    }
    let path = format!("{}/{}", collection(TEMPLATE, &entity.namespace), entity.name);
    let mut forbidden = None;
    match requests.get(&path).await {
        Ok(Some(object)) => return Ok(to_entity(&object)),
        Ok(None) => {}
        Err(failure) => forbidden = Some(failure.sentence()),
    }
    let path = format!(
        "{ENTITIES}/template.{}.{}",
        entity.namespace,
        entity.name.to_lowercase()
    );
    if let Ok(Some(found)) = requests.get(&path).await
        && found["spec"]["entity"].is_object()
    {
        return Ok(found["spec"]["entity"].clone());
    }
    // What is part of the program is there for everybody.
    let builtin = builtins
        .iter()
        .find(|builtin| builtin.name == entity.name && entity.namespace == "default");
    match builtin.and_then(Builtin::template) {
        Some(template) => Ok(template),
        None => Err(forbidden.unwrap_or_else(missing)),
    }
}

/// All Templates that somebody may see, by reference.
pub async fn list(requests: &Requests, builtins: &[Builtin]) -> Result<Vec<Value>, String> {
    let mut found: Vec<Value> = builtins.iter().filter_map(Builtin::template).collect();
    let mut add = |entity: Value| {
        let name = |entity: &Value| {
            let namespace = entity["metadata"]["namespace"]
                .as_str()
                .unwrap_or("default")
                .to_owned();
            (
                namespace,
                entity["metadata"]["name"].as_str().unwrap_or("").to_owned(),
            )
        };
        match found.iter_mut().find(|known| name(known) == name(&entity)) {
            Some(known) => *known = entity,
            None => found.push(entity),
        }
    };
    // Names begin with the kind; the catalog gives no label of it.
    for object in requests.list(ENTITIES).await.unwrap_or_default() {
        let is_template = object["metadata"]["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("template."));
        if is_template {
            add(object["spec"]["entity"].clone());
        }
    }
    let path = collection(TEMPLATE, "");
    match requests.list(&path).await {
        Ok(objects) => objects.iter().map(to_entity).for_each(add),
        // Whoever may not list them all still has the built-in ones.
        Err(failure) if failure.sentence().contains("forbidden") => {}
        Err(failure) => return Err(failure.sentence()),
    }
    found.sort_by_key(|entity| entity["metadata"]["name"].as_str().unwrap_or("").to_owned());
    Ok(found)
}
