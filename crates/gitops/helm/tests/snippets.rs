//! Single lines of templates, and what Helm 3.17 made of them (`snippets/record.py` records it). A difference fails the
//! test unless it is listed here with its reason.

use fairway_gitops_helm::{Capabilities, Chart, Offline, Options, Release, render};
use fairway_gitops_tree::Tree;
use serde_json::{Map, Value};

const RECORDED: &str = include_str!("snippets/recorded.jsonl");
const VALUES: &str = include_str!("snippets/values.yaml");

/// Beginnings of templates whose results differ, and why.
const KNOWN: &[(&str, &str)] = &[("{{ 1i }}", "complex numbers are not supported")];

fn run(template: &str) -> Result<String, String> {
    let partial = format!("{{{{ define \"t\" }}}}{template}{{{{ end }}}}");
    let files = [
        (
            "demo/Chart.yaml",
            "apiVersion: v2\nname: demo\nversion: 0.1.0\nappVersion: \"1.0\"\n",
        ),
        ("demo/values.yaml", VALUES),
        ("demo/templates/_t.tpl", &partial),
        ("demo/templates/a.yaml", "x: {{ include \"t\" . | toJson }}\n"),
    ];
    let tree =
        Tree::of(files.map(|(path, text)| (path, text.as_bytes()))).map_err(|error| error.to_string())?;
    let chart = Chart::load(&tree.reader(), "demo").map_err(|error| error.to_string())?;
    let release = Release {
        name: "r".to_owned(),
        ..Release::default()
    };
    let rendered = render(
        &chart,
        &Map::new(),
        &release,
        &Capabilities::default(),
        &Options::default(),
        &Offline::new(1_700_000_000_000_000_000, 1),
    )
    .map_err(|error| error.to_string())?;
    let manifest = rendered.manifests.first().ok_or("no manifest")?;
    let line = manifest.content.strip_prefix("x: ").ok_or("no line")?;
    serde_json::from_str(line).map_err(|error| error.to_string())
}

#[test]
fn lines_give_what_helm_gives() {
    let mut differences = String::new();
    for line in RECORDED.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let template = case["template"].as_str().unwrap();
        let expected = match case["output"].as_str() {
            Some(output) => Ok(output.to_owned()),
            None => Err(case["error"].as_str().unwrap().to_owned()),
        };
        let found = run(template);
        let known = KNOWN.iter().any(|(start, _)| template.starts_with(start));
        if (found != expected) != known {
            differences.push_str(&format!("{template}\n  helm: {expected:?}\n  ours: {found:?}\n"));
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
