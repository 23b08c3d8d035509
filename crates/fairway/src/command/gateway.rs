//! `fairway gateway`: why a request is answered as it is, what is published, how far limits are used up.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::gitops::{Session, print_value, run as run_command, told};
use crate::cli::gateway::{Explain, Gateway, GatewayCommand, Show, ValueFormat};
use crate::cli::gitops::ListFormat;

const API: &str = "/apis/gateway.fairway.dev/v1alpha1";

/// Does what was asked for.
pub(crate) fn run(options: &Gateway) -> anyhow::Result<ExitCode> {
    run_command(async {
        match &options.command {
            GatewayCommand::Explain(options) => return explain(options).await,
            GatewayCommand::Routes(options) => {
                let columns = ["HOST", "PATH", "ROUTE", "GATEWAY", "BACKENDS", "ADDRESS"];
                show(options, "publishedrules", (columns, 1), route, route_name).await?;
            }
            GatewayCommand::Certs(options) => {
                let columns = ["SECRET", "NAMES", "UNTIL", "ISSUER"];
                let name = |item: &Value| certificate(item)[0].clone();
                show(options, "servedcertificates", (columns, 0), certificate, name).await?;
            }
            GatewayCommand::Limits(options) => {
                let columns = ["COUNTER", "COUNT", "RESET"];
                let name = |item: &Value| limit(item)[0].clone();
                show(options, "counters", (columns, 0), limit, name).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn explain(options: &Explain) -> anyhow::Result<ExitCode> {
    let headers = headers(&options.header)?;
    let session = Session::open(&options.place).await?;
    let mut question = json!({"spec": {"method": options.method, "url": options.url, "headers": headers}});
    if let Some(source) = options.source {
        question["spec"]["source"] = json!(source.to_string());
    }
    let path = format!("{API}/explanations");
    let answer = session.requests.post(&path, &question).await.map_err(told)?;
    match options.output {
        Some(format) => print_value(&answer, format == ValueFormat::Yaml),
        None => print!("{}", explained(&answer["status"])),
    }
    // As a client would see it: what is refused or not served is no success.
    let passes = |stage: &Value| stage["passes"] != false;
    let stages = answer["status"]["stages"].as_array();
    let passed =
        stages.is_some_and(|stages| stages.iter().all(passes)) && answer["status"]["message"].is_null();
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// The headers of a request by name, each with its values in the order in which they were given.
fn headers(given: &[String]) -> anyhow::Result<BTreeMap<String, Vec<&str>>> {
    let mut headers: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for header in given {
        let (name, value) = header.split_once(':').with_context(|| {
            format!("{header:?} is not a header; write it such as 'Authorization: Bearer abc'")
        })?;
        let values = headers.entry(name.trim().to_ascii_lowercase()).or_default();
        values.push(value.trim());
    }
    Ok(headers)
}

/// The way, a line for each step and one for what was seen there.
fn explained(status: &Value) -> String {
    let mut text = String::new();
    for stage in status["stages"].as_array().into_iter().flatten() {
        let mark = match stage["passes"].as_bool() {
            Some(true) => "✓",
            Some(false) => "✗",
            None => "·",
        };
        let word = |field: &str| stage[field].as_str().unwrap_or_default();
        text += &format!("{mark} {:<9}{}\n", word("kind"), word("what"));
        for line in word("seen").lines().filter(|line| !line.is_empty()) {
            text += &format!("             {line}\n");
        }
    }
    if let Some(code) = status["code"].as_u64() {
        text += &format!("answer: {code}\n");
    }
    if let Some(message) = status["message"].as_str() {
        text += &format!("{message}\n");
    }
    text
}

/// Prints a list: of its columns the last `wide` only for those who ask for all.
async fn show<const N: usize>(
    options: &Show,
    what: &str,
    (columns, wide): ([&str; N], usize),
    row: impl Fn(&Value) -> [String; N],
    name: impl Fn(&Value) -> String,
) -> anyhow::Result<()> {
    let session = Session::open(&options.place).await?;
    let answer = session
        .requests
        .get(&format!("{API}/{what}"))
        .await
        .map_err(told)?;
    let answer = answer.context("this server does not serve gateways (--no-gateway)")?;
    let items = answer["items"].as_array().into_iter().flatten();
    let hidden = match options.output {
        Some(format @ (ListFormat::Json | ListFormat::Yaml)) => {
            print_value(&answer, format == ListFormat::Yaml);
            return Ok(());
        }
        Some(ListFormat::Name) => {
            let names: BTreeSet<String> = items.map(name).collect();
            names.iter().for_each(|name| println!("{name}"));
            return Ok(());
        }
        Some(ListFormat::Wide) => 0,
        None => wide,
    };
    let text = table(columns.map(str::to_owned), items.map(row).collect(), hidden);
    print!("{text}");
    Ok(())
}

/// As `kubectl get -o name` would write it, with the namespace before.
fn route_name(item: &Value) -> String {
    let word = |field: &str| item[field].as_str().unwrap_or_default();
    format!(
        "{}/{}/{}",
        word("namespace"),
        word("kind").to_lowercase(),
        word("name")
    )
}

/// What a client has to ask for: the port too, if it is not the scheme's own.
fn address(item: &Value) -> String {
    let word = |field: &str| item[field].as_str().unwrap_or_default();
    let (scheme, host) = (word("scheme"), word("host"));
    match (scheme, item["port"].as_u64()) {
        ("https", Some(443)) | ("http", Some(80)) | (_, None) => format!("{scheme}://{host}"),
        (_, Some(port)) => format!("{scheme}://{host}:{port}"),
    }
}

fn route(item: &Value) -> [String; 6] {
    let word = |field: &str| item[field].as_str().unwrap_or_default();
    let path = match word("pathType") {
        "Exact" => format!("={}", word("path")),
        "RegularExpression" => format!("~{}", word("path")),
        _ => word("path").to_owned(),
    };
    let backends: Vec<&str> = (item["backends"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    [
        address(item),
        path,
        format!(
            "{} {}/{} rule {}",
            word("kind"),
            word("namespace"),
            word("name"),
            item["rule"]
        ),
        format!("{} {}", word("gateway"), word("listener")),
        backends.join(","),
        format!("{}:{}", word("address"), item["port"]),
    ]
}

fn certificate(item: &Value) -> [String; 4] {
    let word = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let names: Vec<&str> = (item["names"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    let names = match item["problem"].as_str() {
        Some(problem) => format!("cannot be read: {problem}"),
        None => names.join(","),
    };
    let secret = format!("{}/{}", word("namespace"), word("secret"));
    [secret, names, word("notAfter"), word("issuer")]
}

fn limit(item: &Value) -> [String; 3] {
    let key = item["key"].as_str().unwrap_or_default().to_owned();
    [key, item["count"].to_string(), format!("{}s", item["reset"])]
}

/// Columns that are as wide as they have to be, but for the last `hidden`.
fn table<const N: usize>(head: [String; N], rows: Vec<[String; N]>, hidden: usize) -> String {
    let shown = N.saturating_sub(hidden);
    let mut all = vec![head];
    all.extend(rows);
    let width = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..shown).map(width).collect();
    let mut text = String::new();
    for row in &all {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_told_step_by_step() {
        let status = json!({"code": 401, "stages": [
            {"kind": "Route", "what": "HTTPRoute a/b rule 0", "seen": "path prefix /", "passes": true},
            {"kind": "Policy", "what": "AuthPolicy/a/b", "seen": "no key\nanonymous: no", "passes": false},
        ]});
        let expected = "✓ Route    HTTPRoute a/b rule 0\n             path prefix /\n✗ Policy   AuthPolicy/a/b\n             \
                        no key\n             anonymous: no\nanswer: 401\n";
        assert_eq!(explained(&status), expected);
    }

    #[test]
    fn headers_are_sent_as_often_as_they_are_given() {
        let given = [
            "X-Forwarded-For: 192.0.2.1",
            "Accept: a:b",
            "x-forwarded-for:10.0.0.1",
        ]
        .map(str::to_owned);
        let expected = json!({"accept": ["a:b"], "x-forwarded-for": ["192.0.2.1", "10.0.0.1"]});
        assert_eq!(json!(headers(&given).unwrap()), expected);
        assert!(headers(&["no header".to_owned()]).is_err());
    }

    #[test]
    fn a_port_is_told_where_it_matters() {
        for (scheme, port, expected) in [
            ("https", 443, "https://a"),
            ("https", 8443, "https://a:8443"),
            ("http", 80, "http://a"),
            ("http", 443, "http://a:443"),
        ] {
            let item = json!({"scheme": scheme, "host": "a", "port": port});
            assert_eq!(address(&item), expected);
        }
    }

    #[test]
    fn columns_are_in_line() {
        let rows = vec![
            ["a".to_owned(), "b".to_owned()],
            ["long".to_owned(), "c".to_owned()],
        ];
        let head = ["X".to_owned(), "Y".to_owned()];
        let text = table(head.clone(), rows.clone(), 0);
        assert_eq!(text, "X     Y\na     b\nlong  c\n");
        assert_eq!(table(head, rows, 1), "X\na\nlong\n");
    }
}
