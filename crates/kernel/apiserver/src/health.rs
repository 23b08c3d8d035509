//! `/livez`, `/readyz`, `/healthz`: is it alive, and may it be given work.

use std::fmt::Write;

use crate::http::respond;
use crate::kernel::Kernel;
use crate::query::Query;
use crate::rest::call::Answer;
use crate::service::is_ready;
use crate::status::ApiError;

/// Whether a path is one of the health endpoints, or a single check below one.
pub(crate) fn is_health(path: &str) -> bool {
    ["/livez", "/readyz", "/healthz"].iter().any(|p| {
        path.strip_prefix(p)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

struct Check {
    name: &'static str,
    /// What is wrong; `None`: nothing.
    fault: Option<String>,
}

fn checks(kernel: &Kernel, endpoint: &str) -> Vec<Check> {
    let store = (*kernel.shutdown.borrow()).then(|| "the server is shutting down".to_owned());
    let mut checks = vec![
        Check {
            name: "ping",
            fault: None,
        },
        Check {
            name: "store",
            fault: store,
        },
    ];
    if endpoint != "livez" {
        let started = (!is_ready(kernel)).then(|| "start-up has not finished".to_owned());
        checks.push(Check {
            name: "poststarthook/start-fairway-kernel",
            fault: started,
        });
    }
    checks
}

/// Answers a health request.
pub(crate) fn answer(kernel: &Kernel, path: &str, query: &Query) -> Answer {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let (endpoint, single) = (parts.next().unwrap_or(""), parts.next());
    let mut checks = checks(kernel, endpoint);
    if let Some(single) = single {
        checks.retain(|c| c.name == single);
        if checks.is_empty() {
            return Err(ApiError::page_not_found());
        }
    }
    let excluded: Vec<&str> = query.all("exclude").collect();
    let mut text = String::new();
    let mut failed = false;
    for check in &checks {
        let name = check.name;
        let line = if excluded.contains(&name) {
            format!("[+]{name} excluded: ok")
        } else if check.fault.is_some() {
            failed = true;
            // The reason is in the log and in `fairway status`; strangers are told no more than upstream tells them.
            format!("[-]{name} failed: reason withheld")
        } else {
            format!("[+]{name} ok")
        };
        let _ = writeln!(text, "{line}");
    }
    if failed {
        let _ = writeln!(text, "{endpoint} check failed");
        return Ok(respond::text(500, text));
    }
    if query.get("verbose").is_some() {
        let _ = writeln!(text, "{endpoint} check passed");
        return Ok(respond::text(200, text));
    }
    Ok(respond::text(200, "ok"))
}
