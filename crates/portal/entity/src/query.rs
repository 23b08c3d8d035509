//! Which entities a request means, in which order, and which page of them.
//!
//! A cursor carries the whole question and the place where the page before ended, so that a page is right also when entities have come
//! or gone between. It is opaque and nobody signs it: what is in it is judged as if it stood in the request, and the rights of who
//! asks are looked at each time, so that changing it gives nothing that asking anew would not.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::filter::{Filter, Searchable as _};
use crate::index::{Found, Index};
use crate::predicate::Predicate;
use crate::{InputError, lower};

/// Entities of a page, if nobody says.
pub const DEFAULT_LIMIT: usize = 200;
const MAX_CURSOR: usize = 64 * 1024;
const MAX_ORDERS: usize = 10;
const MAX_TERM: usize = 1000;
const MAX_FACETS: usize = 100;

/// By what entities are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// A dotted path, in lower case.
    pub field: String,
    /// The largest first.
    pub descending: bool,
}

/// Words that must be somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSearch {
    /// In lower case.
    pub term: String,
    /// Where to look, in lower case; none: everywhere.
    pub fields: Vec<String>,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    filters: Vec<String>,
    filter: Filter,
    asked: Option<Value>,
    predicate: Option<Predicate>,
    orders: Vec<Order>,
    text: Option<TextSearch>,
}

impl Query {
    /// With the `filter` parameters of a request.
    pub fn filtered<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, InputError> {
        let filters: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        Ok(Self {
            filter: Filter::parse(filters.iter().map(String::as_str))?,
            filters,
            ..Self::default()
        })
    }

    /// And with a condition as JSON.
    pub fn with_predicate(mut self, asked: Option<&Value>) -> Result<Self, InputError> {
        self.predicate = asked.map(Predicate::parse).transpose()?;
        self.asked = asked.cloned();
        Ok(self)
    }

    /// Sorted by `asc:metadata.name`, as `GET /entities` has it.
    pub fn ordered<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Result<Self, InputError> {
        let orders = texts.into_iter().map(|text| match text.split_once(':') {
            Some((direction @ ("asc" | "desc"), field)) if !field.is_empty() => Ok(Order {
                field: lower(field),
                descending: direction == "desc",
            }),
            _ => Err(InputError(format!(
                "Invalid order parameter \"{text}\", expected \"<asc or desc>:<field name>\""
            ))),
        });
        self.with_orders(orders.collect::<Result<_, _>>()?)
    }

    /// Sorted by `metadata.name,asc`, as `GET /entities/by-query` has it.
    pub fn ordered_by_field<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Result<Self, InputError> {
        let orders = texts.into_iter().map(|text| {
            let (field, direction) = text.split_once(',').unwrap_or((text, "asc"));
            match (direction, field.is_empty()) {
                ("asc" | "desc", false) => Ok(Order {
                    field: lower(field),
                    descending: direction == "desc",
                }),
                _ => Err(InputError(
                    "Invalid order field order, must be asc or desc".to_owned(),
                )),
            }
        });
        self.with_orders(orders.collect::<Result<_, _>>()?)
    }

    /// Sorted by `{"field": "metadata.name", "order": "asc"}`, as `POST /entities/by-query` has it.
    pub fn ordered_by<'t>(
        self,
        orders: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, InputError> {
        let orders = orders.into_iter().map(|(field, order)| match order {
            "asc" | "desc" if !field.is_empty() => Ok(Order {
                field: lower(field),
                descending: order == "desc",
            }),
            _ => Err(InputError(format!(
                "Invalid orderBy, expected {{\"field\": <field name>, \"order\": \"asc\" or \"desc\"}}, not {field:?} and {order:?}"
            ))),
        });
        self.with_orders(orders.collect::<Result<_, _>>()?)
    }

    fn with_orders(mut self, orders: Vec<Order>) -> Result<Self, InputError> {
        if orders.len() > MAX_ORDERS {
            return Err(InputError(format!(
                "Invalid order parameter, more than {MAX_ORDERS} fields"
            )));
        }
        self.orders = orders;
        Ok(self)
    }

    /// With words that must be somewhere; a term of spaces asks for nothing.
    pub fn searching(mut self, term: &str, fields: &[&str]) -> Result<Self, InputError> {
        if term.len() > MAX_TERM || fields.len() > MAX_FACETS {
            return Err(InputError("Invalid full text filter, it is too long".to_owned()));
        }
        let term = lower(term.trim());
        self.text = (!term.is_empty()).then(|| TextSearch {
            term,
            fields: fields.iter().map(|field| lower(field)).collect(),
        });
        Ok(self)
    }

    /// Whether an entity is meant.
    fn matches(&self, found: &Found<'_>) -> bool {
        self.filter.matches(found)
            && self
                .predicate
                .as_ref()
                .is_none_or(|predicate| predicate.matches(found))
            && self.text.as_ref().is_none_or(|text| text.matches(found))
    }

    /// All entities that are meant, sorted.
    pub fn run<'i>(&self, index: &'i Index) -> Vec<Found<'i>> {
        self.sorted(index).into_iter().map(|hit| hit.found).collect()
    }

    fn sorted<'i>(&self, index: &'i Index) -> Vec<Hit<'i>> {
        let keep = |found: Found<'i>| {
            self.matches(&found).then(|| Hit {
                values: self.orders.iter().map(|order| value_of(&found, order)).collect(),
                found,
            })
        };
        let mut hits: Vec<Hit<'i>> = match self.filter.only_kind() {
            Some(kind) => index.of_kind(kind).filter_map(keep).collect(),
            None => index.iter().filter_map(keep).collect(),
        };
        // Without an order they come as they should.
        if !self.orders.is_empty() {
            hits.sort_by(|a, b| {
                let values = compare(&self.orders, a.values.iter(), b.values.iter());
                values.then_with(|| a.found.reference.cmp(b.found.reference))
            });
        }
        hits
    }

    /// A page.
    pub fn page<'i>(&self, index: &'i Index, limit: usize, from: &From) -> Page<'i> {
        let hits = self.sorted(index);
        let place = |position: &Position| {
            let after = |hit: &Hit<'_>| {
                compare(&self.orders, hit.values.iter(), position.values.iter())
                    .then_with(|| hit.found.reference.cmp(&position.reference))
            };
            // The first that is not before the position, and whether it is there itself.
            let at = hits.partition_point(|hit| after(hit) == Ordering::Less);
            let is_there = hits.get(at).is_some_and(|hit| after(hit) == Ordering::Equal);
            (at, is_there)
        };
        let start = match from {
            From::Offset(offset) => (*offset).min(hits.len()),
            From::After(position) => {
                let (at, is_there) = place(position);
                at + usize::from(is_there)
            }
            From::Before(position) => place(position).0.saturating_sub(limit),
        };
        let end = match from {
            From::Before(position) => place(position).0,
            _ => start.saturating_add(limit).min(hits.len()),
        };
        let shown = &hits[start..end];
        let cursor = |hit: &Hit<'_>, back: bool| self.cursor(hit, back);
        let is_first = matches!(from, From::Offset(_));
        Page {
            total: hits.len(),
            next: shown
                .last()
                .filter(|_| end < hits.len())
                .map(|hit| cursor(hit, false)),
            previous: shown
                .first()
                .filter(|_| start > 0 && !is_first)
                .map(|hit| cursor(hit, true)),
            items: shown.iter().map(|hit| hit.found).collect(),
        }
    }

    fn cursor(&self, hit: &Hit<'_>, back: bool) -> String {
        let orders: Vec<String> = self
            .orders
            .iter()
            .map(|order| {
                format!(
                    "{},{}",
                    order.field,
                    if order.descending { "desc" } else { "asc" }
                )
            })
            .collect();
        let mut content = json!({
            "f": self.filters, "o": orders, "v": hit.values, "r": hit.found.reference, "b": back,
        });
        if let Some(asked) = &self.asked {
            content["q"] = asked.clone();
        }
        if let Some(text) = &self.text {
            content["t"] = json!({"term": text.term, "fields": text.fields});
        }
        URL_SAFE_NO_PAD.encode(content.to_string())
    }

    /// What a cursor asks for.
    pub fn from_cursor(cursor: &str) -> Result<(Self, From), InputError> {
        let malformed = || InputError("Malformed cursor, could not be parsed".to_owned());
        if cursor.len() > MAX_CURSOR {
            return Err(malformed());
        }
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| malformed())?;
        let content: Value = serde_json::from_slice(&bytes).map_err(|_| malformed())?;
        let texts = |value: &'_ Value| -> Result<Vec<String>, InputError> {
            let items = value.as_array().ok_or_else(malformed)?;
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(malformed)
        };
        let (filters, orders) = (texts(&content["f"])?, texts(&content["o"])?);
        let mut query = Self::filtered(filters.iter().map(String::as_str))?
            .with_predicate(content.get("q"))?
            .ordered_by_field(orders.iter().map(String::as_str))?;
        if let Some(text) = content.get("t") {
            let fields = texts(&text["fields"])?;
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            query = query.searching(text["term"].as_str().ok_or_else(malformed)?, &fields)?;
        }
        let values = content["v"].as_array().ok_or_else(malformed)?;
        let values: Option<Vec<Option<String>>> = values
            .iter()
            .map(|value| match value {
                Value::Null => Some(None),
                Value::String(text) => Some(Some(text.clone())),
                _ => None,
            })
            .collect();
        let position = Position {
            values: values
                .filter(|values| values.len() == query.orders.len())
                .ok_or_else(malformed)?,
            reference: content["r"].as_str().ok_or_else(malformed)?.to_owned(),
        };
        let from = match content["b"].as_bool() {
            Some(true) => From::Before(position),
            Some(false) => From::After(position),
            None => return Err(malformed()),
        };
        Ok((query, from))
    }
}

/// Where a page begins, or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// After so many.
    Offset(usize),
    /// After this one.
    After(Position),
    /// Before this one.
    Before(Position),
}

/// A place among sorted entities, which stays when they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    values: Vec<Option<String>>,
    reference: String,
}

/// Some of the entities that are meant.
#[derive(Debug)]
pub struct Page<'i> {
    /// They.
    pub items: Vec<Found<'i>>,
    /// How many there are on all pages.
    pub total: usize,
    /// The cursor of the page after it.
    pub next: Option<String>,
    /// The cursor of the page before it.
    pub previous: Option<String>,
}

struct Hit<'i> {
    found: Found<'i>,
    values: Vec<Option<String>>,
}

fn value_of(found: &Found<'_>, order: &Order) -> Option<String> {
    found.values(&order.field).flatten().next().map(str::to_owned)
}

/// Who has no value is last, whichever way.
fn compare<'v>(
    orders: &[Order],
    a: impl Iterator<Item = &'v Option<String>>,
    b: impl Iterator<Item = &'v Option<String>>,
) -> Ordering {
    for ((order, a), b) in orders.iter().zip(a).zip(b) {
        let by_value = match (a, b) {
            (Some(a), Some(b)) if order.descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
        };
        if by_value != Ordering::Equal {
            return by_value;
        }
    }
    Ordering::Equal
}

impl TextSearch {
    fn matches(&self, found: &Found<'_>) -> bool {
        if self.fields.is_empty() {
            // Everywhere: each word in some row.
            let rows = found.rows();
            return self.term.split_whitespace().all(|word| {
                rows.iter()
                    .any(|row| row.value.as_deref().is_some_and(|value| value.contains(word)))
            });
        }
        self.fields.iter().any(|field| {
            let mut values = found.values(field).flatten();
            values.any(|value| value.contains(&self.term))
        })
    }
}

/// How often each value is under a key, for every key.
pub fn facets(index: &Index, query: &Query, keys: &[&str]) -> Result<Value, InputError> {
    if keys.is_empty() {
        return Err(InputError("Missing facet parameter".to_owned()));
    }
    if keys.len() > MAX_FACETS {
        return Err(InputError(format!(
            "Invalid facet parameter, more than {MAX_FACETS}"
        )));
    }
    let found = query.run(index);
    let mut answer = serde_json::Map::new();
    for key in keys {
        let low = lower(key);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for entity in &found {
            if let Some(kind) = low.strip_prefix("relations.") {
                let related = entity.relations().filter(|(found, _)| lower(found) == kind);
                for (_, target) in related {
                    *counts.entry(target).or_default() += 1;
                }
                continue;
            }
            let rows = entity.rows().iter().filter(|row| *row.key == *low);
            for value in rows.filter_map(|row| row.written()) {
                *counts.entry(value).or_default() += 1;
            }
        }
        let counts = counts
            .into_iter()
            .map(|(value, count)| json!({"value": value, "count": count}));
        answer.insert((*key).to_owned(), counts.collect());
    }
    Ok(json!({ "facets": answer }))
}

#[cfg(test)]
mod tests;
