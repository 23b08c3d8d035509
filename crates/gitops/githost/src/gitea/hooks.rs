//! Webhooks of a repository: made, shown, changed, tried, and what became of their deliveries.

use http::StatusCode;
use serde_json::Value;

use super::call::{Answer, Call, Problem};
use super::records;
use super::shapes::now;
use crate::access::Verb;
use crate::hooks::hook::Hook;
use crate::hooks::payload::{self, Scene};
use crate::hooks::store::{self, StoreError};
use crate::hooks::{self, Kind, deliver};
use crate::host::Opened;
use crate::route::Slug;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Api(error) => error.into(),
            StoreError::Refused(why) => Self::wrong(why),
        }
    }
}

async fn all(call: &Call, opened: &Opened) -> Result<Vec<Hook>, Problem> {
    let client = call.host.client_at(&opened.wanted.workspace);
    Ok(store::list(client, &opened.wanted).await?)
}

fn number(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| Problem::not_found("The hook"))
}

async fn find(call: &Call, opened: &Opened, id: &str) -> Result<Hook, Problem> {
    let id = number(id)?;
    let found = all(call, opened).await?.into_iter().find(|hook| hook.id == id);
    found.ok_or_else(|| Problem::not_found("The hook"))
}

/// `GET hooks`
pub(super) async fn list(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let shown = all(call, &opened).await?.iter().map(Hook::shape).collect();
    Ok(call.page_of(shown))
}

/// `GET hooks/{id}`
pub(super) async fn get(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    Ok(Answer::ok(find(call, &opened, id).await?.shape()))
}

/// `POST hooks`
pub(super) async fn create(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let client = call.host.client_at(&opened.wanted.workspace);
    let made = store::change(client, &opened.wanted, |all, id| {
        let hook = Hook::create(id, &call.body, &now())?;
        all.push(hook.clone());
        Ok(hook)
    });
    Ok(Answer::created(made.await?.shape()))
}

/// `PATCH hooks/{id}`
pub(super) async fn edit(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let id = find(call, &opened, id).await?.id;
    let client = call.host.client_at(&opened.wanted.workspace);
    let changed = store::change(client, &opened.wanted, |all, _| {
        let hook = all.iter_mut().find(|hook| hook.id == id);
        let hook = hook.ok_or("the hook is gone")?;
        hook.change(&call.body, &now())?;
        Ok(hook.clone())
    });
    Ok(Answer::ok(changed.await?.shape()))
}

/// `DELETE hooks/{id}`
pub(super) async fn delete(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let id = find(call, &opened, id).await?.id;
    let client = call.host.client_at(&opened.wanted.workspace);
    store::change(client, &opened.wanted, |all, _| {
        all.retain(|hook| hook.id != id);
        Ok(())
    })
    .await?;
    records::remove(&opened.repository, deliver::history(id)).await?;
    Ok(Answer::nothing())
}

/// `POST hooks/{id}/tests`: a push of the newest commit, whatever the hook has chosen.
pub(super) async fn test(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let hook = find(call, &opened, id).await?;
    let payload = payload::test(&Scene::of(&call.host, slug, &opened)).await;
    send(call, &opened, hook.id, Kind::Push, payload.to_string()).await?;
    Ok(Answer::nothing())
}

async fn send(call: &Call, opened: &Opened, hook: u64, kind: Kind, payload: String) -> Result<(), Problem> {
    let sent = hooks::enqueue(
        &call.host,
        &opened.wanted,
        &opened.repository,
        hook,
        kind,
        payload,
    )
    .await;
    let failed = |error: std::io::Error| {
        let why = format!("the delivery cannot be written: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    };
    sent.map(drop).map_err(failed)
}

async fn history(call: &Call, opened: &Opened, id: &str) -> Result<(u64, Vec<Value>), Problem> {
    let hook = find(call, opened, id).await?;
    let mut all = records::read(&opened.repository, deliver::history(hook.id)).await?;
    all.reverse();
    Ok((hook.id, all))
}

/// `GET hooks/{id}/deliveries`, newest first, without what was sent.
pub(super) async fn deliveries(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let (_, mut all) = history(call, &opened, id).await?;
    for entry in &mut all {
        if let Some(fields) = entry.as_object_mut() {
            fields.shift_remove("payload");
            fields.shift_remove("response");
        }
    }
    Ok(call.page_of(all))
}

async fn delivery_of(
    call: &Call,
    opened: &Opened,
    id: &str,
    delivery: &str,
) -> Result<(u64, Value), Problem> {
    let (hook, all) = history(call, opened, id).await?;
    let number = delivery.parse::<u64>().ok();
    let is_it =
        |entry: &Value| number.is_some() && entry["id"].as_u64() == number || entry["guid"] == delivery;
    let found = all.into_iter().find(is_it);
    Ok((hook, found.ok_or_else(|| Problem::not_found("The delivery"))?))
}

/// `GET hooks/{id}/deliveries/{delivery}`
pub(super) async fn delivery(call: &Call, slug: &Slug, id: &str, delivery: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    Ok(Answer::ok(delivery_of(call, &opened, id, delivery).await?.1))
}

/// `POST hooks/{id}/deliveries/{delivery}/attempts`: the same once more, as a new delivery.
pub(super) async fn redeliver(call: &Call, slug: &Slug, id: &str, delivery: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let (hook, entry) = delivery_of(call, &opened, id, delivery).await?;
    let kind = entry["event_type"].as_str().and_then(Kind::parse);
    let (Some(kind), Some(payload)) = (kind, entry["payload"].as_str()) else {
        return Err(Problem::wrong(
            "what was sent was too large to be kept; it cannot be sent again",
        ));
    };
    send(call, &opened, hook, kind, payload.to_owned()).await?;
    Ok(Answer::with(StatusCode::ACCEPTED, Value::Null))
}
