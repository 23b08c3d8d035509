//! `catalog:*`. The catalog keeps locations as objects, and answers what it knows through its API; this is all that is known of it.

use fairway_portal_template::files::File;
use fairway_portal_template::names::EntityRef;
use serde_json::{Value, json};

use super::objects::make;
use crate::drive::{Job, Mode, StepError};
use crate::entities;
use crate::who::is_name;

const LOCATIONS: &str = "/apis/fairway.dev/v1alpha1/cataloglocations";

pub(super) async fn register(job: &mut Job<'_>) -> Result<Value, StepError> {
    let target = match (job.text("catalogInfoUrl"), job.text("repoContentsUrl")) {
        (Some(url), _) => url.to_owned(),
        (None, Some(contents)) => {
            let path = job.text("catalogInfoPath").unwrap_or("/catalog-info.yaml");
            format!(
                "{}/{}",
                contents.trim_end_matches('/'),
                path.trim_start_matches('/')
            )
        }
        (None, None) => {
            return Err(StepError::failed(
                "catalog:register needs input.catalogInfoUrl or input.repoContentsUrl",
            ));
        }
    };
    let mut output = json!({"catalogInfoUrl": target});
    // The catalog reads the file later; what it will find is in the working tree, if this run has written it.
    if let Some(entity) = described(job, &target) {
        output["entityRef"] = entity.into();
    }
    // Named after what it leads to: OWNER/REPO of an address of the Git host.
    let forge = format!("{}/", job.world.options.forge.url());
    let name = target
        .strip_prefix(&forge)
        .and_then(|rest| rest.split('/').nth(1))
        .unwrap_or(&job.voyage.name);
    let name = name.to_owned();
    if !is_name(&name) {
        return Err(StepError::Failed(format!(
            "{target} cannot be registered: {name:?} cannot be a name"
        )));
    }
    let known = job.requests().get("/apis/fairway.dev/v1alpha1").await;
    if known.is_ok_and(|list| !serves_locations(list.as_ref())) {
        job.log("no catalog is served here; the file is found when there is one");
        return Ok(output);
    }
    let object = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogLocation", "metadata": {"name": name},
        "spec": {"type": "url", "target": target},
    });
    match make(job, LOCATIONS, object, &format!("catalog entry {name}")).await {
        Err(StepError::Failed(why)) if job.flag("optional") => {
            job.log(&format!("not registered: {why}"));
            Ok(output)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(output),
    }
}

/// The entity that a registered file describes, as far as the working tree knows it: the first Component, else the first of all. Of a file
/// of another host it knows nothing.
fn described(job: &Job<'_>, target: &str) -> Option<String> {
    let forge = format!("{}/", job.world.options.forge.url());
    // OWNER/REPO/src/branch/BRANCH/PATH
    let inside = target.strip_prefix(&forge)?.splitn(6, '/').nth(5);
    let path = job.text("catalogInfoPath").or(inside);
    let path = path.unwrap_or("catalog-info.yaml").trim_start_matches('/');
    // What was published may have been a part of the tree.
    let below = format!("/{path}");
    let mut parts = job.files.iter().filter(|(known, _)| known.ends_with(&below));
    let file = match (job.files.get(path), parts.next(), parts.next()) {
        (Some(file), ..) => file,
        (None, Some((_, only)), None) => only,
        _ => return None,
    };
    entity_of(file.text()?)
}

fn entity_of(text: &str) -> Option<String> {
    let found = fairway_text_yaml::documents(text, fairway_text_yaml::Limits::default()).ok()?;
    let first = found
        .iter()
        .find(|entity| entity["kind"] == "Component")
        .or(found.first())?;
    let namespace = first["metadata"]["namespace"].as_str();
    let text = format!(
        "{}:{}",
        first["kind"].as_str()?,
        first["metadata"]["name"].as_str()?
    );
    EntityRef::parse(&text, None, namespace)
        .ok()
        .map(|entity| entity.to_string())
}

fn serves_locations(list: Option<&Value>) -> bool {
    let resources = list.and_then(|list| list["resources"].as_array());
    resources.is_some_and(|all| all.iter().any(|resource| resource["name"] == "cataloglocations"))
}

pub(super) fn write(job: &mut Job<'_>) -> Result<Value, StepError> {
    let path = job.text("filePath").unwrap_or("catalog-info.yaml").to_owned();
    let entity = job.input.get("entity").cloned().unwrap_or_default();
    if !entity.is_object() {
        return Err(StepError::failed("input.entity is not an entity"));
    }
    let text = fairway_text_yaml::to_string(&entity);
    job.files
        .write(&path, File::new(text.into_bytes()))
        .map_err(|error| error.to_string())?;
    Ok(json!({}))
}

pub(super) async fn fetch(job: &mut Job<'_>) -> Result<Value, StepError> {
    let (kind, namespace) = (
        job.text("defaultKind").map(str::to_owned),
        job.text("defaultNamespace").map(str::to_owned),
    );
    let single = job.text("entityRef").map(str::to_owned);
    let references = match &single {
        Some(one) => vec![one.clone()],
        None => job.texts("entityRefs"),
    };
    if references.is_empty() {
        return Err(StepError::failed(
            "catalog:fetch needs input.entityRef or input.entityRefs",
        ));
    }
    let mut found = Vec::new();
    for reference in references {
        let entity = EntityRef::parse(&reference, kind.as_deref(), namespace.as_deref())?;
        match entities::find(job.world, &job.voyage.workspace, job.person, &entity).await {
            Ok(Some(known)) => found.push(known),
            _ if job.flag("optional") || job.mode == Mode::Dry => found.push(Value::Null),
            Ok(None) => {
                return Err(StepError::Failed(format!(
                    "there is no entity {entity} in the catalog"
                )));
            }
            Err(why) => return Err(StepError::Failed(why)),
        }
    }
    Ok(match single {
        Some(_) => json!({"entity": found.first()}),
        None => json!({"entities": found}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_file_is_known_by_what_it_describes() {
        for (text, expected) in [
            (
                "kind: Component\nmetadata: {name: Web}",
                Some("component:default/web"),
            ),
            (
                "kind: API\nmetadata: {name: a}\n---\nkind: Component\nmetadata: {name: web, namespace: team}",
                Some("component:team/web"),
            ),
            ("kind: System\nmetadata: {name: all}", Some("system:default/all")),
            ("kind: Component", None),
            ("", None),
            ("a: [", None),
        ] {
            assert_eq!(entity_of(text).as_deref(), expected, "{text}");
        }
    }
}
