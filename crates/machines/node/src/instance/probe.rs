//! Probes: what is asked, how often, and what the answers mean, as kubelet takes them.
//!
//! [`Checking`] is what a probe of the spec means; [`Tally`] counts answers and says when they add up to something. Asking is in
//! [`ask`].

mod ask;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use fairway_controller::ObjectKey;
use fairway_machines_plan::view::Probe;
use fairway_machines_qemu::Agent;
use serde_json::Value;
use tokio::sync::mpsc;

use super::input::Input;
use crate::ports::Cables;

/// What a probe is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whether the guest may be given work.
    Readiness,
    /// Whether it must be started anew.
    Liveness,
}

impl Purpose {
    /// Kubernetes' word for it, as it stands in events.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        }
    }
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Check {
    /// A connection.
    Tcp { host: Option<Ipv4Addr>, port: u16 },
    /// A request.
    Http(HttpCheck),
    /// The agent answers.
    Ping,
    /// A command in the guest ends well.
    Exec(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HttpCheck {
    host: Option<Ipv4Addr>,
    port: u16,
    is_tls: bool,
    path: String,
    headers: Vec<(String, String)>,
}

/// A probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checking {
    check: Check,
    delay: Duration,
    period: Duration,
    timeout: Duration,
    /// So many in a row make it well, and so many ill.
    successes: u32,
    failures: u32,
}

impl Checking {
    /// What a probe of the spec means; why it means nothing.
    pub(crate) fn of(probe: &Probe) -> Result<Self, String> {
        let seconds = |value: i64, default: u64| {
            let value = u64::try_from(value).unwrap_or(0);
            Duration::from_secs(if value == 0 { default } else { value })
        };
        let count = |value: i64, default: u32| match u32::try_from(value) {
            Ok(value) if value > 0 => value,
            _ => default,
        };
        Ok(Self {
            check: check(probe)?,
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10),
            timeout: seconds(probe.timeout_seconds, 1),
            successes: count(probe.success_threshold, 1),
            failures: count(probe.failure_threshold, 3),
        })
    }
}

fn check(probe: &Probe) -> Result<Check, String> {
    if probe.guest_agent_ping.is_some() {
        return Ok(Check::Ping);
    }
    if let Some(exec) = &probe.exec {
        let command = exec["command"].as_array().into_iter().flatten();
        let command: Vec<String> = command.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        return match command.is_empty() {
            true => Err("exec has no command".to_owned()),
            false => Ok(Check::Exec(command)),
        };
    }
    if let Some(socket) = &probe.tcp_socket {
        return Ok(Check::Tcp {
            host: host(socket)?,
            port: port(socket)?,
        });
    }
    let Some(request) = &probe.http_get else {
        return Err("it asks nothing".to_owned());
    };
    let path = request["path"].as_str().unwrap_or_default();
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let headers = request["httpHeaders"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = headers
        .map(|it| (text(&it["name"]), text(&it["value"])))
        .collect();
    // What ends a line would begin another request.
    let is_plain = |text: &str| !text.chars().any(char::is_control);
    let plain = is_plain(&path)
        && !path.contains(' ')
        && headers
            .iter()
            .all(|(name, value)| is_plain(name) && is_plain(value) && !name.contains([' ', ':']));
    if !plain {
        return Err("path or headers have characters that cannot be sent".to_owned());
    }
    Ok(Check::Http(HttpCheck {
        host: host(request)?,
        port: port(request)?,
        is_tls: request["scheme"].as_str() == Some("HTTPS"),
        path,
        headers,
    }))
}

/// The port, as a number or a number in a text. Names belong to containers, which there are none of.
fn port(of: &Value) -> Result<u16, String> {
    let found = match &of["port"] {
        Value::Number(number) => number.as_u64().and_then(|it| u16::try_from(it).ok()),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    found
        .filter(|it| *it > 0)
        .ok_or_else(|| format!("{} is not the number of a port", of["port"]))
}

/// The host, if it is not the guest itself.
fn host(of: &Value) -> Result<Option<Ipv4Addr>, String> {
    match of["host"].as_str().filter(|it| !it.is_empty()) {
        None => Ok(None),
        Some(text) => match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(_) => Err(format!("host {text:?} is not an IPv4 address")),
        },
    }
}

/// Answers, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    last: Option<bool>,
    in_a_row: u32,
    verdict: Option<bool>,
}

impl Tally {
    /// Counts an answer; what it has come to, if that is new.
    pub(crate) fn count(&mut self, is_well: bool, probe: &Checking) -> Option<bool> {
        self.in_a_row = match self.last == Some(is_well) {
            true => self.in_a_row.saturating_add(1),
            false => 1,
        };
        self.last = Some(is_well);
        let needed = if is_well { probe.successes } else { probe.failures };
        if self.in_a_row < needed || self.verdict == Some(is_well) {
            return None;
        }
        self.verdict = Some(is_well);
        Some(is_well)
    }
}

/// What asking needs.
pub(crate) struct Asker {
    pub(crate) key: ObjectKey,
    pub(crate) agent: Agent,
    pub(crate) cables: Arc<dyn Cables>,
}

/// Asks until nobody listens any more, and tells what the answers have come to.
pub(crate) async fn follow(probe: Checking, purpose: Purpose, asker: Asker, listener: mpsc::Sender<Input>) {
    tokio::time::sleep(probe.delay).await;
    let mut tally = Tally::default();
    loop {
        let begun = tokio::time::Instant::now();
        let answer = tokio::time::timeout(probe.timeout, asker.ask(&probe.check)).await;
        let answer = answer.unwrap_or_else(|_| Err("there was no answer in time".to_owned()));
        if let Err(why) = &answer {
            tracing::debug!(key = %asker.key, ?purpose, why, "a probe failed");
        }
        if tally.count(answer.is_ok(), &probe).is_some() {
            let verdict = answer;
            if listener.send(Input::Probed { purpose, verdict }).await.is_err() {
                return;
            }
        }
        tokio::time::sleep_until(begun + probe.period).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn probe(value: &Value) -> Result<Checking, String> {
        Checking::of(&serde_json::from_value(value.clone()).unwrap())
    }

    #[test]
    fn what_nobody_says_is_kubelets() {
        let found = probe(&json!({"tcpSocket": {"port": 22}})).unwrap();
        let expected = Checking {
            check: Check::Tcp { host: None, port: 22 },
            delay: Duration::ZERO,
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            successes: 1,
            failures: 3,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_asked_is_named() {
        for (value, expected) in [
            (json!({}), "it asks nothing"),
            (
                json!({"tcpSocket": {"port": "ssh"}}),
                "\"ssh\" is not the number of a port",
            ),
            (json!({"tcpSocket": {"port": 0}}), "0 is not the number of a port"),
            (
                json!({"tcpSocket": {"port": 1, "host": "example.com"}}),
                "host \"example.com\" is not an IPv4 address",
            ),
            (json!({"exec": {"command": []}}), "exec has no command"),
            (
                json!({"httpGet": {"port": 80, "path": "/a\r\nX: y"}}),
                "path or headers have characters that cannot be sent",
            ),
            (
                json!({"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": "b\nc"}]}}),
                "path or headers have characters that cannot be sent",
            ),
        ] {
            assert_eq!(probe(&value).unwrap_err(), expected, "{value}");
        }
        let found = probe(&json!({"httpGet": {"port": "8080", "path": "x", "scheme": "HTTPS"}})).unwrap();
        let Check::Http(http) = found.check else {
            panic!("{found:?}");
        };
        assert_eq!((http.port, http.path.as_str(), http.is_tls), (8080, "/x", true));
    }

    #[test]
    fn answers_add_up() {
        let checking =
            probe(&json!({"guestAgentPing": {}, "successThreshold": 2, "failureThreshold": 3})).unwrap();
        let mut tally = Tally::default();
        let answers = [
            (true, None),
            (true, Some(true)),
            (true, None),
            (false, None),
            (false, None),
            (true, None),
            (false, None),
            (false, None),
            (false, Some(false)),
            (false, None),
            (true, None),
            (true, Some(true)),
        ];
        for (number, (answer, expected)) in answers.into_iter().enumerate() {
            assert_eq!(tally.count(answer, &checking), expected, "answer {number}");
        }
    }
}
