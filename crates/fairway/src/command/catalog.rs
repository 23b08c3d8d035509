//! `fairway catalog`: entities and locations are objects, so this is the API and what they mean, and nothing else.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use fairway_portal_entity::index::{Found, Index};
use fairway_portal_entity::place::{LocationRef, target_problem};
use fairway_portal_entity::query::Query;
use fairway_portal_entity::{EntityRef, document, object, placeholders, validate};
use serde_json::{Value, json};

use super::gitops::{Session, told};
use crate::cli::catalog::{
    Catalog, CatalogCommand, Delete, Get, List, Locations, Refresh, Register, Search, Unregister, Validate,
};
use crate::cli::gitops::Place;

const ENTITIES: &str = "/apis/fairway.dev/v1alpha1/catalogentities";
const LOCATIONS: &str = "/apis/fairway.dev/v1alpha1/cataloglocations";
/// The annotation by which a location is asked to be read again.
const REFRESH: &str = "fairway.dev/refresh-requested";
/// How long reading may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does what was asked for.
pub(crate) fn run(options: &Catalog) -> anyhow::Result<ExitCode> {
    if let CatalogCommand::Validate(options) = &options.command {
        return judge(options);
    }
    let runtime = super::runtime()?;
    runtime.block_on(async {
        match &options.command {
            CatalogCommand::List(options) => list(options).await,
            CatalogCommand::Get(options) => get(options).await,
            CatalogCommand::Search(options) => search(options).await,
            CatalogCommand::Locations(options) => locations(options).await,
            CatalogCommand::Register(options) => register(options).await,
            CatalogCommand::Unregister(options) => unregister(options).await,
            CatalogCommand::Refresh(options) => refresh(options).await,
            CatalogCommand::Delete(options) => delete(options).await,
            CatalogCommand::Validate(options) => judge(options),
        }
    })
}

/// Everything in the catalog, with relations of both sides.
async fn index(place: &Place) -> anyhow::Result<Index> {
    let session = Session::open(place).await?;
    let mut index = Index::default();
    for found in session.requests.list(ENTITIES).await.map_err(told)? {
        if let Some(record) = object::read_entity(&found) {
            index.insert(&record);
        }
    }
    Ok(index)
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn table(found: &[Found<'_>]) -> String {
    let mut table = format!("{:<44} {:<14} {:<24} DESCRIPTION", "ENTITY", "TYPE", "OWNER");
    for one in found {
        let value = one.value();
        let orphan = match text(&value, "/metadata/annotations/backstage.io~1orphan") {
            "true" => " (orphan)",
            _ => "",
        };
        table.push_str(&format!(
            "\n{:<44} {:<14} {:<24} {}",
            format!("{}{orphan}", one.reference),
            text(&value, "/spec/type"),
            text(&value, "/spec/owner"),
            text(&value, "/metadata/description").lines().next().unwrap_or("")
        ));
    }
    table
}

async fn list(options: &List) -> anyhow::Result<ExitCode> {
    let index = index(&options.place).await?;
    let filters: Vec<String> = match (&options.kind, options.filter.is_empty()) {
        (Some(kind), true) => vec![format!("kind={kind}")],
        (Some(kind), false) => {
            let with_kind = |filter: &String| format!("kind={kind},{filter}");
            options.filter.iter().map(with_kind).collect()
        }
        (None, _) => options.filter.clone(),
    };
    let query = Query::filtered(filters.iter().map(String::as_str))?
        .ordered_by_field(options.order.iter().map(String::as_str))?;
    let found = query.run(&index);
    let values: Vec<Value> = found.iter().map(Found::value).collect();
    options.output.print(&values.into(), &table(&found));
    Ok(ExitCode::SUCCESS)
}

async fn search(options: &Search) -> anyhow::Result<ExitCode> {
    let index = index(&options.place).await?;
    let query = Query::default().searching(&options.words.join(" "), &[])?;
    let found = query.run(&index);
    let values: Vec<Value> = found.iter().map(Found::value).collect();
    options.output.print(&values.into(), &table(&found));
    Ok(ExitCode::SUCCESS)
}

async fn get(options: &Get) -> anyhow::Result<ExitCode> {
    let reference = EntityRef::parse(&options.entity, Some("component"), None)?;
    let index = index(&options.place).await?;
    let found = index.get(&reference.to_string()).with_context(|| {
        format!("the catalog has no {reference}; fairway catalog search finds entities by words")
    })?;
    let value = found.value();
    options
        .output
        .print(&value, fairway_text_yaml::to_string(&value).trim_end());
    Ok(ExitCode::SUCCESS)
}

async fn locations(options: &Locations) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    let found = session.requests.list(LOCATIONS).await.map_err(told)?;
    let mut table = format!("{:<8} {:<9} TARGET", "READY", "ENTITIES");
    for location in &found {
        table.push_str(&format!(
            "\n{:<8} {:<9} {}",
            ready(location).0,
            location["status"]["entities"],
            text(location, "/spec/target")
        ));
        for error in location["status"]["errors"].as_array().into_iter().flatten() {
            table.push_str(&format!("\n         {}", error.as_str().unwrap_or_default()));
        }
    }
    options.output.print(&found.into(), &table);
    Ok(ExitCode::SUCCESS)
}

/// The condition of a location: its status and its message.
fn ready(location: &Value) -> (&str, &str) {
    let conditions = location.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "Ready");
    match ready {
        Some(condition) => (text(condition, "/status"), text(condition, "/message")),
        None => ("Unknown", "it has not been read yet"),
    }
}

fn path(name: &str) -> String {
    format!("{LOCATIONS}/{name}")
}

/// The name of a location's object, by an address, an entity or itself.
async fn location_of(session: &Session, what: &str) -> anyhow::Result<String> {
    let found = session.requests.list(LOCATIONS).await.map_err(told)?;
    let by_target = found
        .iter()
        .find(|location| text(location, "/spec/target") == what || text(location, "/metadata/name") == what);
    if let Some(location) = by_target {
        return Ok(text(location, "/metadata/name").to_owned());
    }
    let reference = EntityRef::parse(what, Some("component"), None)
        .with_context(|| format!("{what:?} is no location, and no entity"))?;
    let name = object::entity_name(&reference);
    let entity = session
        .requests
        .get(&format!("{ENTITIES}/{name}"))
        .await
        .map_err(told)?;
    let entity = entity.with_context(|| {
        format!("{what:?} is neither a location nor an entity of the catalog; fairway catalog locations lists them")
    })?;
    Ok(text(&entity, "/spec/location").to_owned())
}

/// Waits until a location was read after a wish, or at all; says what was found there.
async fn wait(session: &Session, name: &str, wish: Option<&str>) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    loop {
        let location = session.requests.get(&path(name)).await.map_err(told)?;
        let location = location.with_context(|| format!("the location {name} is gone"))?;
        let is_read = match wish {
            Some(wish) => text(&location, "/status/refreshed") == wish,
            None => location["status"]["observedGeneration"] == location["metadata"]["generation"],
        };
        if is_read {
            let (status, message) = ready(&location);
            println!("{name}: {message}");
            return Ok(match status {
                "True" => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            });
        }
        if begun.elapsed() > PATIENCE {
            bail!("the location {name} was not read within {PATIENCE:?}; does the server run?");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn register(options: &Register) -> anyhow::Result<ExitCode> {
    let target = options.url.strip_prefix("url:").unwrap_or(&options.url);
    if let Some(problem) = target_problem(target) {
        bail!("{target:?} cannot be registered: {problem}");
    }
    let session = Session::open(&options.place).await?;
    let location = LocationRef {
        kind: "url".to_owned(),
        target: target.to_owned(),
    };
    let name = object::location_name(&location);
    let object = json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "CatalogLocation", "metadata": {"name": name},
        "spec": {"type": location.kind, "target": location.target},
    });
    if !session.requests.create(LOCATIONS, &object).await.map_err(told)? {
        println!("{name} is there already");
    }
    wait(&session, &name, None).await
}

async fn unregister(options: &Unregister) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    let name = location_of(&session, &options.location).await?;
    let location = session.requests.get(&path(&name)).await.map_err(told)?;
    if let Some(repository) = location
        .as_ref()
        .and_then(|one| one["spec"]["repository"].as_str())
    {
        bail!(
            "the location was found in the repository {repository}: remove its catalog-info.yaml, or annotate the Repository with \
             fairway.dev/catalog=ignore"
        );
    }
    session.requests.delete(&path(&name)).await.map_err(told)?;
    println!("{name} deleted; its entities go with it");
    Ok(ExitCode::SUCCESS)
}

async fn refresh(options: &Refresh) -> anyhow::Result<ExitCode> {
    let session = Session::open(&options.place).await?;
    let name = location_of(&session, &options.what).await?;
    let wish = jiff::Timestamp::now().to_string();
    let patch = json!({"metadata": {"annotations": {REFRESH: wish}}});
    let changed = session.requests.merge(&path(&name), &patch).await.map_err(told)?;
    changed.with_context(|| format!("there is no location {name}"))?;
    wait(&session, &name, Some(&wish)).await
}

/// Deletes an orphan. What a file still says would come back at once, so the file is to be changed instead.
async fn delete(options: &Delete) -> anyhow::Result<ExitCode> {
    let reference = EntityRef::parse(&options.entity, Some("component"), None)?;
    let session = Session::open(&options.place).await?;
    let path = format!("{ENTITIES}/{}", object::entity_name(&reference));
    let found = session.requests.get(&path).await.map_err(told)?;
    let found = found.with_context(|| {
        format!("the catalog has no {reference} from a file; fairway catalog list shows what it has")
    })?;
    if found["spec"]["orphan"] != true {
        bail!(
            "{reference} is no orphan: {} says it, and it would come back; take it out of that file",
            text(&found, "/spec/file")
        );
    }
    session.requests.delete_read(&path, &found).await.map_err(told)?;
    println!("{reference} deleted");
    Ok(ExitCode::SUCCESS)
}

/// Judges files; placeholders are filled from files beside them.
fn judge(options: &Validate) -> anyhow::Result<ExitCode> {
    let mut is_good = true;
    for file in &options.files {
        let shown = file.display().to_string();
        let content = std::fs::read(file).with_context(|| format!("{shown} cannot be read"))?;
        let documents = match document::read(&shown, &content) {
            Ok(documents) => documents,
            Err(why) => {
                println!("✗ {why}");
                is_good = false;
                continue;
            }
        };
        for mut entity in documents {
            let outcome = fill(&mut entity, file)
                .and_then(|()| validate::validate(&entity).map_err(|refusal| refusal.message));
            match outcome {
                Ok(reference) => println!("✓ {shown}: {reference}"),
                Err(why) => {
                    println!("✗ {shown}: {why}");
                    is_good = false;
                }
            }
        }
    }
    Ok(match is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn fill(entity: &mut Value, file: &std::path::Path) -> Result<(), String> {
    let directory = file.parent().unwrap_or(std::path::Path::new(""));
    for placeholder in placeholders::find(entity)? {
        let target = directory.join(&placeholder.target);
        let content = std::fs::read(&target).map_err(|error| format!("{}: {error}", target.display()))?;
        placeholders::replace(entity, &placeholder, &content)?;
    }
    Ok(())
}
