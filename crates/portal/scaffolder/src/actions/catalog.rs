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
    let output = json!({"catalogInfoUrl": target});
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
