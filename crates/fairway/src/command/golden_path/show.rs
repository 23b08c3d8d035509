//! Templates and runs as text.

use fairway_portal_template::asking;
use fairway_portal_template::schema;
use fairway_portal_template::template::Template;
use serde_json::Value;

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

pub(super) fn templates(found: &[Value]) -> String {
    let mut table = format!("{:<40} {:<20} TITLE", "TEMPLATE", "TYPE");
    for entity in found {
        let namespace = match text(entity, "/metadata/namespace") {
            "" => "default",
            namespace => namespace,
        };
        let reference = format!("template:{namespace}/{}", text(entity, "/metadata/name"));
        table.push_str(&format!(
            "\n{reference:<40} {:<20} {}",
            text(entity, "/spec/type"),
            text(entity, "/metadata/title")
        ));
    }
    table
}

pub(super) fn template(template: &Template) -> String {
    let mut out = format!(
        "{}  ({})\n{}\n",
        template.title,
        template.reference(),
        template.description
    );
    for page in &template.pages {
        let when = page.when.as_ref().map(|when| match when {
            Value::String(when) => format!("  (when {when})"),
            when => format!("  (when {when})"),
        });
        out.push_str(&format!("\n{}{}\n", page.title, when.unwrap_or_default()));
        questions(&page.schema, &mut out);
    }
    out.push_str("\nSteps\n");
    for step in &template.steps {
        let condition = if step.condition.is_some() { "  (if)" } else { "" };
        out.push_str(&format!(
            "  {:<16} {:<28} {}{condition}\n",
            step.id, step.action, step.name
        ));
    }
    out.trim_end().to_owned()
}

fn questions(page: &Value, out: &mut String) {
    for question in asking::possible(page) {
        let property = &question.schema;
        let kind = property["type"].as_str().unwrap_or("");
        let mut notes = Vec::new();
        if question.is_required {
            notes.push("required".to_owned());
        }
        if let Some(options) = property["enum"].as_array() {
            let options: Vec<String> = options
                .iter()
                .map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned))
                .collect();
            notes.push(options.join("|"));
        }
        if let Some(default) = property.get("default") {
            notes.push(format!("default {default}"));
        }
        notes.extend(question.when);
        let unheeded = schema::unheeded(property).into_iter();
        notes.extend(unheeded.map(|it| format!("not heeded here: {it}")));
        let title = property["title"].as_str().unwrap_or("");
        out.push_str(&format!(
            "  {:<16} {kind:<8} {title}  [{}]\n",
            question.name,
            notes.join("; ")
        ));
    }
}

pub(super) fn voyages(found: &[Value]) -> String {
    let mut table = format!(
        "{:<16} {:<36} {:<16} {:<20} TEMPLATE",
        "NAMESPACE", "NAME", "PHASE", "USER"
    );
    for voyage in found {
        table.push_str(&format!(
            "\n{:<16} {:<36} {:<16} {:<20} {}",
            text(voyage, "/metadata/namespace"),
            text(voyage, "/metadata/name"),
            text(voyage, "/status/phase"),
            text(voyage, "/spec/requestedBy/username"),
            text(voyage, "/spec/template"),
        ));
    }
    table
}

pub(super) fn voyage(voyage: &Value) -> String {
    let mut out = format!(
        "{} of {}: {}",
        text(voyage, "/metadata/name"),
        text(voyage, "/spec/template"),
        text(voyage, "/status/phase")
    );
    let message = text(voyage, "/status/message");
    if !message.is_empty() {
        out.push_str(&format!("\n{message}"));
    }
    for step in voyage["status"]["steps"].as_array().into_iter().flatten() {
        out.push_str(&format!(
            "\n  {:<10} {}",
            text(step, "/state"),
            text(step, "/name")
        ));
        for made in step["made"].as_array().into_iter().flatten() {
            let state = if made["undone"] == true {
                "taken back"
            } else {
                "made"
            };
            out.push_str(&format!("\n             {state}: {}", text(made, "/title")));
        }
    }
    for notice in voyage["status"]["notices"].as_array().into_iter().flatten() {
        out.push_str(&format!(
            "\n  {} {}: {}",
            text(notice, "/kind"),
            text(notice, "/state"),
            text(notice, "/message")
        ));
    }
    out
}

/// What quotas have left, and what the run takes of it.
fn quota(foreseen: &Value, out: &mut String) {
    let shares = foreseen["quota"].as_array().map_or(&[][..], Vec::as_slice);
    if shares.is_empty() {
        out.push_str("Quota: none limits this run\n");
        return;
    }
    out.push_str("Quota\n");
    for share in shares {
        let name = format!("{}/{}", text(share, "/namespace"), text(share, "/name"));
        out.push_str(&format!(
            "  {name:<24} {:<40} takes {} of {} left ({} of {} used)\n",
            text(share, "/resource"),
            text(share, "/takes"),
            text(share, "/left"),
            text(share, "/used"),
            text(share, "/hard"),
        ));
    }
}

/// What a dry run says.
pub(super) fn foreseen(report: &Value) -> String {
    let mut out = String::new();
    let foreseen = &report["foreseen"];
    for repository in foreseen["repositories"].as_array().into_iter().flatten() {
        out.push_str(&format!("Repository {}\n", text(repository, "/url")));
        for file in repository["files"].as_array().into_iter().flatten() {
            out.push_str(&format!(
                "  {:>7}  {}\n",
                file["size"].as_u64().unwrap_or(0),
                text(file, "/path")
            ));
        }
    }
    let verdict = |object: &Value| match object["allowed"].as_bool() {
        Some(true) => "allowed".to_owned(),
        Some(false) => format!("REFUSED: {}", text(object, "/message")),
        None => format!("not judged: {}", text(object, "/message")),
    };
    for (title, key) in [("Made at once", "objects"), ("Made by the sync", "manifests")] {
        let objects = foreseen[key].as_array().cloned().unwrap_or_default();
        if !objects.is_empty() {
            out.push_str(&format!("{title}\n"));
        }
        for object in &objects {
            let name = match text(object, "/namespace") {
                "" => text(object, "/name").to_owned(),
                namespace => format!("{namespace}/{}", text(object, "/name")),
            };
            out.push_str(&format!(
                "  {:<18} {name:<32} {}\n",
                text(object, "/kind"),
                verdict(object)
            ));
        }
    }
    for place in foreseen["node"].as_array().into_iter().flatten() {
        let machine = format!("{}/{}", text(place, "/namespace"), text(place, "/name"));
        out.push_str(&format!("Node of {machine}: {}\n", text(place, "/node")));
    }
    quota(foreseen, &mut out);
    let urls = foreseen["urls"].as_array().into_iter().flatten();
    for url in urls.filter_map(Value::as_str) {
        out.push_str(&format!("Published at {url}\n"));
    }
    for link in report["output"]["links"].as_array().into_iter().flatten() {
        out.push_str(&format!("{}: {}\n", text(link, "/title"), text(link, "/url")));
    }
    match foreseen["problem"].as_str() {
        Some(problem) => out.push_str(&format!("The run would fail: {problem}")),
        None => out.push_str("Nothing was written."),
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_shown_with_when_its_questions_are_asked() {
        let read = Template::read(&json!({
            "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": "t"},
            "spec": {"steps": [{"action": "debug:log"}], "parameters": [
                {"title": "First", "properties": {"kind": {"enum": ["db", "web"]}}, "required": ["kind"],
                 "if": {"properties": {"kind": {"const": "db"}}}, "then": {"properties": {"engine": {"type": "string", "default": "pg"}}}},
                {"title": "Second", "when": "${{ parameters.kind === 'web' }}", "properties": {"port": {"$ref": "#/definitions/port"}},
                 "definitions": {"port": {"type": "integer"}}},
            ]},
        }))
        .unwrap();
        let said = template(&read);
        for line in [
            "First\n  kind                        [required; db|web]\n",
            "  engine           string     [default \"pg\"; if kind is \"db\"]\n",
            "Second  (when ${{ parameters.kind === 'web' }})\n  port             integer    []\n",
        ] {
            assert!(said.contains(line), "{line:?} in {said}");
        }
    }
}
