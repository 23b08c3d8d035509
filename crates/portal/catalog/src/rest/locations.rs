//! Locations: registering an address, forgetting it, reading it again.

use fairway_controller::{Failure, Requests};
use fairway_portal_entity::place::{Hosted, LocationRef, target_problem};
use fairway_portal_entity::{EntityRef, object, validate};
use http::StatusCode;
use serde_json::{Value, json};

use super::asked::Asked;
use super::entities::{RESOURCE as ENTITIES, reference, visible};
use super::{Answer, Call, Refusal};
use crate::kinds;
use crate::read::{self, Reading};
use crate::reconcile::location_of;

const RESOURCE: &str = "cataloglocations";

#[expect(
    clippy::needless_pass_by_value,
    reason = "it stands where errors are handed on"
)]
fn refused(failure: Failure) -> Refusal {
    Refusal::of(&failure)
}

/// A location as Backstage shows it, and what Fairway knows of it.
fn shown(object: &Value) -> Value {
    let location = location_of(object);
    json!({
        "id": object["metadata"]["uid"],
        "type": location.kind,
        "target": location.target,
        "entityRef": stands_for(&location),
        "status": {
            "ready": fairway_controller::conditions::holds(object, "Ready"),
            "entities": object["status"]["entities"],
            "errors": object["status"]["errors"],
            "repository": object["spec"]["repository"],
        },
    })
}

/// The reference of the entity that stands for a location.
fn stands_for(location: &LocationRef) -> Option<String> {
    EntityRef::of(&object::location_entity(location)).map(|reference| reference.to_string())
}

async fn all(call: &Call) -> Result<Vec<Value>, Refusal> {
    let requests = Requests::new(call.client.clone());
    requests.list(kinds::LOCATIONS).await.map_err(refused)
}

/// `GET /locations`.
pub(super) async fn list(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let found = all(call).await?;
    let found: Vec<Value> = found
        .iter()
        .map(|object| json!({"data": shown(object)}))
        .collect();
    Ok(Answer::ok(&found.into()))
}

/// `POST /locations/by-query`.
pub(super) async fn by_query(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let asked = Asked::read(&call.body)?;
    let found: Vec<Value> = all(call).await?.iter().map(shown).collect();
    Ok(Answer::ok(&asked.page(found)))
}

/// A location that the caller may see, by its UID.
async fn find(call: &Call, id: &str) -> Result<Value, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let found = all(call)
        .await?
        .into_iter()
        .find(|object| object["metadata"]["uid"] == id);
    found.ok_or_else(|| Refusal::not_found(format!("Found no location with ID {id}")))
}

/// `GET /locations/:id`.
pub(super) async fn by_id(call: &Call, id: &str) -> Result<Answer, Refusal> {
    Ok(Answer::ok(&shown(&find(call, id).await?)))
}

/// The name of the location that an entity belongs to.
fn location_name(call: &Call, reference: &EntityRef) -> Result<String, Refusal> {
    let wanted = reference.to_string();
    let found = call.catalog.known.ask(&call.workspace, |index| {
        index.get(&wanted).map(|found| found.location().to_owned())
    });
    found
        .filter(|name| !name.is_empty())
        .ok_or_else(|| Refusal::not_found(format!("found no location for {wanted}")))
}

/// `GET /locations/by-entity/:kind/:namespace/:name`.
pub(super) async fn by_entity(
    call: &Call,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Answer, Refusal> {
    let reference = reference(kind, namespace, name);
    visible(call, &reference).await?;
    let found = location_name(call, &reference)?;
    call.allowed("get", RESOURCE, Some(&found)).await?;
    let requests = Requests::new(call.client.clone());
    let object = requests.get(&kinds::location(&found)).await.map_err(refused)?;
    let object = object.ok_or_else(|| Refusal::not_found(format!("found no location for {reference}")))?;
    Ok(Answer::ok(&shown(&object)))
}

/// The location in the body of a request.
fn asked(body: &Value) -> Result<LocationRef, Refusal> {
    let kind = match &body["type"] {
        Value::Null => "url",
        Value::String(kind) => kind,
        _ => return Err(Refusal::input("Malformed request: type must be a string")),
    };
    let Some(target) = body["target"].as_str() else {
        return Err(Refusal::input("Malformed request: target must be a string"));
    };
    if kind != "url" {
        return Err(Refusal::input(format!(
            "Registered locations must be of an allowed type, one of url, not {kind}"
        )));
    }
    if let Some(problem) = target_problem(target) {
        return Err(Refusal::input(format!("Malformed request: {problem}")));
    }
    Ok(LocationRef {
        kind: kind.to_owned(),
        target: target.to_owned(),
    })
}

async fn look(call: &Call, location: &LocationRef) -> Result<Reading, Refusal> {
    let options = &call.catalog.options;
    Ok(read::read(&*options.files, &options.outbound, &call.workspace, location).await)
}

/// `POST /locations`. It is read before it is answered; what is there is in the answer.
pub(super) async fn register(call: &Call) -> Result<Answer, Refusal> {
    let location = asked(&call.body)?;
    call.allowed("create", RESOURCE, None).await?;
    let refreshes = match call.one("onConflict") {
        None | Some("reject") => false,
        Some("refresh") => {
            call.allowed("update", RESOURCE, None).await?;
            true
        }
        Some(other) => {
            return Err(Refusal::input(format!(
                "Invalid onConflict, reject or refresh, not {other:?}"
            )));
        }
    };
    let dry_run = matches!(call.one("dryRun"), Some("true" | "1" | "yes" | "y" | "on"));
    let requests = Requests::new(call.client.clone());
    let known = all(call).await?;
    let exists = known.iter().find(|object| location_of(object) == location);
    let is_registered = exists.is_some_and(|object| {
        object["spec"]["repository"].is_null()
            || object["metadata"]["annotations"][kinds::REGISTERED] == "true"
    });
    let reading = look(call, &location).await?;
    if dry_run {
        if reading.wanted.len() <= 1
            && let Some(error) = reading.errors.first()
        {
            return Err(Refusal::input(error.clone()));
        }
        let shown = json!({
            "id": "", "type": location.kind, "target": location.target, "entityRef": stands_for(&location),
        });
        return Ok(Answer::created(&json!({
            "location": shown, "entities": entities(&reading), "exists": exists.is_some(), "errors": reading.errors,
        })));
    }
    if let Some(object) = exists.filter(|_| is_registered) {
        if !refreshes {
            return Err(Refusal::conflict(format!("Location {location} already exists")));
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        wish_again(&requests, name).await?;
        return Ok(Answer::created(&json!({
            "location": shown(object), "entities": entities(&reading), "exists": true, "errors": reading.errors,
        })));
    }
    let object = match exists {
        // It was found in its repository before: it stays, whatever becomes of the file.
        Some(object) => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let patch = json!({"metadata": {"annotations": {kinds::REGISTERED: "true"}}});
            let changed = requests
                .merge(&kinds::location(name), &patch)
                .await
                .map_err(refused)?;
            changed.ok_or_else(|| Refusal::conflict(format!("Location {location} went meanwhile")))?
        }
        None => {
            let object = json!({
                "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogLocation",
                "metadata": {
                    "name": free_name(&location, &known),
                    "annotations": {"fairway.dev/registered-by": call.user.username.as_deref().unwrap_or_default()},
                },
                "spec": {"type": location.kind, "target": location.target},
            });
            requests.post(kinds::LOCATIONS, &object).await.map_err(refused)?
        }
    };
    Ok(Answer::created(&json!({
        "location": shown(&object), "entities": entities(&reading), "errors": reading.errors,
    })))
}

/// The name of a new location: that of its address. Another location has it by now if it was registered for this one, and then got
/// another address.
fn free_name(location: &LocationRef, known: &[Value]) -> String {
    let name = object::location_name(location);
    let is_taken = |name: &str| known.iter().any(|object| object["metadata"]["name"] == name);
    let others = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone())
        .chain(others)
        .find(|name| !is_taken(name))
        .unwrap_or(name)
}

/// `PUT /locations/:id`: the same location, somewhere else.
pub(super) async fn update(call: &Call, id: &str) -> Result<Answer, Refusal> {
    let object = find(call, id).await?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    call.allowed("update", RESOURCE, Some(name)).await?;
    let location = asked(&call.body)?;
    if let Some(repository) = object["spec"]["repository"].as_str() {
        return Err(Refusal::not_allowed(format!(
            "the location was found in the repository {repository}, and is where its catalog-info.yaml is; register the other \
             address as well"
        )));
    }
    let has_address = |other: &Value| other["metadata"]["uid"] != id && location_of(other) == location;
    if all(call).await?.iter().any(has_address) {
        return Err(Refusal::conflict(format!("Location {location} already exists")));
    }
    let patch = json!({
        "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]},
        "spec": {"type": location.kind, "target": location.target},
    });
    let requests = Requests::new(call.client.clone());
    let changed = requests
        .merge(&kinds::location(name), &patch)
        .await
        .map_err(refused)?;
    let changed = changed.ok_or_else(|| Refusal::not_found(format!("Found no location with ID {id}")))?;
    Ok(Answer::ok(&shown(&changed)))
}

/// The entities that were read, without the one that stands for the location.
fn entities(reading: &Reading) -> Vec<&Value> {
    reading
        .wanted
        .iter()
        .skip(1)
        .map(|wanted| &wanted.entity)
        .collect()
}

/// `DELETE /locations/:id`. Entities go with their location.
pub(super) async fn unregister(call: &Call, id: &str) -> Result<Answer, Refusal> {
    let object = find(call, id).await?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    call.allowed("delete", RESOURCE, Some(name)).await?;
    let requests = Requests::new(call.client.clone());
    let path = kinds::location(name);
    if let Some(repository) = object["spec"]["repository"].as_str() {
        let is_registered = object["metadata"]["annotations"][kinds::REGISTERED] == "true";
        if !is_registered {
            return Err(Refusal::not_allowed(format!(
                "the location was found in the repository {repository}: remove its catalog-info.yaml, or annotate the Repository \
                 with {}=ignore",
                kinds::DISCOVERY
            )));
        }
        let patch = json!({"metadata": {"annotations": {kinds::REGISTERED: null}}});
        requests.merge(&path, &patch).await.map_err(refused)?;
        return Ok(Answer::empty(StatusCode::NO_CONTENT));
    }
    requests.delete_read(&path, &object).await.map_err(refused)?;
    Ok(Answer::empty(StatusCode::NO_CONTENT))
}

/// `POST /refresh`.
pub(super) async fn refresh(call: &Call) -> Result<Answer, Refusal> {
    let Some(text) = call.body["entityRef"].as_str() else {
        return Err(Refusal::input("Malformed request: entityRef must be a string"));
    };
    let reference = EntityRef::parse(text, None, None)?;
    visible(call, &reference).await?;
    let entity = object::entity_name(&reference);
    call.allowed("update", ENTITIES, Some(&entity)).await?;
    let name = location_name(call, &reference)?;
    wish_again(&Requests::new(call.client.clone()), &name).await?;
    Ok(Answer::empty(StatusCode::OK))
}

/// Has a location read again.
async fn wish_again(requests: &Requests, name: &str) -> Result<(), Refusal> {
    let now = jiff::Timestamp::now().to_string();
    let patch = json!({"metadata": {"annotations": {kinds::REFRESH: now}}});
    let changed = requests.merge(&kinds::location(name), &patch).await;
    changed.map(drop).map_err(refused)
}

/// `POST /analyze-location`: what is at an address, and what could be written there.
pub(super) async fn analyze(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("create", RESOURCE, None).await?;
    let location = asked(&call.body["location"])?;
    let known = all(call).await?;
    let reading = look(call, &location).await?;
    let is_registered = known.iter().any(|object| location_of(object) == location);
    let existing = reading.wanted.iter().skip(1).map(|wanted| {
        json!({
            "location": {"type": wanted.file.kind, "target": wanted.file.target},
            "isRegistered": is_registered,
            "entity": wanted.entity,
        })
    });
    let existing: Vec<Value> = existing.collect();
    let mut proposed = Vec::new();
    if existing.is_empty()
        && let Some(Ok(hosted)) = Hosted::parse(call.catalog.options.files.host(), &location.target)
    {
        let entity = json!({
            "apiVersion": "backstage.io/v1alpha1", "kind": "Component", "metadata": {"name": hosted.repository},
            "spec": {"type": "other", "lifecycle": "unknown", "owner": "unknown"},
        });
        if validate::validate(&entity).is_ok() {
            proposed.push(json!({"entity": entity, "fields": []}));
        }
    }
    Ok(Answer::ok(
        &json!({"existingEntityFiles": existing, "generateEntities": proposed}),
    ))
}
