//! The query string, and the options that upstream defines for reads and writes.

use fairway_kernel_schema::field::{FieldError, Path};

use crate::status::ApiError;

/// Decoded parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes `a=b&c=d`.
    pub fn parse(raw: &str) -> Result<Self, ApiError> {
        Ok(Self(
            form_urlencoded::parse(raw.as_bytes()).into_owned().collect(),
        ))
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(k, _)| k == name)
            .map(|(_, v)| v.as_str())
    }

    /// A boolean parameter as upstream reads it: present and neither `false` nor `0`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| !matches!(v, "false" | "0"))
    }

    fn non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|v| !v.is_empty())
    }

    /// A number, or 400.
    pub fn integer<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, ApiError> {
        self.non_empty(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    ApiError::bad_request(format!(
                        "the query parameter {name}={text:?} is not a valid number"
                    ))
                })
            })
            .transpose()
    }
}

/// How a `resourceVersion` of a list is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// At least as new.
    NotOlderThan,
    /// Exactly this one.
    Exact,
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Label selector, unparsed.
    pub label_selector: String,
    /// Field selector, unparsed.
    pub field_selector: String,
    /// `resourceVersion`; empty: most recent.
    pub resource_version: String,
    /// `resourceVersionMatch`.
    pub version_match: Option<VersionMatch>,
    /// Page size; 0: everything.
    pub limit: usize,
    /// Where the next page begins.
    pub continue_token: String,
    /// How long a watch lasts.
    pub timeout_seconds: Option<u64>,
    /// Whether the watcher wants bookmarks.
    pub allow_bookmarks: bool,
    /// Whether the watch begins with what there is.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads and checks them, with the rules and sentences of upstream.
    pub(crate) fn read(query: &Query, watch: bool) -> Result<Self, ApiError> {
        let version_match = match query.non_empty("resourceVersionMatch") {
            None => None,
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some("Exact") => Some(VersionMatch::Exact),
            Some(other) => {
                return Err(invalid(
                    "resourceVersionMatch",
                    format!("Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\""),
                ));
            }
        };
        let limit: i64 = query.integer("limit")?.unwrap_or(0);
        let options = Self {
            label_selector: query.get("labelSelector").unwrap_or("").to_owned(),
            field_selector: query.get("fieldSelector").unwrap_or("").to_owned(),
            resource_version: query.get("resourceVersion").unwrap_or("").to_owned(),
            version_match,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.get("continue").unwrap_or("").to_owned(),
            timeout_seconds: query.integer("timeoutSeconds")?,
            allow_bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events: query
                .get("sendInitialEvents")
                .map(|_| query.flag("sendInitialEvents")),
        };
        options.check(watch)?;
        Ok(options)
    }

    fn check(&self, watch: bool) -> Result<(), ApiError> {
        if watch {
            return match (self.send_initial_events, self.version_match) {
                (Some(_), Some(VersionMatch::NotOlderThan)) | (None, None) => Ok(()),
                (Some(_), _) => Err(invalid(
                    "resourceVersionMatch",
                    "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan".to_owned(),
                )),
                (None, Some(_)) => Err(invalid(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                        .to_owned(),
                )),
            };
        }
        if self.send_initial_events.is_some() {
            return Err(invalid(
                "sendInitialEvents",
                "Forbidden: sendInitialEvents is forbidden for list".to_owned(),
            ));
        }
        if let Some(version_match) = self.version_match {
            if self.resource_version.is_empty() {
                return Err(invalid(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
                        .to_owned(),
                ));
            }
            if !self.continue_token.is_empty() {
                return Err(invalid(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch is forbidden when continue is provided".to_owned(),
                ));
            }
            if version_match == VersionMatch::Exact && self.resource_version == "0" {
                return Err(invalid(
                    "resourceVersionMatch",
                    "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }
}

fn invalid(field: &str, why: String) -> ApiError {
    use crate::status::{Cause, Details};
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {why}");
    let reason = if why.starts_with("Forbidden") {
        "FieldValueForbidden"
    } else {
        "FieldValueNotSupported"
    };
    ApiError {
        code: 422,
        reason: "Invalid",
        message,
        details: Some(Details {
            group: "meta.k8s.io".to_owned(),
            kind: "ListOptions".to_owned(),
            causes: vec![Cause {
                reason: reason.to_owned(),
                message: why,
                field: field.to_owned(),
            }],
            ..Details::default()
        }),
        continue_token: None,
    }
}

/// What happens to unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Dropped in silence.
    Ignore,
    /// Dropped with a warning.
    Warn,
    /// Refused.
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    /// Nothing is stored.
    pub dry_run: bool,
    /// Who owns the fields.
    pub field_manager: Option<String>,
    /// What happens to unknown fields.
    pub field_validation: FieldValidation,
    /// Server-side apply takes conflicting fields over.
    pub force: Option<bool>,
}

impl WriteOptions {
    /// Reads and checks them.
    pub(crate) fn read(query: &Query) -> Result<Self, ApiError> {
        let field_validation = match query.non_empty("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                return Err(ApiError::invalid_options(
                    "CreateOptions",
                    FieldError::not_supported(
                        &Path::new("fieldValidation"),
                        other,
                        &["", "Ignore", "Strict", "Warn"],
                    ),
                ));
            }
        };
        let field_manager = query.non_empty("fieldManager").map(str::to_owned);
        if let Some(manager) = &field_manager
            && (manager.len() > 128 || manager.chars().any(char::is_control))
        {
            return Err(ApiError::invalid_options(
                "CreateOptions",
                FieldError::invalid(
                    &Path::new("fieldManager"),
                    manager.as_str(),
                    "it may be at most 128 printable characters long",
                ),
            ));
        }
        Ok(Self {
            dry_run: dry_run(query.all("dryRun"))?,
            field_manager,
            field_validation,
            force: query.get("force").map(|_| query.flag("force")),
        })
    }
}

/// Reads `dryRun`, of which upstream knows only `All`.
pub(crate) fn dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Result<bool, ApiError> {
    let mut dry = false;
    for value in values.filter(|v| !v.is_empty()) {
        if value != "All" {
            return Err(ApiError::invalid_options(
                "CreateOptions",
                FieldError::not_supported(&Path::new("dryRun"), value, &["All"]),
            ));
        }
        dry = true;
    }
    Ok(dry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(raw: &str, watch: bool) -> Result<ListOptions, u16> {
        ListOptions::read(&Query::parse(raw).unwrap(), watch).map_err(|e| e.code)
    }

    #[test]
    fn list_options_are_checked_as_upstream_checks_them() {
        let cases = [
            ("resourceVersionMatch=Exact", false, Err(422), "needs a version"),
            (
                "resourceVersion=0&resourceVersionMatch=Exact",
                false,
                Err(422),
                "0 means any",
            ),
            ("resourceVersion=5&resourceVersionMatch=Exact", false, Ok(()), ""),
            (
                "resourceVersion=5&resourceVersionMatch=Sometimes",
                false,
                Err(422),
                "unknown word",
            ),
            ("sendInitialEvents=true", true, Err(422), "needs NotOlderThan"),
            (
                "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                true,
                Ok(()),
                "",
            ),
            ("sendInitialEvents=true", false, Err(422), "watch only"),
            ("limit=ten", false, Err(400), "not a number"),
        ];
        for (raw, watch, expected, why) in cases {
            assert_eq!(list(raw, watch).map(|_| ()), expected, "{raw}: {why}");
        }
    }

    #[test]
    fn dry_run_knows_one_word() {
        assert_eq!(dry_run(["All"].into_iter()), Ok(true));
        assert_eq!(dry_run([""].into_iter()), Ok(false));
        assert!(dry_run(["Some"].into_iter()).is_err());
    }
}
