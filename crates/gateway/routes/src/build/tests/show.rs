//! A build as text.

use std::fmt::Write;

use crate::build::Built;
use crate::hostname;
use crate::status::{Condition, Says, Status};
use crate::table::{
    Action, Backend, Door, Endpoint, Entry, Filter, Forward, HostPattern, Listener, Match, Names, PathMatch,
    Rule, Target, TlsListener, ValueMatch,
};

pub(super) fn all(built: &Built) -> String {
    let mut out = String::new();
    for status in &built.statuses {
        self::status(&mut out, status);
    }
    for (door, what) in &built.table.doors {
        let _ = writeln!(out, "door {door}");
        match what {
            Door::Http(names) => {
                for (host, one) in sorted(names) {
                    listener(&mut out, &format!("http {}", name(&host)), one);
                }
            }
            Door::Tls(names) => {
                for (host, one) in sorted(names) {
                    match &**one {
                        TlsListener::Terminate {
                            certificates,
                            client_authorities,
                            http,
                        } => {
                            let mut title = format!("tls {}", name(&host));
                            for key in certificates {
                                let _ = write!(title, " certificate {}/{}", key.namespace, key.secret);
                            }
                            if client_authorities.is_some() {
                                title += " client certificates";
                            }
                            listener(&mut out, &title, http);
                        }
                        TlsListener::Passthrough(forward) => {
                            let _ = writeln!(out, "  passthrough {} {}", name(&host), self::forward(forward));
                        }
                    }
                }
            }
            Door::Tcp(forward) => {
                let _ = writeln!(out, "  tcp {}", self::forward(forward));
            }
        }
    }
    for (key, cluster) in &built.table.clusters {
        let endpoints: Vec<String> = cluster
            .endpoints
            .iter()
            .map(|one| match one {
                Endpoint::Address(address) => address.to_string(),
                Endpoint::Listener(key) => format!("{}/{}#{}", key.namespace, key.gateway, key.listener),
            })
            .collect();
        let _ = write!(
            out,
            "cluster {} {}/{}:{}",
            key.workspace, key.namespace, key.service, key.port
        );
        if !key.via.is_empty() {
            let _ = write!(out, " via {}", key.via);
        }
        let _ = write!(out, " {:?} [{}]", cluster.protocol, endpoints.join(" "));
        if let Some(tls) = &cluster.tls {
            let authorities = if tls.authorities.is_some() {
                "own authorities"
            } else {
                "the system's authorities"
            };
            let _ = write!(out, " tls {} {:?} {authorities}", tls.hostname, tls.names);
        }
        if let Some(check) = &cluster.traffic.health {
            let _ = write!(out, " asked for {} every {:?}", check.path, check.interval);
        }
        out.push('\n');
    }
    out
}

fn status(out: &mut String, status: &Status) {
    let _ = writeln!(out, "{} {}:{}", status.kind.name(), status.workspace, status.name);
    match &status.says {
        Says::Class { conditions, features } => {
            told(out, "  ", conditions);
            let _ = writeln!(out, "  {} features", features.len());
        }
        Says::Gateway {
            addresses,
            conditions,
            listeners,
        } => {
            for (kind, value) in addresses {
                let _ = writeln!(out, "  {kind} {value}");
            }
            told(out, "  ", conditions);
            for listener in listeners {
                let kinds: Vec<&str> = listener.kinds.iter().map(|(_, kind)| *kind).collect();
                let _ = writeln!(
                    out,
                    "  listener {} [{}] attached {}",
                    listener.name,
                    kinds.join(" "),
                    listener.attached
                );
                told(out, "    ", &listener.conditions);
            }
        }
        Says::Parents(parents) | Says::Ancestors(parents) => {
            for parent in parents {
                let text = |field: &str| parent.reference[field].as_str().unwrap_or_default();
                let _ = writeln!(out, "  by {} {}", text("name"), text("sectionName"));
                told(out, "    ", &parent.conditions);
            }
        }
        Says::Ingress {
            host,
            conditions,
            wildcard,
            ..
        } => {
            let _ = writeln!(out, "  host {host} wildcard {wildcard}");
            told(out, "  ", conditions);
        }
    }
}

fn told(out: &mut String, indent: &str, conditions: &[Condition]) {
    for one in conditions {
        let status = if one.status { "True" } else { "False" };
        let _ = write!(out, "{indent}{} {status} {}", one.kind, one.reason);
        let _ = if one.message.is_empty() {
            writeln!(out)
        } else {
            writeln!(out, ": {}", one.message)
        };
    }
}

fn sorted<T>(names: &Names<T>) -> Vec<(HostPattern, &T)> {
    let mut all: Vec<_> = names.iter().collect();
    all.sort_by(|one, two| one.0.cmp(&two.0));
    all
}

fn name(host: &HostPattern) -> String {
    if *host == HostPattern::Any {
        "*".to_owned()
    } else {
        hostname::show(host)
    }
}

fn listener(out: &mut String, title: &str, listener: &Listener) {
    let key = &listener.key;
    let _ = writeln!(
        out,
        "  {title} → {}:{}/{}#{}",
        key.workspace, key.namespace, key.gateway, key.listener
    );
    for (host, entries) in sorted(&listener.routes) {
        let _ = writeln!(out, "    {}", name(&host));
        for entry in entries.iter() {
            assert_eq!(
                entry.rule.key.listener, listener.key,
                "a rule knows where it hangs"
            );
            self::entry(out, entry);
        }
    }
}

fn entry(out: &mut String, entry: &Entry) {
    let rule = &entry.rule;
    let key = &rule.key;
    let _ = writeln!(
        out,
        "      {} → {} {}/{}[{}] {}",
        matches(&entry.matches),
        key.kind,
        key.namespace,
        key.name,
        key.rule,
        action(rule)
    );
    for filter in &rule.filters {
        let _ = writeln!(out, "        {}", self::filter(filter));
    }
    if rule.timeouts != Default::default() {
        let _ = writeln!(out, "        {:?}", rule.timeouts);
    }
    if let Some(retry) = &rule.retry {
        let _ = writeln!(out, "        {retry:?}");
    }
    if let Some(affinity) = &rule.affinity {
        let _ = writeln!(out, "        {affinity:?}");
    }
}

fn filter(filter: &Filter) -> String {
    match filter {
        Filter::Mirror(mirror) => format!(
            "mirror {} of {} to {}",
            mirror.numerator,
            mirror.denominator,
            backend(&mirror.to)
        ),
        other => format!("{other:?}"),
    }
}

fn matches(matches: &Match) -> String {
    let mut out = match &matches.path {
        PathMatch::Exact(path) => format!("exact {path}"),
        PathMatch::Prefix(path) => format!("prefix {path}"),
        PathMatch::Regex(path) => format!("regex {path}"),
    };
    if let Some(method) = &matches.method {
        let _ = write!(out, " {method}");
    }
    let value = |value: &ValueMatch| match value {
        ValueMatch::Exact(text) => format!("={text}"),
        ValueMatch::Regex(text) => format!("~{text}"),
    };
    for header in &matches.headers {
        let _ = write!(out, " {}{}", header.name, value(&header.value));
    }
    for query in &matches.query {
        let _ = write!(out, " ?{}{}", query.name, value(&query.value));
    }
    out
}

fn action(rule: &Rule) -> String {
    match &rule.action {
        Action::Answered => "answered".to_owned(),
        Action::Forward(backends) => self::backends(backends),
    }
}

fn forward(forward: &Forward) -> String {
    let key = &forward.key;
    let by = &key.listener;
    format!(
        "→ {}:{}/{}#{} {} {}/{} {}",
        by.workspace,
        by.namespace,
        by.gateway,
        by.listener,
        key.kind,
        key.namespace,
        key.name,
        backends(&forward.backends)
    )
}

fn backends(backends: &[Backend]) -> String {
    if backends.is_empty() {
        return "no backend".to_owned();
    }
    backends.iter().map(backend).collect::<Vec<_>>().join(", ")
}

fn backend(backend: &Backend) -> String {
    let mut out = match &backend.target {
        Target::Cluster(key) if key.via.is_empty() => format!(
            "{}/{}:{}×{}",
            key.namespace, key.service, key.port, backend.weight
        ),
        Target::Cluster(key) => format!(
            "{}/{}:{} via {}×{}",
            key.namespace, key.service, key.port, key.via, backend.weight
        ),
        Target::Broken(why) => format!("broken×{} ({why})", backend.weight),
    };
    for filter in &backend.filters {
        let _ = write!(out, " with {filter:?}");
    }
    out
}
