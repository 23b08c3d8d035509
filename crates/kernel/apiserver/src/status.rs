//! What went wrong, as the `Status` object that Kubernetes clients read.
//!
//! Every refusal of the kernel is an [`ApiError`]; code, reason, message and causes are those of upstream, because
//! clients branch on them (`IsNotFound`, `IsConflict`, retry hints) and people know the sentences.

use fairway_kernel_schema::field::FieldError;
use fairway_kernel_store::StoreError;
use serde_json::{Map, Value, json};

/// A refusal, ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError {
    /// HTTP code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// What it is about.
    pub details: Option<Details>,
    /// Where an expired list can be continued, with what is there now.
    pub continue_token: Option<String>,
}

/// The object that an error is about, and what is wrong in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its resource or kind.
    pub kind: String,
    /// What is wrong, field by field.
    pub causes: Vec<Cause>,
    /// When to try again.
    pub retry_after_seconds: u32,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// Machine-readable.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The field's path.
    pub field: String,
}

/// The reason of answers that are no `Status`.
const PLAIN_TEXT: &str = "\0text";

/// Group and resource (or kind) with a name: what most refusals are about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// API group.
    pub group: &'a str,
    /// Plural resource, or the kind.
    pub resource: &'a str,
    /// Name.
    pub name: &'a str,
}

impl About<'_> {
    /// `deployments.apps`, `configmaps`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Option<Details> {
        Some(Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            ..Details::default()
        })
    }
}

impl ApiError {
    fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::plain(401, "Unauthorized", "Unauthorized")
    }

    /// 403, about an object.
    pub fn forbidden(about: About<'_>, why: impl std::fmt::Display) -> Self {
        let message = if about.name.is_empty() {
            format!("{} is forbidden: {why}", about.qualified())
        } else {
            format!("{} \"{}\" is forbidden: {why}", about.qualified(), about.name)
        };
        Self {
            code: 403,
            reason: "Forbidden",
            message,
            details: about.details(),
            continue_token: None,
        }
    }

    /// 403 with a ready sentence (non-resource URLs).
    pub fn forbidden_text(message: impl Into<String>) -> Self {
        Self {
            details: Some(Details::default()),
            ..Self::plain(403, "Forbidden", message)
        }
    }

    /// 404, about an object.
    pub fn not_found(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" not found", about.qualified(), about.name);
        Self {
            code: 404,
            reason: "NotFound",
            message,
            details: about.details(),
            continue_token: None,
        }
    }

    /// 404, for a workspace, to those who may know that it is not there.
    pub fn workspace_not_found(named: &str) -> Self {
        Self {
            message: format!("workspace {named:?} does not exist"),
            ..Self::no_such_path()
        }
    }

    /// 404, for a path that leads nowhere.
    pub fn no_such_path() -> Self {
        Self {
            details: Some(Details::default()),
            ..Self::plain(
                404,
                "NotFound",
                "the server could not find the requested resource",
            )
        }
    }

    /// 404 of paths that no part of the API claims: a text, as upstream's outermost handler answers.
    pub fn page_not_found() -> Self {
        Self::plain(404, PLAIN_TEXT, "404 page not found\n")
    }

    /// Whether the message is the whole answer, without a `Status` around it.
    pub fn is_plain_text(&self) -> bool {
        self.reason == PLAIN_TEXT
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        Self {
            details: Some(Details::default()),
            ..Self::plain(
                405,
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            )
        }
    }

    /// 406.
    pub fn not_acceptable(offered: &str) -> Self {
        Self::plain(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {offered}"),
        )
    }

    /// 409 because the object is there already.
    pub fn already_exists(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", about.qualified(), about.name);
        Self {
            code: 409,
            reason: "AlreadyExists",
            message,
            details: about.details(),
            continue_token: None,
        }
    }

    /// 409.
    pub fn conflict(about: About<'_>, why: impl std::fmt::Display) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{}\": {why}",
            about.qualified(),
            about.name
        );
        Self {
            code: 409,
            reason: "Conflict",
            message,
            details: about.details(),
            continue_token: None,
        }
    }

    /// 409 because somebody else wrote first.
    pub fn modified(about: About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409 of server-side apply.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self {
            details: Some(Details {
                causes,
                ..Details::default()
            }),
            ..Self::plain(409, "Conflict", message)
        }
    }

    /// 410: the past that was asked for is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        Self::plain(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 415.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        Self::plain(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
        )
    }

    /// 422: the object is wrong. `about.resource` is the kind here.
    pub fn invalid(about: About<'_>, errors: &[FieldError]) -> Self {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let listed = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors
            .iter()
            .map(|e| Cause {
                reason: e.kind.reason().to_owned(),
                message: e.body(),
                field: e.path.to_string(),
            })
            .collect();
        let mut details = about.details();
        if let Some(details) = &mut details {
            details.causes = causes;
        }
        let message = format!("{} \"{}\" is invalid: {listed}", about.qualified(), about.name);
        Self {
            code: 422,
            reason: "Invalid",
            message,
            details,
            continue_token: None,
        }
    }

    /// 422 about the options of a request, with all that is wrong with them.
    pub fn invalid_options_all(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid(
            About {
                group: "meta.k8s.io",
                resource: kind,
                name: "",
            },
            errors,
        )
    }

    /// 422 about the options of a request.
    pub fn invalid_options(kind: &str, error: FieldError) -> Self {
        Self::invalid_options_all(kind, &[error])
    }

    /// 500 without a reason, as upstream answers errors that it did not foresee.
    pub fn unforeseen(message: impl Into<String>) -> Self {
        Self::plain(500, "", message)
    }

    /// 422 of a JSON patch that does not fit. Upstream keeps to itself why.
    pub fn unprocessable() -> Self {
        Self::plain(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self {
            details: Some(Details {
                retry_after_seconds,
                ..Details::default()
            }),
            ..Self::plain(429, "TooManyRequests", message)
        }
    }

    /// 500.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        Self {
            details: Some(Details {
                causes: vec![Cause {
                    message: message.clone(),
                    ..Cause::default()
                }],
                ..Details::default()
            }),
            ..Self::plain(
                500,
                "InternalError",
                format!("Internal error occurred: {message}"),
            )
        }
    }

    /// 501.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::plain(501, "NotImplemented", message)
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::plain(503, "ServiceUnavailable", message)
    }

    /// 504.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self {
            details: Some(Details {
                retry_after_seconds,
                ..Details::default()
            }),
            ..Self::plain(504, "Timeout", message)
        }
    }

    /// 504: the version that was asked for has not come yet.
    pub fn future_version(wanted: u64, current: u64) -> Self {
        let mut error = Self::timeout(
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
            1,
        );
        if let Some(details) = &mut error.details {
            details.causes.push(Cause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            });
        }
        error
    }

    /// The `Status` object.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        // A failure without a reason is what upstream calls unknown: clients print only the message.
        if let Some(map) = status.as_object_mut()
            && !self.reason.is_empty()
        {
            map.insert("reason".to_owned(), self.reason.into());
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if let (Some(details), Some(map)) = (&self.details, status.as_object_mut()) {
            map.insert("details".to_owned(), details.to_value());
        }
        if let Some(map) = status.as_object_mut() {
            map.insert("code".to_owned(), self.code.into());
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (field, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind)] {
            if !text.is_empty() {
                map.insert(field.to_owned(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            map.insert(
                "causes".to_owned(),
                self.causes.iter().map(Cause::to_value).collect(),
            );
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".to_owned(), self.retry_after_seconds.into());
        }
        map.into()
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (field, text) in [
            ("reason", &self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ] {
            if !text.is_empty() {
                map.insert(field.to_owned(), text.as_str().into());
            }
        }
        map.into()
    }
}

/// A `Status` that reports success, as deletions answer.
pub fn success(about: About<'_>, uid: &str) -> Value {
    let mut details = Map::new();
    for (field, text) in [
        ("name", about.name),
        ("group", about.group),
        ("kind", about.resource),
        ("uid", uid),
    ] {
        if !text.is_empty() {
            details.insert(field.to_owned(), text.into());
        }
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Compacted { .. } => Self::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new \
                 list without the continue parameter.",
            ),
            StoreError::Future { .. } => Self::timeout(format!("Too large resource version: {error}"), 1),
            StoreError::TooLarge { .. } => Self {
                reason: "RequestEntityTooLarge",
                ..Self::plain(413, "", format!("the object is too large to be stored: {error}"))
            },
            StoreError::DiskFull(_) | StoreError::Closed(_) => Self::unavailable(error.to_string()),
            other => Self::internal(other),
        }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} {})", self.message, self.code, self.reason)
    }
}

impl std::error::Error for ApiError {}
