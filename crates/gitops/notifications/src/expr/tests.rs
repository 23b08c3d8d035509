//! Conditions that people write, and what is refused. What the original makes of expressions is in `tests/language.rs`.

use std::cell::Cell;

use fairway_text_gotemplate::value::{Entries, from_json};
use fairway_text_gotemplate::{Map, Value};
use serde_json::json;

use super::{Expr, Scope, shown};
use crate::facts::{Commit, Facts};
use crate::functions;

const NOW: &str = "2026-05-01T10:00:00Z";

fn variables() -> Map {
    let map = Map::new(Entries::new());
    let app = json!({
        "metadata": {"name": "web", "annotations": {"a/b": "c"}, "labels": {"team": "x"}},
        "spec": {"project": "shop", "sources": [{"repoURL": "one"}, {"repoURL": "two"}]},
        "status": {
            "sync": {"status": "Synced", "revision": "abc"},
            "health": {"status": "Healthy", "lastTransitionTime": "2026-05-01T09:50:00Z"},
            "operationState": {
                "phase": "Succeeded", "startedAt": "2026-05-01T09:49:00Z", "finishedAt": "2026-05-01T09:49:30Z",
                "syncResult": {"revision": "abc"},
            },
            "conditions": [{"type": "SyncError", "message": "m"}],
        },
    });
    map.set(*b"app", from_json(&app));
    functions::add(&map);
    map
}

fn value(text: &str) -> Result<Value, String> {
    let mut facts = Facts::at(NOW.parse::<jiff::Timestamp>().unwrap().as_nanosecond());
    let commit = Commit {
        message: "Fix the door".to_owned(),
        author: "Anna <a@b>".to_owned(),
        date: 86_400,
        tags: vec!["v1".to_owned()],
    };
    facts.commits.insert("abc".to_owned(), Ok(commit));
    facts.commits.insert(
        "bad".to_owned(),
        Err("the repository cannot be reached".to_owned()),
    );
    let variables = variables();
    let scope = Scope {
        variables: &variables,
        facts: &facts,
        steps: &Cell::new(u64::MAX),
    };
    let expr = Expr::parse(text).map_err(|error| error.to_string())?;
    expr.eval(&scope).map_err(|error| error.to_string())
}

#[test]
fn conditions_are_judged() {
    for (text, expected) in [
        ("true", true),
        ("app.metadata.deletionTimestamp != nil", false),
        ("app.status.operationState.phase in ['Succeeded']", true),
        ("app.status?.operationState.phase in ['Running']", false),
        ("app.nothing?.operationState.phase in ['Running']", false),
        (
            "app.status.operationState != nil and app.status.operationState.phase in ['Error', 'Failed']",
            false,
        ),
        (
            "app.status.operationState.phase in ['Succeeded'] and app.status.health.status == 'Healthy'",
            true,
        ),
        // Healthy long after the sync, and since before it.
        (
            "time.Parse(app.status.health.lastTransitionTime).After(time.Parse(app.status.operationState.finishedAt))",
            true,
        ),
        (
            "!time.Parse(app.status.health.lastTransitionTime).Add(1 * time.Minute).Before(time.Now())",
            false,
        ),
        (
            "time.Now().Sub(time.Parse(app.status.operationState.startedAt)).Minutes() >= 5",
            true,
        ),
        (
            "time.Now().Sub(time.Parse(app.status.operationState.startedAt)).Minutes() >= 12",
            false,
        ),
        (
            "time.Now() - time.Parse(app.status.operationState.startedAt) > 10 * time.Minute",
            true,
        ),
        (
            "now() == time.Now() and time.Now().Format(time.RFC3339) == '2026-05-01T10:00:00Z'",
            true,
        ),
        ("time.Now().Weekday() == 'Friday' or time.Now().Hour() < 9", true),
        ("app.metadata.annotations['a/b'] == 'c'", true),
        (
            "app.spec.sources[1].repoURL == 'two' && app.spec.sources[-1].repoURL == \"two\"",
            true,
        ),
        ("any(app.status.conditions, {.type == 'SyncError'})", true),
        (
            "none(app.status.conditions, #.type == 'Other') and len(app.status.conditions) == 1",
            true,
        ),
        (
            "'team' in app.metadata.labels and app.spec.project not in ['default', 'x']",
            true,
        ),
        (
            "app.metadata.name matches '^w.b$' and app.metadata.name startsWith 'we' and app.metadata.name contains 'e'",
            true,
        ),
        (
            "strings.ToUpper(app.metadata.name) == 'WEB' and strings.ReplaceAll('a-b', '-', '') == `ab`",
            true,
        ),
        (
            "repo.FullNameByRepoURL('git@host:shop/web.git') == 'shop/web'",
            true,
        ),
        (
            "repo.RepoURLToHTTPS('git@host:shop/web.git') == 'https://host/shop/web.git'",
            true,
        ),
        ("repo.QueryEscape('a b/c~*') == 'a+b%2Fc~%2A'", true),
        (
            "repo.GetCommitMetadata(app.status.sync.revision).Author contains 'Anna'",
            true,
        ),
        (
            "repo.GetCommitMetadata('abc').Date.Year() == 1970 and 'v1' in repo.GetCommitMetadata('abc').Tags",
            true,
        ),
        (
            "let phase = app.status.operationState.phase; phase == 'Succeeded'",
            true,
        ),
    ] {
        let found = value(text).map(|value| matches!(value, Value::Bool(true)));
        assert_eq!(found, Ok(expected), "{text}");
    }
    assert_eq!(
        shown(&value("app.status.operationState?.syncResult?.revision").unwrap()),
        "abc"
    );
    assert_eq!(
        shown(&value("app.status.operation?.syncResult?.revision").unwrap()),
        "<nil>"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let deep = format!("{}1{}", "(".repeat(200), ")".repeat(200));
    let wide = format!("1{}", " + 1".repeat(3000));
    let long = "a + ".repeat(5000);
    let members = format!("a{}", ".b".repeat(2000));
    for (text, why) in [
        ("", "unexpected end"),
        ("app.", "name is expected"),
        ("app.status ==", "unexpected end"),
        ("(1", "unexpected end"),
        ("1 2", "unexpected token 2"),
        ("'open", "no end"),
        ("a @ b", "unrecognized character"),
        ("/* a", "unclosed comment"),
        ("1 = 2", "unexpected token"),
        ("12x", "bad number syntax"),
        ("99999999999999999999", "not a number"),
        ("'\\q'", "not an escape"),
        ("a ?? b || c", "cannot be mixed"),
        ("app.nothing.x", "cannot fetch x from <nil>"),
        ("app.metadata.name.x", "invalid operation: int(string)"),
        ("repo.GetAppDetails()", "GetAppDetails is not served"),
        ("repo.GetCommitMetadata('bad')", "cannot be reached"),
        ("repo.GetCommitMetadata('unknown')", "not known yet"),
        ("sprintf('x')", "no function sprintf"),
        ("time.Sleep(1)", "no function Sleep"),
        ("time.Now().Fly()", "no method Fly"),
        ("time.Now().Add(1)", "Add(time.Duration)"),
        ("app.metadata()", "non-function"),
        ("'a' < 1", "invalid operation: string < int"),
        ("1 and true", "neither true nor false"),
        ("not nil", "neither true nor false"),
        ("time.Parse('yesterday')", "cannot parse"),
        ("app.spec.sources[7]", "out of range"),
        ("'a' matches '('", "missing closing )"),
        ("1 % 0", "divide by zero"),
        ("# == 1", "unexpected token"),
        ("all(nil, true)", "wants a list"),
        ("all([1])", "at least 2"),
        ("len()", "invalid number of arguments"),
        ("repeat('x', 100000000)", "steps"),
        ("1..10000000", "steps"),
        ("map(1..1000, map(1..1000, 1))", "steps"),
        ("reduce(1..100000, [#acc, #acc])", "steps"),
        ("string(reduce(1..50, [#acc, #acc]))", "steps"),
        ("let a = 1..1000; all(a, a == map(a, #))", "steps"),
        (deep.as_str(), "nested deeper"),
        (wide.as_str(), "deeper than 200 levels"),
        (members.as_str(), "deeper than 200 levels"),
        (long.as_str(), "longer than"),
    ] {
        let error = value(text).map(|value| shown(&value)).unwrap_err();
        assert!(
            error.contains(why),
            "{}: {error}",
            text.chars().take(60).collect::<String>()
        );
    }
}

#[test]
fn it_is_known_which_conditions_change_by_themselves() {
    for (text, expected) in [
        ("time.Now().Hour() > 3", true),
        ("now() > date('2026-01-01')", true),
        ("time.Parse(app.x) < time.Parse(app.y)", false),
        ("app.now == 1", false),
    ] {
        assert_eq!(Expr::parse(text).unwrap().asks_clock(), expected, "{text}");
    }
}
