//! `kubernetes:apply`, `crossplane:create`, and how every object is made that a run makes: written down first, marked, and found again.

use fairway_api::fairway::{VOYAGE, VOYAGE_ANNOTATION};
use fairway_portal_template::change;
use fairway_portal_template::run::Made;
use serde_json::{Value, json};

use crate::discovery::Discovery;
use crate::drive::{Job, Mode, StepError};
use crate::who::is_name;

/// In whose name fields are applied.
const MANAGER: &str = "fairway-scaffolder";
/// The largest change that is kept to be changed back, as JSON.
const KEPT: usize = 32 << 10;
/// The most objects of one step.
const MOST: usize = 200;

/// Creates an object in a collection, unless this run has made it already. One of somebody else is an error.
pub(super) async fn make(
    job: &mut Job<'_>,
    collection: &str,
    mut object: Value,
    title: &str,
) -> Result<(), StepError> {
    let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let path = format!("{collection}/{name}");
    object["metadata"]["annotations"][VOYAGE_ANNOTATION] = job.voyage.uid.as_str().into();
    let requests = job.requests();
    let exists = || StepError::Failed(format!("{title} exists already; choose another name"));
    match requests.get(&path).await? {
        Some(known) if known["metadata"]["annotations"][VOYAGE_ANNOTATION] == job.voyage.uid.as_str() => {
            return Ok(());
        }
        Some(_) => return Err(exists()),
        None => {}
    }
    if job.mode == Mode::Dry {
        let presumed = job.presumed(&object);
        let judged = requests
            .post(&format!("{collection}?dryRun=All{presumed}"), &object)
            .await;
        job.foresee(&object, &judged);
        return judged.map(drop).map_err(StepError::from);
    }
    job.will_make(Made {
        kind: "object".to_owned(),
        reference: json!({"path": path}),
        title: title.to_owned(),
        ..Made::default()
    })
    .await?;
    match requests.create(collection, &object).await? {
        true => {
            job.log(&format!("made {title}"));
            Ok(())
        }
        false => Err(exists()),
    }
}

/// The objects that an input has in itself, if it is one of `kubernetes:apply`.
pub(crate) fn written(input: &Value) -> Vec<Value> {
    let manifest = input.get("manifest").or_else(|| input.get("manifestString"));
    match manifest
        .or_else(|| input.get("manifestObject"))
        .or_else(|| input.get("object"))
    {
        Some(Value::String(text)) => {
            fairway_text_yaml::documents(text, fairway_text_yaml::Limits::default()).unwrap_or_default()
        }
        Some(Value::Array(objects)) => objects.clone(),
        Some(object @ Value::Object(_)) => vec![object.clone()],
        _ => Vec::new(),
    }
}

/// The objects of the input: text, a file of the working tree, or objects as they are.
fn given(job: &Job<'_>) -> Result<Vec<Value>, StepError> {
    let read = |text: &str| {
        fairway_text_yaml::documents(text, fairway_text_yaml::Limits::default())
            .map_err(|error| StepError::Failed(format!("the manifest cannot be read: {error}")))
    };
    let found = match job
        .input
        .get("manifest")
        .or_else(|| job.input.get("manifestString"))
    {
        Some(Value::String(text)) => read(text)?,
        Some(Value::Array(objects)) => objects.clone(),
        Some(object @ Value::Object(_)) => vec![object.clone()],
        _ => match (
            job.input
                .get("manifestObject")
                .or_else(|| job.input.get("object")),
            job.text("manifestPath"),
        ) {
            (Some(object), _) => vec![object.clone()],
            (None, Some(path)) => {
                let file = job.files.get(path).and_then(|file| file.text());
                read(file.ok_or_else(|| StepError::Failed(format!("there is no file {path:?}")))?)?
            }
            (None, None) => {
                return Err(StepError::failed(
                    "there is no manifest: give input.manifest, manifestPath or manifestObject",
                ));
            }
        },
    };
    let found: Vec<Value> = found.into_iter().filter(|object| !object.is_null()).collect();
    match found.len() {
        0 => Err(StepError::failed("the manifest has no objects")),
        count if count > MOST => Err(StepError::Failed(format!(
            "the manifest has more than {MOST} objects"
        ))),
        _ => Ok(found),
    }
}

#[derive(Clone)]
struct Placed {
    object: Value,
    collection: String,
    title: String,
}

async fn placed(job: &Job<'_>, discovery: &mut Discovery, mut object: Value) -> Result<Placed, StepError> {
    let resource = discovery.of(&job.requests(), &object).await?;
    let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let kind = object["kind"].as_str().unwrap_or("").to_owned();
    if is_run(&object) {
        return Err(StepError::failed(
            "runs do not start runs: a template that starts itself would never end, and a Voyage is not applied by one",
        ));
    }
    let own = job.voyage.namespace.clone();
    let namespace = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => namespace.to_owned(),
        None => job.text("namespace").map_or(own, str::to_owned),
    };
    if !is_name(&name) || !is_name(&namespace) {
        return Err(StepError::Failed(format!(
            "{kind} {namespace}/{name} has no sound name"
        )));
    }
    if resource.namespaced {
        object["metadata"]["namespace"] = namespace.as_str().into();
    }
    Ok(Placed {
        collection: resource.collection(&namespace),
        title: match resource.namespaced {
            true => format!("{kind} {namespace}/{name}"),
            false => format!("{kind} {name}"),
        },
        object,
    })
}

/// Whether an object is a run, in whatever version.
fn is_run(object: &Value) -> bool {
    let group = object["apiVersion"]
        .as_str()
        .and_then(|version| version.split_once('/'));
    group.is_some_and(|(group, _)| group == VOYAGE.group) && object["kind"] == VOYAGE.kind
}

fn reference(placed: &Placed) -> Value {
    json!({
        "apiVersion": placed.object["apiVersion"], "kind": placed.object["kind"],
        "name": placed.object["metadata"]["name"], "namespace": placed.object["metadata"]["namespace"],
    })
}

pub(super) async fn create(job: &mut Job<'_>) -> Result<Value, StepError> {
    let mut discovery = Discovery::default();
    let mut made = Vec::new();
    for object in given(job)? {
        let placed = placed(job, &mut discovery, object).await?;
        made.push(reference(&placed));
        make(job, &placed.collection, placed.object, &placed.title).await?;
    }
    Ok(json!({ "objects": made }))
}

/// Marks an object as this run's own.
fn own(placed: &mut Placed, uid: &str) {
    placed.object["metadata"]["annotations"][VOYAGE_ANNOTATION] = uid.into();
}

/// Makes an object that is not there. False if somebody else has made it in between: applying would take it for this run's own.
async fn first(job: &mut Job<'_>, placed: &Placed, path: &str) -> Result<bool, StepError> {
    let mut placed = placed.clone();
    own(&mut placed, &job.voyage.uid);
    job.will_make(Made {
        kind: "object".to_owned(),
        reference: json!({ "path": path }),
        title: placed.title.clone(),
        ..Made::default()
    })
    .await?;
    let address = format!("{}?fieldManager={MANAGER}", placed.collection);
    let is_made = job.requests().create(&address, &placed.object).await?;
    if is_made {
        job.log(&format!("made {}", placed.title));
    }
    Ok(is_made)
}

/// Writes down how an object is that was there before, as far as it is about to be changed, so that it can be changed back.
async fn remember(job: &mut Job<'_>, placed: &Placed, path: &str, known: &Value) -> Result<(), StepError> {
    let manager = format!("{MANAGER}&dryRun=All");
    let after = job
        .requests()
        .apply(path, &placed.object, &manager, false)
        .await?;
    let Some((was, is)) = change::between(&placed.object, known, &after) else {
        return Ok(());
    };
    let kept = json!({"path": path, "was": was, "is": is});
    let is_secret = placed.object["kind"] == "Secret" && placed.object["apiVersion"] == "v1";
    let why = match () {
        () if is_secret => Some("what was in a Secret is not kept"),
        () if job.secrets.hide_in(&kept) != kept => Some("it contains a secret of the run"),
        () if kept.to_string().len() > KEPT => Some("too much of it was changed to be kept"),
        () => None,
    };
    job.log(&match why {
        None => format!("{} was there before, and is changed", placed.title),
        Some(why) => format!(
            "{} was there before, and is changed for good: {why}",
            placed.title
        ),
    });
    job.will_make(Made {
        kind: "change".to_owned(),
        reference: match why {
            None => kept,
            Some(why) => json!({"path": path, "forGood": why}),
        },
        title: format!("the change of {}", placed.title),
        ..Made::default()
    })
    .await
}

pub(super) async fn apply(job: &mut Job<'_>) -> Result<Value, StepError> {
    let mut discovery = Discovery::default();
    let requests = job.requests();
    let mut made = Vec::new();
    for object in given(job)? {
        let mut placed = placed(job, &mut discovery, object).await?;
        let path = format!(
            "{}/{}",
            placed.collection,
            placed.object["metadata"]["name"].as_str().unwrap_or("")
        );
        let known = requests.get(&path).await?;
        let is_ours =
            |known: &Value| known["metadata"]["annotations"][VOYAGE_ANNOTATION] == job.voyage.uid.as_str();
        if job.mode == Mode::Dry {
            let presumed = job.presumed(&placed.object);
            let judged = requests
                .apply(
                    &path,
                    &placed.object,
                    &format!("{MANAGER}&dryRun=All{presumed}"),
                    false,
                )
                .await;
            job.foresee(&placed.object, &judged);
            judged?;
            made.push(reference(&placed));
            continue;
        }
        let known = match known {
            Some(known) if is_ours(&known) => {
                own(&mut placed, &job.voyage.uid);
                None
            }
            Some(known) => Some(known),
            None => match first(job, &placed, &path).await? {
                true => {
                    made.push(reference(&placed));
                    continue;
                }
                // Somebody was quicker; it is his.
                false => requests.get(&path).await?,
            },
        };
        if let Some(known) = known {
            remember(job, &placed, &path, &known).await?;
        }
        requests.apply(&path, &placed.object, MANAGER, false).await?;
        job.log(&format!("applied {}", placed.title));
        made.push(reference(&placed));
    }
    Ok(json!({ "objects": made }))
}
