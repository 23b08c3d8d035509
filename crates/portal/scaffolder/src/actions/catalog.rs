//! `catalog:*`. The catalog keeps locations as objects, and answers what it knows through its API; this is all that is known of it.

use fairway_api::fairway::{REPOSITORY, VOYAGE_ANNOTATION};
use fairway_portal_entity::object;
use fairway_portal_entity::place::{LocationRef, target_problem};
use fairway_portal_template::files::File;
use fairway_portal_template::names::EntityRef;
use fairway_portal_template::run::Made;
use serde_json::{Value, json};

use super::objects::make;
use crate::drive::{Job, Mode, StepError};
use crate::entities;
use crate::who::collection;

const LOCATIONS: &str = "/apis/fairway.dev/v1alpha1/cataloglocations";
/// Somebody has registered a location that was found before.
const REGISTERED: &str = "fairway.dev/catalog-registered";

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
    if let Some(problem) = target_problem(&target) {
        return Err(StepError::Failed(format!(
            "{target} cannot be registered: {problem}"
        )));
    }
    let known = job.requests().get("/apis/fairway.dev/v1alpha1").await;
    if known.is_ok_and(|list| !serves_locations(list.as_ref())) {
        job.log("no catalog is served here; the file is found when there is one");
        return Ok(output);
    }
    match place(job, &target).await {
        Err(StepError::Failed(why)) if job.flag("optional") => {
            job.log(&format!("not registered: {why}"));
            Ok(output)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(output),
    }
}

/// What the object of a location is called: the same address is the same location, for the catalog itself, too.
fn name_of(target: &str) -> String {
    object::location_name(&LocationRef {
        kind: "url".to_owned(),
        target: target.to_owned(),
    })
}

/// Makes the location, unless the catalog has found the file by itself in a repository, which it does soon after a push.
async fn place(job: &mut Job<'_>, target: &str) -> Result<(), StepError> {
    let name = name_of(target);
    let path = format!("{LOCATIONS}/{name}");
    let title = format!("catalog entry {name}");
    if let Some(known) = job.requests().get(&path).await?
        && is_found(&known, target)
    {
        return adopt(job, &known, &path, &title).await;
    }
    let location = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogLocation", "metadata": {"name": name},
        "spec": {"type": "url", "target": target},
    });
    match make(job, LOCATIONS, location, &title).await {
        // It may have been found in this very moment.
        Err(StepError::Failed(why)) => match job.requests().get(&path).await? {
            Some(known) if is_found(&known, target) => adopt(job, &known, &path, &title).await,
            _ => Err(StepError::Failed(why)),
        },
        other => other,
    }
}

/// Whether a location is there because its file was found in a repository, and nobody has registered it.
fn is_found(location: &Value, target: &str) -> bool {
    let annotations = &location["metadata"]["annotations"];
    location["spec"]["target"] == target
        && location["spec"]["repository"].is_string()
        && annotations[REGISTERED] != "true"
        && annotations[VOYAGE_ANNOTATION].is_null()
}

/// Takes a location that was found. Of a repository that this run has made it is this run's, too; another one stays where it is when the run
/// is undone, since it was there before.
async fn adopt(job: &mut Job<'_>, known: &Value, path: &str, title: &str) -> Result<(), StepError> {
    let repository = known["spec"]["repository"].as_str().unwrap_or_default();
    let repository = format!("{}/{repository}", collection(REPOSITORY, ""));
    let mut made = job.voyage.run.steps.iter().flat_map(|step| &step.made);
    let is_own = made.any(|thing| thing.reference["path"] == repository);
    if job.mode != Mode::Real || !is_own {
        job.log(&format!("{title} is there already"));
        return Ok(());
    }
    job.will_make(Made {
        kind: "object".to_owned(),
        reference: json!({"path": path}),
        title: title.to_owned(),
        ..Made::default()
    })
    .await?;
    let marks = json!({"metadata": {"annotations": {
        VOYAGE_ANNOTATION: job.voyage.uid, REGISTERED: "true",
    }}});
    job.requests().merge(path, &marks).await?;
    job.log(&format!("made {title}"));
    Ok(())
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
    fn locations_of_one_repository_are_told_apart() {
        let names = [
            "https://git.fairway.localhost:7443/acme/web/src/branch/main/catalog-info.yaml",
            "https://git.fairway.localhost:7443/acme/web/src/branch/main/docs/catalog-info.yaml",
            "https://git.fairway.localhost:7443/acme/web/src/branch/next/catalog-info.yaml",
            "https://elsewhere.example/acme/web/src/branch/main/catalog-info.yaml",
        ]
        .map(name_of);
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
        assert!(
            names[0].starts_with("acme-web-main-catalog-info-"),
            "{}",
            names[0]
        );
    }

    #[test]
    fn what_the_catalog_found_by_itself_is_nobodys_yet() {
        let location = |annotations: Value| json!({"metadata": {"annotations": annotations}, "spec": {"target": "t", "repository": "web"}});
        assert!(is_found(&location(Value::Null), "t"));
        assert!(!is_found(&location(Value::Null), "other"));
        assert!(!is_found(&location(json!({REGISTERED: "true"})), "t"));
        assert!(!is_found(&location(json!({VOYAGE_ANNOTATION: "u-1"})), "t"));
        assert!(!is_found(&json!({"metadata": {}, "spec": {"target": "t"}}), "t"));
    }

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
