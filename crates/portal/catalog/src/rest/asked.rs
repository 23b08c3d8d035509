//! The question of `POST /locations/by-query`: a condition on locations, and a page of those that are meant.
//!
//! Pages follow the ids of locations, which never change. A cursor carries the question, as that of entities does, and nobody signs it:
//! what is in it is judged as if it stood in the request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairway_portal_entity::filter::Searchable;
use fairway_portal_entity::predicate::Predicate;
use serde_json::{Value, json};

use super::Refusal;

/// Locations of a page, if nobody says.
const LIMIT: usize = 1000;
const MAX_CURSOR: usize = 64 * 1024;
/// What can be asked for.
const FIELDS: [&str; 4] = ["id", "type", "target", "entityRef"];

/// Which locations, how many of them, and after which one.
pub(super) struct Asked {
    query: Value,
    predicate: Option<Predicate>,
    limit: usize,
    after: String,
}

impl Asked {
    /// What the body of a request says, or the cursor in it.
    pub(super) fn read(body: &Value) -> Result<Self, Refusal> {
        let content = match &body["cursor"] {
            Value::Null => body.clone(),
            Value::String(cursor) => opened(cursor)?,
            _ => return Err(Refusal::input("Cursor must be a string")),
        };
        let limit = match &content["limit"] {
            Value::Null => LIMIT,
            value => value
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .filter(|number| *number > 0)
                .ok_or_else(|| Refusal::input("Invalid limit, not a positive integer"))?,
        };
        let query = content["query"].clone();
        Ok(Self {
            predicate: match &query {
                Value::Null => None,
                query => Some(Predicate::parse(query)?),
            },
            query,
            limit,
            after: content["after"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// The page of these locations.
    pub(super) fn page(&self, locations: Vec<Value>) -> Value {
        let is_meant = |it: &Value| {
            let asked = self.predicate.as_ref();
            asked.is_none_or(|predicate| predicate.matches(&Row::of(it)))
        };
        let mut meant: Vec<Value> = locations.into_iter().filter(is_meant).collect();
        meant.sort_by(|one, other| id(one).cmp(id(other)));
        let total = meant.len();
        meant.retain(|it| id(it) > self.after.as_str());
        let is_more = meant.len() > self.limit;
        meant.truncate(self.limit);
        let mut info = json!({});
        if let Some(last) = meant.last().filter(|_| is_more) {
            let content = json!({"query": self.query, "limit": self.limit, "after": id(last)});
            info["nextCursor"] = URL_SAFE_NO_PAD.encode(content.to_string()).into();
        }
        json!({"items": meant, "totalItems": total, "pageInfo": info})
    }
}

fn opened(cursor: &str) -> Result<Value, Refusal> {
    let malformed = || Refusal::input("Malformed cursor, could not be parsed");
    if cursor.len() > MAX_CURSOR {
        return Err(malformed());
    }
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| malformed())?;
    serde_json::from_slice(&bytes).map_err(|_| malformed())
}

fn id(location: &Value) -> &str {
    location["id"].as_str().unwrap_or_default()
}

/// A location as it is searched: names and values in lower case.
struct Row(Vec<(String, String)>);

impl Row {
    fn of(location: &Value) -> Self {
        let field = |name: &&str| {
            let value = location[*name].as_str()?;
            Some((name.to_lowercase(), value.to_lowercase()))
        };
        Self(FIELDS.iter().filter_map(field).collect())
    }
}

impl Searchable for Row {
    fn values<'s>(&'s self, key: &str) -> Box<dyn Iterator<Item = Option<&'s str>> + 's> {
        let found = self.0.iter().find(|(name, _)| name == key);
        Box::new(found.map(|(_, value)| Some(value.as_str())).into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locations() -> Vec<Value> {
        let one = |id: &str, target: &str| json!({"id": id, "type": "url", "target": target});
        vec![
            one("3", "https://git/c"),
            one("1", "https://git/A"),
            one("2", "https://other/b"),
        ]
    }

    fn ids(page: &Value) -> Vec<&str> {
        page["items"].as_array().unwrap().iter().map(id).collect()
    }

    #[test]
    fn locations_are_filtered() {
        for (query, expected) in [
            (Value::Null, vec!["1", "2", "3"]),
            (json!({"target": "https://git/a"}), vec!["1"]),
            (json!({"target": {"$hasPrefix": "https://git/"}}), vec!["1", "3"]),
            (json!({"$not": {"id": "2"}}), vec!["1", "3"]),
            (json!({"type": "file"}), vec![]),
            (json!({"nothing": {"$exists": true}}), vec![]),
        ] {
            let asked = Asked::read(&json!({"query": query})).ok().unwrap();
            let page = asked.page(locations());
            assert_eq!(ids(&page), expected, "{query}");
            assert_eq!(page["totalItems"], expected.len(), "{query}");
            assert!(page["pageInfo"].get("nextCursor").is_none(), "{query}");
        }
    }

    #[test]
    fn pages_follow_one_another_and_keep_the_question() {
        let mut body = json!({"limit": 1, "query": {"target": {"$hasPrefix": "https://git/"}}});
        let mut found = Vec::new();
        loop {
            let page = Asked::read(&body).ok().unwrap().page(locations());
            assert_eq!(page["totalItems"], 2);
            found.extend(ids(&page).into_iter().map(str::to_owned));
            let Some(cursor) = page["pageInfo"].get("nextCursor") else {
                break;
            };
            body = json!({"cursor": cursor});
        }
        assert_eq!(found, ["1", "3"]);
    }

    #[test]
    fn nonsense_is_refused() {
        for body in [
            json!({"cursor": 1}),
            json!({"cursor": "%"}),
            json!({"limit": 0}),
            json!({"limit": "x"}),
            json!({"query": []}),
        ] {
            assert!(Asked::read(&body).is_err(), "{body}");
        }
    }
}
