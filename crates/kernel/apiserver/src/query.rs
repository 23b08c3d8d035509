//! The query string, and the options that upstream defines for reads and writes.

use fairway_kernel_kinds::at::{At, Errors};
use fairway_kernel_kinds::meta;
use fairway_kernel_schema::field::{FieldError, Path};
use serde_json::Value;

use crate::status::ApiError;

/// Decoded parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes `a=b&c=d`. Like Go, drops the pairs that are not well encoded or that hold a semicolon.
    pub fn parse(raw: &str) -> Result<Self, ApiError> {
        Ok(Self(
            raw.split('&')
                .filter(|pair| !pair.contains(';') && is_well_encoded(pair))
                .flat_map(|pair| form_urlencoded::parse(pair.as_bytes()).into_owned())
                .collect(),
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
                text.parse()
                    .map_err(|_| ApiError::bad_request(number_fault("ParseInt", text)))
            })
            .transpose()
    }
}

fn is_well_encoded(pair: &str) -> bool {
    pair.split('%').skip(1).all(|after| {
        let mut digits = after.bytes();
        let hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_hexdigit());
        hex(digits.next()) && hex(digits.next())
    })
}

/// What Go says of a text that is not a number.
pub(crate) fn number_fault(function: &str, text: &str) -> String {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let signed = digits.len() != text.len();
    let why = if numeric && !(signed && function == "ParseUint") {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!(
        "strconv.{function}: parsing {}: {why}",
        fairway_kernel_schema::field::quoted(text)
    )
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
                    format!(
                        "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                    ),
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
                (Some(_), given) => {
                    let path = Path::new("resourceVersionMatch");
                    let mut errors = vec![FieldError::forbidden(
                        &path,
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    )];
                    if given == Some(VersionMatch::Exact) {
                        errors.push(FieldError::not_supported(&path, "Exact", &["NotOlderThan"]));
                    }
                    Err(ApiError::invalid_options_all("ListOptions", &errors))
                }
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
    /// Reads and checks the options of this kind: `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    pub(crate) fn read(kind: &str, query: &Query) -> Result<Self, ApiError> {
        let mut errors = Errors::new();
        let field_manager = query.non_empty("fieldManager").map(str::to_owned);
        if let Some(manager) = &field_manager {
            meta::validate_field_manager(&mut errors, &At::new("fieldManager"), manager);
        }
        let mut errors = errors.into_vec();
        let dry_run = match dry_run(query.all("dryRun")) {
            Ok(dry_run) => dry_run,
            Err(error) => {
                errors.push(error);
                false
            }
        };
        let field_validation = match query.non_empty("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                errors.push(FieldError::not_supported(
                    &Path::new("fieldValidation"),
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if !errors.is_empty() {
            return Err(ApiError::invalid_options_all(kind, &errors));
        }
        Ok(Self {
            dry_run,
            field_manager,
            field_validation,
            force: query.get("force").map(|_| query.flag("force")),
        })
    }
}

/// Reads `dryRun`, of which upstream knows only `All`.
pub(crate) fn dry_run<'a>(values: impl Iterator<Item = &'a str>) -> Result<bool, FieldError> {
    let values: Vec<&str> = values.filter(|v| !v.is_empty()).collect();
    if values.iter().any(|value| *value != "All") {
        return Err(FieldError::not_supported(
            &Path::new("dryRun"),
            Value::from(values),
            &["All"],
        ));
    }
    Ok(!values.is_empty())
}

/// Refuses a `timeout` that Go could not read.
pub(crate) fn check_timeout(query: &Query) -> Result<(), ApiError> {
    let Some(text) = query.non_empty("timeout") else {
        return Ok(());
    };
    match duration_fault(text) {
        None => Ok(()),
        Some(fault) => Err(ApiError::bad_request(format!(
            "invalid timeout specified in the request URL - time: {fault}"
        ))),
    }
}

/// What Go says of a text that is not a duration such as `1h30m` or `1.5s`.
fn duration_fault(text: &str) -> Option<String> {
    let shown = fairway_kernel_schema::field::quoted(text);
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return Some(format!("invalid duration {shown}"));
    }
    while !rest.is_empty() {
        let number = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (digits, after) = rest.split_at(number);
        if !digits.bytes().any(|b| b.is_ascii_digit()) || digits.matches('.').count() > 1 {
            return Some(format!("invalid duration {shown}"));
        }
        let unit = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        match unit {
            "" => return Some(format!("missing unit in duration {shown}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => {}
            _ => {
                let unit = fairway_kernel_schema::field::quoted(unit);
                return Some(format!("unknown unit {unit} in duration {shown}"));
            }
        }
        rest = after;
    }
    None
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

    #[test]
    fn durations_are_go_s() {
        for (text, expected) in [
            ("1h30m", None),
            ("1.5s", None),
            ("0", None),
            ("soon", Some("invalid duration \"soon\"")),
            ("5", Some("missing unit in duration \"5\"")),
            ("5d", Some("unknown unit \"d\" in duration \"5d\"")),
        ] {
            assert_eq!(duration_fault(text).as_deref(), expected, "{text}");
        }
    }
}
