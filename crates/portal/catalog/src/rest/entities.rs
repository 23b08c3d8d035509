//! Entities: lists, queries, one by name or UID, what led to it, facets, and whether one is good.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_controller::{Failure, Requests};
use fairway_portal_entity::fields::Fields;
use fairway_portal_entity::index::{Found, Index};
use fairway_portal_entity::place::LocationRef;
use fairway_portal_entity::query::{self, DEFAULT_LIMIT, From, Page, Query};
use fairway_portal_entity::{EntityRef, object, validate as judge};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Call, Refusal};
use crate::kinds;

pub(super) const RESOURCE: &str = "catalogentities";
/// References of one batch.
const MAX_REFS: usize = 5000;
/// How far an entity may be from where it began.
const MAX_ANCESTRY: usize = 50;

/// Writes entities, whole or in part.
fn write(found: &[Found<'_>], fields: Option<&Fields>, out: &mut String) {
    out.reserve(match fields {
        None => found.iter().map(Found::size).sum(),
        Some(_) => found.len() * 128,
    });
    out.push('[');
    for (at, one) in found.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        match fields {
            None => one.write(out),
            Some(fields) => out.push_str(&fields.project(&one.value()).to_string()),
        }
    }
    out.push(']');
}

fn fields(call: &Call) -> Result<Option<Fields>, Refusal> {
    Ok(Fields::parse(call.all("fields"))?)
}

/// Asks the index away from the threads that serve: a large list takes a while.
async fn ask<T: Send + 'static>(
    call: &Call,
    question: impl FnOnce(&Index) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let (known, workspace) = (std::sync::Arc::clone(&call.catalog.known), call.workspace.clone());
    let asked = tokio::task::spawn_blocking(move || known.ask(&workspace, question)).await;
    asked.map_err(|error| super::broken("asking the index", &error))?
}

/// `GET /entities`.
pub(super) async fn list(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let fields = fields(call)?;
    let query = Query::filtered(call.all("filter"))?.ordered(call.all("order"))?;
    let (mut limit, mut offset) = (call.number("limit")?, call.number("offset")?.unwrap_or(0));
    if let Some(after) = call.one("after") {
        let (known_limit, known_offset) = after_cursor(after)?;
        limit = known_limit.or(limit);
        offset = known_offset;
    }
    let (text, next) = ask(call, move |index| {
        let found = query.run(index);
        let start = offset.min(found.len());
        let end = limit.map_or(found.len(), |limit| start.saturating_add(limit).min(found.len()));
        let mut text = String::new();
        write(&found[start..end], fields.as_ref(), &mut text);
        let next = limit.filter(|limit| *limit > 0 && end < found.len());
        Ok((text, next.map(|limit| json!({"limit": limit, "offset": end}))))
    })
    .await?;
    let next = next.map(|cursor| next_page(call, &STANDARD.encode(cursor.to_string())));
    Ok(Answer::text(text).next(next))
}

fn after_cursor(text: &str) -> Result<(Option<usize>, usize), Refusal> {
    let malformed = || Refusal::input("Malformed after cursor, could not be parsed");
    let bytes = STANDARD.decode(text).map_err(|_| malformed())?;
    let content: Value = serde_json::from_slice(&bytes).map_err(|_| malformed())?;
    let number = |field: &str| match &content[field] {
        Value::Null => Ok(None),
        value => match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::input(format!(
                "Malformed after cursor, {field} was not a number"
            ))),
        },
    };
    Ok((number("limit")?, number("offset")?.unwrap_or(0)))
}

/// The address of the next page: the same question with another beginning.
fn next_page(call: &Call, after: &str) -> String {
    let kept = call
        .query
        .iter()
        .filter(|(key, _)| key != "offset" && key != "after");
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept)
        .append_pair("after", after)
        .finish();
    format!("/entities?{query}")
}

/// `GET /entities/by-query`.
pub(super) async fn by_query(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let limit = call.number("limit")?.unwrap_or(DEFAULT_LIMIT);
    let (query, from) = match call.one("cursor") {
        Some(cursor) => Query::from_cursor(cursor)?,
        None => {
            let search_in = call.all("fullTextFilterFields");
            let search_in: Vec<&str> = search_in.iter().flat_map(|text| text.split(',')).collect();
            let query = Query::filtered(call.all("filter"))?
                .ordered_by_field(call.all("orderField"))?
                .searching(call.one("fullTextFilterTerm").unwrap_or_default(), &search_in)?;
            (query, From::Offset(call.number("offset")?.unwrap_or(0)))
        }
    };
    page(call, query, from, limit, fields(call)?).await
}

/// `POST /entities/by-query`.
pub(super) async fn by_predicate(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let body = &call.body;
    let number = |field: &str| match &body[field] {
        Value::Null => Ok(None),
        value => match value.as_u64().and_then(|number| usize::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(Refusal::input(format!("Invalid {field}, not an integer"))),
        },
    };
    let limit = number("limit")?.unwrap_or(DEFAULT_LIMIT);
    let fields = Fields::parse(texts(&body["fields"], "fields")?)?;
    let (query, from) = match &body["cursor"] {
        Value::Null => {
            let text = &body["fullTextFilter"];
            let query = Query::filtered([])?
                .with_predicate(body.get("query").filter(|query| !query.is_null()))?
                .searching(
                    text["term"].as_str().unwrap_or_default(),
                    &texts(&text["fields"], "fullTextFilter.fields")?,
                )?;
            // Some write it as in the other form of the request.
            let query = match &body["orderBy"] {
                Value::Null => query.ordered_by_field(texts(&body["orderField"], "orderField")?)?,
                orders => query.ordered_by(order_by(orders)?)?,
            };
            (query, From::Offset(number("offset")?.unwrap_or(0)))
        }
        Value::String(cursor) => Query::from_cursor(cursor)?,
        _ => return Err(Refusal::input("Cursor must be a string")),
    };
    page(call, query, from, limit, fields).await
}

fn texts<'v>(value: &'v Value, name: &str) -> Result<Vec<&'v str>, Refusal> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .ok_or_else(|| Refusal::input(format!("Invalid {name}, not strings")))
            })
            .collect(),
        _ => Err(Refusal::input(format!("Invalid {name}, not a list"))),
    }
}

/// Fields and their orders: a list of them, or one.
fn order_by(value: &Value) -> Result<Vec<(&str, &str)>, Refusal> {
    let all = match value {
        Value::Array(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut orders = Vec::with_capacity(all.len());
    for one in all {
        let pair = one["field"].as_str().zip(one["order"].as_str());
        orders
            .push(pair.ok_or_else(|| Refusal::input("Invalid orderBy, expected a field and an order each"))?);
    }
    Ok(orders)
}

async fn page(
    call: &Call,
    query: Query,
    from: From,
    limit: usize,
    fields: Option<Fields>,
) -> Result<Answer, Refusal> {
    let text = ask(call, move |index| {
        let Page {
            items,
            total,
            next,
            previous,
        } = query.page(index, limit, &from);
        let mut info = json!({});
        if let Some(next) = next {
            info["nextCursor"] = next.into();
        }
        if let Some(previous) = previous {
            info["prevCursor"] = previous.into();
        }
        let mut text = String::from("{\"items\":");
        write(&items, fields.as_ref(), &mut text);
        text.push_str(&format!(",\"totalItems\":{total},\"pageInfo\":{info}}}"));
        Ok(text)
    })
    .await?;
    Ok(Answer::text(text))
}

/// `POST /entities/by-refs`.
pub(super) async fn by_refs(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let refs: Vec<String> = match call.body["entityRefs"].is_array() {
        true => texts(&call.body["entityRefs"], "entityRefs")?
            .into_iter()
            .map(str::to_owned)
            .collect(),
        false => return Err(Refusal::input("Malformed request: entityRefs must be a list")),
    };
    if refs.len() > MAX_REFS {
        return Err(Refusal::input(format!(
            "Malformed request: more than {MAX_REFS} entityRefs"
        )));
    }
    let fields = match &call.body["fields"] {
        Value::Null => fields(call)?,
        named => Fields::parse(texts(named, "fields")?)?,
    };
    let filter = fairway_portal_entity::filter::Filter::parse(call.all("filter"))?;
    let text = ask(call, move |index| {
        let mut text = String::from("{\"items\":[");
        for (at, reference) in refs.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            let reference = EntityRef::parse(reference, None, None)?.to_string();
            match (
                index.get(&reference).filter(|found| filter.matches(found)),
                &fields,
            ) {
                (None, _) => text.push_str("null"),
                (Some(found), None) => found.write(&mut text),
                (Some(found), Some(fields)) => text.push_str(&fields.project(&found.value()).to_string()),
            }
        }
        text.push_str("]}");
        Ok(text)
    })
    .await?;
    Ok(Answer::text(text))
}

/// The reference in a path.
pub(crate) fn reference(kind: &str, namespace: &str, name: &str) -> EntityRef {
    EntityRef {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// An entity that the caller may see, by its reference.
pub(crate) async fn visible(call: &Call, reference: &EntityRef) -> Result<Value, Refusal> {
    let name = object::entity_name(reference);
    call.allowed("get", RESOURCE, Some(&name)).await?;
    let wanted = reference.to_string();
    let found = call.catalog.known.ask(&call.workspace, |index| {
        index.get(&wanted).map(|found| found.value())
    });
    found.ok_or_else(|| {
        Refusal::not_found(format!(
            "No entity named '{}' found, with kind '{}' in namespace '{}'",
            reference.name, reference.kind, reference.namespace
        ))
    })
}

/// `GET /entities/by-name/:kind/:namespace/:name`.
pub(super) async fn by_name(call: &Call, kind: &str, namespace: &str, name: &str) -> Result<Answer, Refusal> {
    let entity = visible(call, &reference(kind, namespace, name)).await?;
    Ok(Answer::ok(&entity))
}

/// The reference of a UID.
fn by_uid_reference(call: &Call, uid: &str) -> Result<EntityRef, Refusal> {
    let found = call.catalog.known.ask(&call.workspace, |index| {
        index.by_uid(uid).map(|found| found.reference.to_owned())
    });
    let found = found.ok_or_else(|| Refusal::not_found(format!("No entity with uid {uid}")))?;
    Ok(EntityRef::parse(&found, None, None)?)
}

/// `GET /entities/by-uid/:uid`.
pub(super) async fn by_uid(call: &Call, uid: &str) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let reference = by_uid_reference(call, uid)?;
    Ok(Answer::ok(&visible(call, &reference).await?))
}

/// `DELETE /entities/by-uid/:uid`. What a file still says comes back, as upstream has it: this is for orphans.
pub(super) async fn remove(call: &Call, uid: &str) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let name = object::entity_name(&by_uid_reference(call, uid)?);
    call.allowed("delete", RESOURCE, Some(&name)).await?;
    let requests = Requests::new(call.client.clone());
    let deleted = requests
        .delete_read(&kinds::entity(&name), &json!({"metadata": {"uid": uid}}))
        .await;
    deleted.map_err(|failure: Failure| Refusal::of(&failure))?;
    call.catalog.known.forget(&call.workspace, &name);
    Ok(Answer::empty(StatusCode::NO_CONTENT))
}

/// `GET /entities/by-name/:kind/:namespace/:name/ancestry`.
pub(super) async fn ancestry(
    call: &Call,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let reference = reference(kind, namespace, name);
    visible(call, &reference).await?;
    let root = reference.to_string();
    let items = call.catalog.known.ask(&call.workspace, |index| {
        let mut items = Vec::new();
        let mut at = Some(root.clone());
        while let Some(found) = at.as_deref().and_then(|reference| index.get(reference)) {
            let parents: Vec<&str> = found.parent().into_iter().collect();
            items.push(json!({"entity": found.value(), "parentEntityRefs": parents}));
            if items.len() >= MAX_ANCESTRY {
                break;
            }
            at = found.parent().map(str::to_owned);
        }
        items
    });
    Ok(Answer::ok(&json!({"rootEntityRef": root, "items": items})))
}

/// `GET /entity-facets`.
pub(super) async fn facets(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let query = Query::filtered(call.all("filter"))?;
    let keys = call.all("facet").into_iter().map(str::to_owned).collect();
    count(call, query, keys).await
}

/// `POST /entity-facets`.
pub(super) async fn facets_by_predicate(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let asked = call.body.get("query").filter(|query| !query.is_null());
    let query = Query::filtered([])?.with_predicate(asked)?;
    let keys = texts(&call.body["facets"], "facets")?;
    count(call, query, keys.into_iter().map(str::to_owned).collect()).await
}

async fn count(call: &Call, query: Query, keys: Vec<String>) -> Result<Answer, Refusal> {
    let counted = ask(call, move |index| {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Ok(query::facets(index, &query, &keys)?)
    })
    .await?;
    Ok(Answer::ok(&counted))
}

/// `POST /validate-entity`.
pub(super) async fn validate(call: &Call) -> Result<Answer, Refusal> {
    call.allowed("list", RESOURCE, None).await?;
    let wrong = |name: &str, message: &str| {
        let errors = json!({"errors": [{"name": name, "message": message}]});
        Ok(Answer::with(StatusCode::BAD_REQUEST, &errors))
    };
    let Some(location) = call.body["location"].as_str() else {
        return wrong("InputError", "Malformed request: location must be a string");
    };
    match LocationRef::parse(location) {
        Err(error) => return wrong("TypeError", &error.0),
        Ok(location) if location.kind != "url" => {
            return wrong(
                "TypeError",
                &format!(
                    "Invalid location ref {location}, only 'url:<target>' is supported, e.g. url:https://host/path"
                ),
            );
        }
        Ok(_) => {}
    }
    match judge::validate(&call.body["entity"]) {
        Ok(_) => Ok(Answer::empty(StatusCode::OK)),
        Err(refusal) => wrong(refusal.name, &refusal.message),
    }
}
