//! The filter language of upstream's API: `filter=kind=component,spec.type=service`, several filters meaning any of them.
//!
//! Within a filter all statements must hold; a key that is named twice may have either value; a key without a value must be there.

use crate::{InputError, lower};

/// The longest filter, and the most statements in all filters of a request.
const MAX_LENGTH: usize = 16 * 1024;
const MAX_STATEMENTS: usize = 500;

/// What is asked of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// In lower case.
    pub key: String,
    /// It must be there, whatever its value.
    pub exists: bool,
    /// It must have one of these, in lower case; none: any.
    pub values: Vec<String>,
}

/// Any of these, of which all statements hold. Empty: everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub Vec<Vec<Statement>>);

/// What can be asked about an entity.
pub trait Searchable {
    /// The values under a key; none for one that is null or too long to search.
    fn values<'s>(&'s self, key: &str) -> Box<dyn Iterator<Item = Option<&'s str>> + 's>;
}

impl Filter {
    /// Reads the `filter` parameters of a request.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, InputError> {
        let mut any = Vec::new();
        let mut count = 0;
        for text in texts {
            if text.len() > MAX_LENGTH {
                return Err(InputError(format!(
                    "Invalid filter, it has {} bytes, more than {MAX_LENGTH}",
                    text.len()
                )));
            }
            let all = statements(text)?;
            count += all.len();
            if count > MAX_STATEMENTS {
                return Err(InputError(format!(
                    "Invalid filter, more than {MAX_STATEMENTS} statements"
                )));
            }
            if !all.is_empty() {
                any.push(all);
            }
        }
        Ok(Self(any))
    }

    /// Whether an entity is meant.
    pub fn matches(&self, entity: &dyn Searchable) -> bool {
        self.0.is_empty() || self.0.iter().any(|all| all.iter().all(|one| one.holds(entity)))
    }

    /// The kind that every matching entity has, where the filter says so.
    pub fn only_kind(&self) -> Option<&str> {
        let [all] = self.0.as_slice() else {
            return None;
        };
        let kinds = all.iter().find(|statement| statement.key == "kind")?;
        match kinds.values.as_slice() {
            [kind] => Some(kind),
            _ => None,
        }
    }
}

fn statements(text: &str) -> Result<Vec<Statement>, InputError> {
    let mut all: Vec<Statement> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = match part.split_once('=') {
            None => (part, None),
            Some((key, value)) => (key.trim(), Some(value.trim())),
        };
        if key.is_empty() {
            return Err(InputError(format!(
                "Invalid filter, '{part}' is not a valid statement (expected a string on the form a=b or a= or a)"
            )));
        }
        let key = lower(key);
        let at = all.iter().position(|statement| statement.key == key);
        let at = at.unwrap_or_else(|| {
            all.push(Statement {
                key,
                exists: false,
                values: Vec::new(),
            });
            all.len() - 1
        });
        match value {
            None => all[at].exists = true,
            Some(value) => all[at].values.push(lower(value)),
        }
    }
    Ok(all)
}

impl Statement {
    fn holds(&self, entity: &dyn Searchable) -> bool {
        match self.values.is_empty() {
            true => entity.values(&self.key).next().is_some(),
            false => entity
                .values(&self.key)
                .flatten()
                .any(|value| self.values.iter().any(|wanted| wanted == value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::rows::{self, Keys, Row};

    struct Rows(Vec<Row>);

    impl Searchable for Rows {
        fn values<'s>(&'s self, key: &str) -> Box<dyn Iterator<Item = Option<&'s str>> + 's> {
            let key = key.to_owned();
            let rows = self.0.iter().filter(move |row| *row.key == *key);
            Box::new(rows.map(|row| row.value.as_deref()))
        }
    }

    #[test]
    fn filters_mean_what_upstream_means() {
        let entity = json!({
            "kind": "Component",
            "metadata": {"name": "Web", "annotations": {"backstage.io/kubernetes-id": "web"}, "tags": ["java", "vm"]},
            "spec": {"type": "service", "owner": "team-a", "empty": ""},
        });
        let rows = Rows(rows::of(&entity, "u", &mut Keys::default()));
        for (filters, matches) in [
            (vec!["kind=component"], true),
            (vec!["KIND=Component,Spec.Type=SERVICE"], true),
            (vec!["kind=component,spec.type=website"], false),
            (vec!["kind=api", "spec.type=service"], true),
            (vec!["kind=api", "spec.type=website"], false),
            // The same key twice: either.
            (vec!["spec.type=website,spec.type=service"], true),
            (vec!["metadata.annotations.backstage.io/kubernetes-id"], true),
            (vec!["metadata.annotations.backstage.io/none"], false),
            (vec!["metadata.tags=vm"], true),
            (vec!["metadata.tags.vm=true,metadata.tags.java=true"], true),
            (vec!["metadata.tags.vm=true,metadata.tags.go=true"], false),
            (vec!["metadata.namespace=default"], true),
            (vec!["spec.empty="], true),
            (vec!["spec.owner="], false),
            (vec![""], true),
            (vec![" , "], true),
            (vec![], true),
        ] {
            let filter = Filter::parse(filters.iter().copied()).unwrap();
            assert_eq!(filter.matches(&rows), matches, "{filters:?}");
        }
        assert!(
            Filter::parse(["=x"])
                .unwrap_err()
                .0
                .contains("'=x' is not a valid statement")
        );
        assert!(Filter::parse(["a,".repeat(MAX_LENGTH).as_str()]).is_err());
        let many = "a=b,".repeat(MAX_STATEMENTS) + "c";
        // The same key is one statement.
        assert!(Filter::parse([many.as_str()]).is_ok());
        let many: Vec<String> = (0..=MAX_STATEMENTS).map(|n| format!("k{n}")).collect();
        assert!(Filter::parse(many.iter().map(String::as_str)).is_err());
    }

    #[test]
    fn one_kind_is_known_beforehand() {
        for (filters, kind) in [
            (vec!["kind=Component,spec.type=x"], Some("component")),
            (vec!["kind=a", "kind=b"], None),
            (vec!["kind=a,kind=b"], None),
            (vec!["spec.type=x"], None),
        ] {
            let filter = Filter::parse(filters.iter().copied()).unwrap();
            assert_eq!(filter.only_kind(), kind, "{filters:?}");
        }
    }

    proptest! {
        /// Whatever is typed is read or refused, and reading is the same in any case of letters.
        #[test]
        fn case_does_not_matter(text in "[a-zA-Z.=, ]{0,60}") {
            prop_assert_eq!(
                Filter::parse([text.as_str()]).ok(),
                Filter::parse([text.to_uppercase().as_str()]).ok()
            );
        }

        #[test]
        fn nothing_breaks_the_reader(text in "\\PC{0,100}") {
            let _ = Filter::parse([text.as_str()]);
        }
    }
}
