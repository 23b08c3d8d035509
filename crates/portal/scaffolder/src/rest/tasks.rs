//! Which tasks a list has, and in which order, as Backstage's `GET /v2/tasks` is asked.

use std::cmp::Ordering;

use serde_json::Value;

use super::shapes;

/// Tasks of a page, if nothing is said and at most.
const PAGE: usize = 100;
const MOST: usize = 500;

/// What was asked.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted {
    created_by: Vec<String>,
    status: Vec<String>,
    order: Vec<(Field, bool)>,
    offset: usize,
    limit: usize,
}

/// By what tasks can be put in order: the columns of Backstage's table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Id,
    Status,
    CreatedAt,
    CreatedBy,
    LastHeartbeatAt,
}

impl Field {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "id" => Self::Id,
            "status" => Self::Status,
            "created_at" | "createdAt" => Self::CreatedAt,
            "created_by" | "createdBy" => Self::CreatedBy,
            "last_heartbeat_at" | "lastHeartbeatAt" => Self::LastHeartbeatAt,
            _ => return None,
        })
    }

    fn of(self, voyage: &Value) -> String {
        let text = |pointer: &str| {
            let found = voyage.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        match self {
            Self::Id => shapes::id(voyage),
            Self::Status => shapes::status(voyage).to_owned(),
            Self::CreatedAt => text("/metadata/creationTimestamp"),
            Self::CreatedBy => shapes::created_by(voyage),
            Self::LastHeartbeatAt => shapes::last_heartbeat(voyage).unwrap_or_default().to_owned(),
        }
    }
}

impl Wanted {
    /// Reads what was asked; each of `createdBy`, `status` and `order` can be given several times.
    pub(super) fn read(query: &[(String, String)]) -> Result<Self, String> {
        let all = |key: &str| -> Vec<String> {
            let given = query.iter().filter(|(name, _)| name == key);
            given.map(|(_, value)| value.clone()).collect()
        };
        let number = |key: &str, otherwise: usize| match all(key).first() {
            None => Ok(otherwise),
            Some(text) => text
                .parse()
                .map_err(|_| format!("Invalid {key} query, expected a number: {text:?}")),
        };
        let order = all("order").into_iter().map(|item| {
            let (direction, name) = item.split_once(':').unwrap_or_default();
            let field = Field::parse(name).filter(|_| matches!(direction, "asc" | "desc"));
            let field = field.ok_or_else(|| {
                format!("Invalid order parameter \"{item}\", expected \"<asc or desc>:<field name>\"")
            })?;
            Ok((field, direction == "desc"))
        });
        let order = order.collect::<Result<Vec<_>, String>>()?;
        Ok(Self {
            created_by: all("createdBy"),
            status: all("status"),
            order: match order.is_empty() {
                true => vec![(Field::CreatedAt, true)],
                false => order,
            },
            offset: number("offset", 0)?,
            limit: number("limit", PAGE)?.min(MOST),
        })
    }

    /// The runs of this page as tasks, and how many there are in all.
    pub(super) fn of(&self, mut found: Vec<Value>) -> (Vec<Value>, usize) {
        let is_one_of = |wanted: &[String], it: &str| wanted.is_empty() || wanted.iter().any(|one| one == it);
        found.retain(|voyage| {
            is_one_of(&self.created_by, &shapes::created_by(voyage))
                && is_one_of(&self.status, shapes::status(voyage))
        });
        found.sort_by(|one, other| {
            let mut compared = self.order.iter().map(|(field, is_down)| {
                let order = field.of(one).cmp(&field.of(other));
                if *is_down { order.reverse() } else { order }
            });
            compared.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let total = found.len();
        let page = found.iter().skip(self.offset).take(self.limit);
        (page.map(shapes::task).collect(), total)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(query: &str) -> Result<String, String> {
        let runs = [
            ("a", "acme/alice", "Succeeded", "2026-01-01T00:00:01Z"),
            ("b", "acme/bob", "Failed", "2026-01-01T00:00:02Z"),
            ("c", "acme/alice", "Running", "2026-01-01T00:00:03Z"),
            ("d", "acme/carol", "Succeeded", "2026-01-01T00:00:04Z"),
        ];
        let runs = runs.map(|(name, user, phase, at)| {
            json!({"metadata": {"name": name, "namespace": "n", "creationTimestamp": at},
                "spec": {"requestedBy": {"username": user}}, "status": {"phase": phase}})
        });
        let query: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let (tasks, total) = Wanted::read(&query)?.of(runs.to_vec());
        let ids: String = tasks
            .iter()
            .filter_map(|task| task["id"].as_str()?.strip_prefix("n."))
            .collect();
        Ok(format!("{ids} of {total}"))
    }

    #[test]
    fn tasks_are_chosen_and_put_in_order() {
        for (query, expected) in [
            ("", "dcba of 4"),
            ("createdBy=user:default/alice", "ca of 2"),
            (
                "createdBy=user:default/alice&createdBy=user:default/bob",
                "cba of 3",
            ),
            ("status=completed", "da of 2"),
            ("status=completed&status=failed", "dba of 3"),
            (
                "status=completed&status=failed&createdBy=user%3Adefault%2Falice",
                "a of 1",
            ),
            ("order=asc:created_at", "abcd of 4"),
            ("order=asc:status&order=desc:createdAt", "dabc of 4"),
            ("order=desc:created_by&order=asc:id", "dbac of 4"),
            ("limit=2&offset=1", "cb of 4"),
            ("limit=0", " of 4"),
            ("createdBy=user:default/nobody", " of 0"),
        ] {
            assert_eq!(asked(query).as_deref(), Ok(expected), "{query}");
        }
        for query in [
            "order=created_at",
            "order=up:created_at",
            "order=asc:password",
            "order=",
            "limit=x",
            "offset=-1",
        ] {
            assert!(asked(query).unwrap_err().starts_with("Invalid "), "{query}");
        }
    }
}
