//! `http:backstage:request`: a request to the platform's own APIs, such as the catalog's, with the rights of who started the run.
//!
//! It reaches what the portal serves below `/api/` and nothing else, in the workspace of the run. Runs start no runs by it: a template that
//! starts itself would never end. What it changes is not taken back when the run fails, and after an interruption it is sent again.

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request};
use serde_json::{Map, Value, json};

use crate::drive::{Job, Mode, StepError};

/// The largest body, sent or answered.
const MOST: usize = 1 << 20;
/// The most headers that a step gives.
const HEADERS: usize = 50;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who asks and where is not for a template to say.
const RESERVED: [&str; 5] = [
    "authorization",
    "cookie",
    "host",
    "content-length",
    "x-fairway-workspace",
];

pub(super) async fn request(job: &mut Job<'_>) -> Result<Value, StepError> {
    let request = read(&job.input).map_err(StepError::Failed)?;
    let (method, address) = (request.method().clone(), request.uri().clone());
    let is_reading = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
    if job.mode == Mode::Dry && !is_reading {
        job.log(&format!("{method} {address} is sent by the real run alone"));
        return Ok(json!({}));
    }
    let shown = match job.input.get("logRequestPath") {
        Some(Value::Bool(false)) => "a request".to_owned(),
        _ => format!("{method} {address}"),
    };
    // Whoever is not let into the workspace any more asks nothing in it.
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    job.requests()
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review)
        .await?;
    let wanted = job.input.get("timeout").and_then(Value::as_u64);
    let patience = wanted.map_or(PATIENCE, Duration::from_millis).min(PATIENCE);
    let (workspace, portal) = (job.workspace(), std::sync::Arc::clone(&job.world.options.apis));
    let asked = portal.ask(&workspace, job.person, request, MOST);
    let answer = tokio::select! {
        answer = tokio::time::timeout(patience, asked) => answer,
        () = job.shutdown.wait() => return Err(StepError::Shutdown),
    };
    let answer = match answer {
        Ok(answer) => answer.map_err(|why| StepError::Failed(format!("{shown}: {why}")))?,
        Err(_) => {
            return Err(StepError::Failed(format!(
                "{shown} was not answered within {} s",
                patience.as_secs_f32()
            )));
        }
    };
    let code = answer.status().as_u16();
    job.log(&format!("{shown} was answered with {code}"));
    let headers: Map<String, Value> = answer
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.into())))
        .collect();
    let text = String::from_utf8_lossy(answer.body());
    let is_json = headers
        .get(CONTENT_TYPE.as_str())
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.contains("json"));
    let body = match is_json.then(|| serde_json::from_str::<Value>(&text)) {
        Some(Ok(value)) => value,
        // As the original does with what is no JSON.
        _ => json!({"message": text}),
    };
    if code >= 400 && !job.flag("continueOnBadResponse") {
        let said = body["error"]["message"].as_str().unwrap_or("");
        return Err(StepError::Failed(format!(
            "{shown} was answered with {code}: {said}"
        )));
    }
    Ok(json!({"code": code, "headers": headers, "body": body}))
}

/// The request that an input means.
fn read(input: &Value) -> Result<Request<Vec<u8>>, String> {
    let text = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or("");
    let method = text("method").to_ascii_uppercase();
    let method = match method.as_str() {
        "" => Method::GET,
        "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH" | "DELETE" => {
            Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?
        }
        other => return Err(format!("input.method is {other:?}, which is not sent")),
    };
    let address = address(text("path"), input.get("params"))?;
    if method == Method::POST && starts_a_run(&address) {
        return Err("runs do not start runs: a template that starts itself would never end".to_owned());
    }
    let mut request = Request::builder().method(method).uri(address);
    let given = input.get("headers").and_then(Value::as_object);
    if given.is_some_and(|given| given.len() > HEADERS) {
        return Err(format!("input.headers has more than {HEADERS} headers"));
    }
    let mut has_kind = false;
    for (name, value) in given.into_iter().flatten() {
        let wrong = || format!("input.headers.{name} is not a header");
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        if RESERVED.contains(&header.as_str()) {
            return Err(format!(
                "input.headers.{name}: a request is sent as who started the run, in the workspace of the run; leave it out"
            ));
        }
        has_kind |= header == CONTENT_TYPE;
        let value = value.as_str().ok_or_else(wrong)?;
        request = request.header(header, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    let body = match input.get("body") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(value) => value.to_string().into_bytes(),
    };
    if body.len() > MOST {
        return Err(format!("input.body is larger than {MOST} bytes"));
    }
    if !body.is_empty() && !has_kind {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request = request.header(ACCEPT, "application/json");
    request
        .body(body)
        .map_err(|error| format!("the request cannot be sent: {error}"))
}

/// Whether who is asked would take an address for the start of a run, or for another attempt of one: read as the portal reads it, with
/// empty parts left out and each part decoded.
fn starts_a_run(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or("");
    let parts: Vec<String> = path
        .split('/')
        .map(|part| {
            percent_encoding::percent_decode_str(part)
                .decode_utf8_lossy()
                .to_ascii_lowercase()
        })
        // A part that hides others is read as what it hides.
        .flat_map(|part| part.split('/').map(str::to_owned).collect::<Vec<_>>())
        .filter(|part| !part.is_empty())
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match &parts[..] {
        ["api", "scaffolder", _, "tasks"] => true,
        ["api", "scaffolder", _, "tasks", .., last] => *last != "cancel",
        _ => false,
    }
}

/// The path at the portal with its parameters: `/api/catalog/entities`, or `catalog/entities` as newer templates write it.
fn address(path: &str, params: Option<&Value>) -> Result<String, String> {
    let refused = || {
        format!(
            "input.path is {path:?}: it is a path below /api/ of this installation, such as /api/catalog/entities; other hosts are not asked"
        )
    };
    let inside = path.trim_start_matches('/');
    let has_host =
        path.starts_with("//") || inside.split('/').next().is_some_and(|first| first.contains(':'));
    let is_plain = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'\\');
    let (place, query) = inside.split_once('?').unwrap_or((inside, ""));
    let climbs = place.split('/').any(|part| matches!(part, "." | ".."));
    if inside.is_empty() || has_host || !is_plain || climbs || place.to_ascii_lowercase().contains("%2e%2e") {
        return Err(refused());
    }
    let place = place.strip_prefix("api/").unwrap_or(place);
    let mut written = form_urlencoded::Serializer::new(String::new());
    for (name, value) in params.and_then(Value::as_object).into_iter().flatten() {
        match value {
            Value::String(text) => written.append_pair(name, text),
            Value::Null => &mut written,
            other => written.append_pair(name, &other.to_string()),
        };
    }
    let more = written.finish();
    let query = [query, &more]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("&");
    Ok(match query.is_empty() {
        true => format!("/api/{place}"),
        false => format!("/api/{place}?{query}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_stay_at_the_portal() {
        for (path, expected) in [
            ("/api/catalog/entities", Some("/api/catalog/entities")),
            (
                "catalog/entities?filter=kind=api",
                Some("/api/catalog/entities?filter=kind=api"),
            ),
            ("/catalog/entities", Some("/api/catalog/entities")),
            ("https://evil.example/api/catalog", None),
            ("//evil.example/api/catalog", None),
            ("/api/../clusters/root/api/catalog", None),
            ("/api/%2E%2e/x", None),
            ("/api/catalog\r\nx: y", None),
            ("/api/a\\b", None),
            ("", None),
        ] {
            assert_eq!(address(path, None).ok().as_deref(), expected, "{path:?}");
        }
        let with = address(
            "catalog/entities?a=b",
            Some(&json!({"filter": "kind=a&b", "limit": 3})),
        );
        assert_eq!(
            with.unwrap(),
            "/api/catalog/entities?a=b&filter=kind%3Da%26b&limit=3"
        );
    }

    #[test]
    fn runs_do_not_start_runs_however_it_is_written() {
        for (path, method, expected) in [
            ("/api/scaffolder/v2/tasks", "POST", false),
            ("scaffolder/v2/tasks/", "post", false),
            ("/api/scaffolder//v2/tasks", "POST", false),
            ("/api/scaffolder/v2/t%61sks", "POST", false),
            ("/api/scaffolder/v2%2Ftasks", "POST", false),
            ("/api//scaffolder/v2/tasks?x=y", "POST", false),
            ("/api/scaffolder/v2/tasks/default.x/retry", "POST", false),
            ("/api/scaffolder/v2/tasks/default.x/r%65try/", "POST", false),
            ("/api/scaffolder/v2/tasks/default.x/cancel", "POST", true),
            ("/api/scaffolder/v2/tasks", "GET", true),
            ("/api/scaffolder/v2/dry-run", "POST", true),
            ("/api/catalog/locations", "POST", true),
        ] {
            let found = read(&json!({"path": path, "method": method}));
            assert_eq!(found.is_ok(), expected, "{method} {path}: {found:?}");
        }
    }

    #[test]
    fn nobody_is_somebody_else_by_a_header() {
        for (input, expected) in [
            (json!({"path": "catalog/entities"}), None),
            (
                json!({"path": "catalog/entities", "method": "post", "body": {"a": 1}}),
                None,
            ),
            (json!({"path": "catalog/x", "headers": {"x-mine": "y"}}), None),
            (
                json!({"path": "catalog/x", "headers": {"Authorization": "Bearer x"}}),
                Some("as who started the run"),
            ),
            (
                json!({"path": "catalog/x", "headers": {"X-Fairway-Workspace": "other"}}),
                Some("leave it out"),
            ),
            (
                json!({"path": "catalog/x", "headers": {"a": "b\r\nc: d"}}),
                Some("is not a header"),
            ),
            (
                json!({"path": "catalog/x", "method": "CONNECT"}),
                Some("which is not sent"),
            ),
            (
                json!({"path": "/api/scaffolder/v2/tasks", "method": "POST"}),
                Some("runs do not start runs"),
            ),
            (
                json!({"path": "catalog/x", "method": "PUT", "body": "x".repeat(MOST + 1)}),
                Some("larger than"),
            ),
        ] {
            let found = read(&input);
            match expected {
                None => assert!(found.is_ok(), "{found:?}"),
                Some(words) => assert!(found.unwrap_err().contains(words), "{words}"),
            }
        }
    }
}
