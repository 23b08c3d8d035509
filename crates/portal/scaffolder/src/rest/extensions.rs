//! `v2/templating-extensions`: what expressions have beside their language, in Backstage's shape.

use fairway_portal_template::expression::{ABOUT, About};
use serde_json::{Map, Value, json};

/// What JSON Schema says of a type.
fn schema(kind: &str) -> Value {
    match kind {
        "any" => json!({}),
        kind => json!({ "type": kind }),
    }
}

fn filter(about: &About) -> Value {
    let mut schemas = json!({"input": schema(about.types.0), "output": schema(about.types.1)});
    if !about.arguments.is_empty() {
        let arguments = about.arguments.iter().map(|(name, kind)| {
            let mut argument = schema(kind);
            argument["title"] = (*name).into();
            argument
        });
        schemas["arguments"] = arguments.collect();
    }
    json!({
        "description": about.description, "schema": schemas,
        "examples": [{
            "example": format!("${{{{ {} }}}}", about.example), "notes": format!("Output: `{}`", about.result),
        }],
    })
}

/// Filters and functions; there are no values.
pub(super) fn all() -> Value {
    let filters: Map<String, Value> = ABOUT
        .iter()
        .map(|about| (about.name.to_owned(), filter(about)))
        .collect();
    let range = json!({
        "description": "The numbers from the first to before the second, in steps.",
        "schema": {
            "arguments": [
                {"type": "number", "title": "start"}, {"type": "number", "title": "stop"}, {"type": "number", "title": "step"},
            ],
            "output": {"type": "array"},
        },
        "examples": [{"example": "${{ range(3) | join(',') }}", "notes": "Output: `0,1,2`"}],
    });
    json!({"filters": filters, "globals": {"functions": {"range": range}, "values": {}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_what_backstages_page_shows() {
        let all = all();
        let picked = &all["filters"]["pick"];
        assert_eq!(
            picked["schema"],
            json!({"input": {"type": "object"}, "arguments": [{"type": "string", "title": "key"}], "output": {}})
        );
        assert_eq!(
            picked["examples"][0]["example"],
            "${{ {name: 'web'} | pick('name') }}"
        );
        for (name, filter) in all["filters"].as_object().unwrap() {
            assert!(
                filter["description"].is_string() && filter["examples"][0]["notes"].is_string(),
                "{name}"
            );
        }
    }
}
