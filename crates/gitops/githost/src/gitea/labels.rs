//! Labels: those of a repository, and which of them a pull request has. Pull requests keep ids, so that a label can be renamed.

use http::StatusCode;
use serde_json::{Value, json};

use super::call::{Answer, Call, Problem};
use super::pulls;
use super::records;
use crate::access::Verb;
use crate::host::{Host, Opened};
use crate::route::Slug;
use fairway_gitops_git::Repository;

/// The file of a repository's labels.
const LABELS: &str = "labels";
/// The most labels of a repository, and of a pull request.
const MAX_LABELS: usize = 500;
const MAX_OF_PULL: usize = 100;
/// The longest name and description.
const MAX_NAME: usize = 255;
const MAX_DESCRIPTION: usize = 4 << 10;

/// What somebody wants a label to be.
#[derive(Default)]
struct Wish {
    name: Option<String>,
    color: Option<String>,
    description: Option<String>,
    exclusive: Option<bool>,
    is_archived: Option<bool>,
}

impl Wish {
    fn read(call: &Call) -> Result<Self, Problem> {
        let name = match call.text("name").map(str::trim) {
            Some("") => return Err(Problem::wrong("a label needs a name")),
            Some(name) if name.chars().count() > MAX_NAME => {
                return Err(Problem::wrong(format!(
                    "the name of a label has at most {MAX_NAME} characters"
                )));
            }
            name => name.map(str::to_owned),
        };
        let color = match call.text("color") {
            None => None,
            Some(color) => Some(
                hexadecimal(color)
                    .ok_or_else(|| Problem::wrong(format!("{color:?} is no color: write it as #00aabb")))?,
            ),
        };
        let description = call.text("description");
        Ok(Self {
            name,
            color,
            description: description.map(|text| text.chars().take(MAX_DESCRIPTION).collect()),
            exclusive: call.flag("exclusive"),
            is_archived: call.flag("is_archived"),
        })
    }

    fn take(self, label: &mut Value) {
        for (field, value) in [
            ("name", self.name.map(Value::from)),
            ("color", self.color.map(Value::from)),
            ("description", self.description.map(Value::from)),
            ("exclusive", self.exclusive.map(Value::from)),
            ("is_archived", self.is_archived.map(Value::from)),
        ] {
            if let Some(value) = value {
                label[field] = value;
            }
        }
    }
}

/// Six hexadecimal digits, with or without a `#`, or three.
fn hexadecimal(color: &str) -> Option<String> {
    let digits = color.trim();
    let digits = digits.strip_prefix('#').unwrap_or(digits).to_ascii_lowercase();
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    match digits.len() {
        6 => Some(digits),
        3 => Some(digits.chars().flat_map(|digit| [digit, digit]).collect()),
        _ => None,
    }
}

fn shape(host: &Host, slug: &Slug, label: &Value) -> Value {
    json!({
        "id": label["id"], "name": label["name"], "exclusive": label["exclusive"] == true,
        "is_archived": label["is_archived"] == true, "color": label["color"], "description": label["description"],
        "url": format!("{}/api/v1/repos/{slug}/labels/{}", host.url(), label["id"]),
    })
}

/// The labels that a pull request has, as Gitea shows them.
pub(super) async fn shown(
    host: &Host,
    slug: &Slug,
    repository: &Repository,
    pull: &Value,
) -> Result<Vec<Value>, Problem> {
    let wanted = ids(pull);
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all = records::read(repository, LABELS.to_owned()).await?;
    let of_pull = all
        .iter()
        .filter(|label| label["id"].as_u64().is_some_and(|id| wanted.contains(&id)));
    Ok(of_pull.map(|label| shape(host, slug, label)).collect())
}

/// The names of a repository's labels, by id.
pub(crate) async fn names(repository: &Repository) -> Result<Vec<(u64, String)>, Problem> {
    let all = records::read(repository, LABELS.to_owned()).await?;
    let named = all
        .iter()
        .filter_map(|label| Some((label["id"].as_u64()?, label["name"].as_str()?.to_owned())));
    Ok(named.collect())
}

/// The ids of a pull request's labels.
pub(crate) fn ids(pull: &Value) -> Vec<u64> {
    let all = pull["labels"].as_array().into_iter().flatten();
    all.filter_map(Value::as_u64).collect()
}

/// The ids that a list of ids and names means.
pub(super) async fn meant(repository: &Repository, list: &Value) -> Result<Vec<u64>, Problem> {
    let known = names(repository).await?;
    let mut found = Vec::new();
    for wanted in list.as_array().into_iter().flatten() {
        let is_it =
            |(id, name): &&(u64, String)| wanted.as_u64() == Some(*id) || wanted.as_str() == Some(name);
        let (id, _) = known
            .iter()
            .find(is_it)
            .ok_or_else(|| Problem::not_found(&format!("The label {wanted}")))?;
        if !found.contains(id) {
            found.push(*id);
        }
    }
    match found.len() {
        0..=MAX_OF_PULL => Ok(found),
        _ => Err(Problem::wrong(format!(
            "a pull request has at most {MAX_OF_PULL} labels"
        ))),
    }
}

/// `GET labels`
pub(super) async fn list(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let mut all = records::read(&opened.repository, LABELS.to_owned()).await?;
    all.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    let shown = all.iter().map(|label| shape(&call.host, slug, label));
    Ok(call.page_of(shown.collect()))
}

/// `POST labels`
pub(super) async fn create(call: &Call, slug: &Slug) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let wish = Wish::read(call)?;
    if wish.name.is_none() || wish.color.is_none() {
        return Err(Problem::wrong("a label needs a name and a color"));
    }
    let made = records::change(&opened.repository, LABELS.to_owned(), move |all| {
        if all.len() >= MAX_LABELS {
            return Err(Problem::wrong(format!(
                "a repository has at most {MAX_LABELS} labels"
            )));
        }
        let last = all
            .iter()
            .filter_map(|label| label["id"].as_u64())
            .max()
            .unwrap_or(0);
        let mut label = json!({"id": last + 1, "description": ""});
        wish.take(&mut label);
        all.push(label.clone());
        Ok(label)
    })
    .await?;
    Ok(Answer::created(shape(&call.host, slug, &made)))
}

fn number(text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|_| Problem::not_found("The label"))
}

/// `GET labels/{id}`
pub(super) async fn get(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let id = number(id)?;
    let all = records::read(&opened.repository, LABELS.to_owned()).await?;
    let found = all.iter().find(|label| label["id"] == id);
    let found = found.ok_or_else(|| Problem::not_found("The label"))?;
    Ok(Answer::ok(shape(&call.host, slug, found)))
}

/// `PATCH labels/{id}`
pub(super) async fn edit(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let (id, wish) = (number(id)?, Wish::read(call)?);
    let changed = records::change(&opened.repository, LABELS.to_owned(), move |all| {
        let found = all.iter_mut().find(|label| label["id"] == id);
        let label = found.ok_or_else(|| Problem::not_found("The label"))?;
        wish.take(label);
        Ok(label.clone())
    })
    .await?;
    // Generators choose by names.
    call.host.tell_pulls(slug);
    Ok(Answer::ok(shape(&call.host, slug, &changed)))
}

/// `DELETE labels/{id}`: pull requests lose it.
pub(super) async fn delete(call: &Call, slug: &Slug, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let id = number(id)?;
    // From the pull requests first: an id that is free again must not be anybody's.
    pulls::without_label(&opened, id).await?;
    records::change(&opened.repository, LABELS.to_owned(), move |all| {
        let before = all.len();
        all.retain(|label| label["id"] != id);
        match all.len() == before {
            true => Err(Problem::not_found("The label")),
            false => Ok(()),
        }
    })
    .await?;
    call.host.tell_pulls(slug);
    Ok(Answer::nothing())
}

/// `GET issues/{number}/labels`
pub(super) async fn of_pull(call: &Call, slug: &Slug, pull: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Get).await?;
    let pull = pulls::find(&opened, pull).await?;
    let shown = shown(&call.host, slug, &opened.repository, &pull).await?;
    Ok(Answer::ok(shown.into()))
}

/// `POST`, `PUT` and `DELETE issues/{number}/labels`: more, others, none.
pub(super) async fn change(call: &Call, slug: &Slug, number: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let asked = meant(&opened.repository, &call.body["labels"]).await?;
    let is_more = call.method == http::Method::POST;
    let is_none = call.method == http::Method::DELETE;
    let pull = change_pull(call, slug, &opened, number, move |has| match (is_more, is_none) {
        (_, true) => Vec::new(),
        (true, _) => {
            let new = asked.into_iter().filter(|id| !has.contains(id));
            has.iter().copied().chain(new).collect()
        }
        (false, false) => asked,
    })
    .await?;
    if is_none {
        return Ok(Answer::nothing());
    }
    let shown = shown(&call.host, slug, &opened.repository, &pull).await?;
    Ok(Answer::ok(shown.into()))
}

/// `DELETE issues/{number}/labels/{id}`
pub(super) async fn remove(call: &Call, slug: &Slug, number: &str, id: &str) -> Result<Answer, Problem> {
    let opened = call.open(slug, Verb::Update).await?;
    let wanted = id.parse::<u64>().map_or_else(|_| json!([id]), |id| json!([id]));
    let gone = meant(&opened.repository, &wanted).await?;
    change_pull(call, slug, &opened, number, move |has| {
        has.iter().copied().filter(|id| !gone.contains(id)).collect()
    })
    .await?;
    Ok(Answer::nothing())
}

async fn change_pull(
    call: &Call,
    slug: &Slug,
    opened: &Opened,
    number: &str,
    make: impl FnOnce(&[u64]) -> Vec<u64> + Send + 'static,
) -> Result<Value, Problem> {
    let before = pulls::find(opened, number).await?;
    let changed = pulls::update(opened, before["number"].as_u64().unwrap_or(0), move |pull| {
        let labels = make(&ids(pull));
        if labels.len() > MAX_OF_PULL {
            let why = format!("a pull request has at most {MAX_OF_PULL} labels");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, why));
        }
        pull["labels"] = labels.into();
        Ok(())
    })
    .await?;
    pulls::tell_labels(call, slug, opened, &before, &changed).await;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::hexadecimal;

    #[test]
    fn colors() {
        for (text, expected) in [
            ("#00AABB", Some("00aabb")),
            ("00aabb", Some("00aabb")),
            ("#0ab", Some("00aabb")),
            ("red", None),
            ("#00aab", None),
            ("", None),
        ] {
            assert_eq!(hexadecimal(text).as_deref(), expected, "{text}");
        }
    }
}
