//! What the client wants to read: the format and the form.

use http::HeaderMap;

use crate::query::Query;
use crate::status::ApiError;

/// How an answer is written, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Bytes.
    pub format: Format,
    /// Content.
    pub form: Form,
}

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Compact JSON.
    Json,
    /// JSON for people.
    PrettyJson,
    /// YAML.
    Yaml,
}

/// What is sent of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    Object,
    /// Rows and columns.
    Table,
    /// Only `metadata`.
    Metadata,
}

const OFFERED: &str = "application/json, application/yaml";

impl Accept {
    /// Plain JSON.
    pub const JSON: Self = Self {
        format: Format::Json,
        form: Form::Object,
    };

    /// Chooses among what the client accepts. Protobuf is not offered; clients that prefer it say what else will do.
    pub fn read(headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        Self::choose(headers, query, true)
    }

    /// The same for what has no rows and columns, such as the answer to a review.
    pub fn read_without_table(headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        Self::choose(headers, query, false)
    }

    fn choose(headers: &HeaderMap, query: &Query, tables: bool) -> Result<Self, ApiError> {
        let pretty = wants_pretty(headers, query);
        let json = if pretty { Format::PrettyJson } else { Format::Json };
        let Some(accept) = headers.get(http::header::ACCEPT) else {
            return Ok(Self {
                format: json,
                form: Form::Object,
            });
        };
        let accept = accept.to_str().map_err(|_| ApiError::not_acceptable(OFFERED))?;
        if accept.trim().is_empty() {
            return Ok(Self {
                format: json,
                form: Form::Object,
            });
        }
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            let format = match parts.next().unwrap_or("") {
                "application/json" | "*/*" | "application/*" => json,
                "application/yaml" => Format::Yaml,
                _ => continue,
            };
            let (mut kind, mut group, mut version) = ("", "", "");
            for parameter in parts {
                match parameter.split_once('=') {
                    Some(("as", value)) => kind = value,
                    Some(("g", value)) => group = value,
                    Some(("v", value)) => version = value,
                    _ => {}
                }
            }
            let form = match (kind, group, version) {
                ("", _, _) => Form::Object,
                ("Table", "meta.k8s.io", "v1" | "v1beta1") if tables => Form::Table,
                ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => {
                    Form::Metadata
                }
                _ => continue,
            };
            return Ok(Self { format, form });
        }
        Err(ApiError::not_acceptable(OFFERED))
    }
}

fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    if query.get("pretty").is_some() {
        return query.flag("pretty");
    }
    // People read what these fetch.
    headers
        .get(http::header::USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .is_some_and(|agent| {
            ["curl", "Wget", "Mozilla/5.0"]
                .iter()
                .any(|p| agent.starts_with(p))
        })
}

/// Whether the client takes gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(http::header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .any(|value| {
            value.split(',').any(|coding| {
                let mut parts = coding.split(';').map(str::trim);
                parts.next() == Some("gzip") && !parts.any(|p| p == "q=0")
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str) -> Result<(Format, Form), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::ACCEPT, accept.parse().unwrap());
        Accept::read(&headers, &Query::default())
            .map(|a| (a.format, a.form))
            .map_err(|e| e.code)
    }

    #[test]
    fn the_first_offer_that_we_have_is_taken() {
        assert_eq!(check("application/json"), Ok((Format::Json, Form::Object)));
        assert_eq!(
            check("application/vnd.kubernetes.protobuf, */*"),
            Ok((Format::Json, Form::Object))
        );
        assert_eq!(check("application/yaml"), Ok((Format::Yaml, Form::Object)));
        assert_eq!(
            check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            Ok((Format::Json, Form::Table))
        );
        assert_eq!(
            check("application/json;as=Unheard;v=v1;g=meta.k8s.io,application/json"),
            Ok((Format::Json, Form::Object)),
            "an unknown form falls through to the next offer"
        );
        assert_eq!(check("application/vnd.kubernetes.protobuf"), Err(406));
        assert_eq!(check("image/png"), Err(406));
    }
}
