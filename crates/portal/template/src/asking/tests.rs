//! Pages in all the ways in which one answer leads to another question.

use serde_json::{Value, json};

use super::*;

/// Questions that are open, in their order; those that must be answered with a mark.
fn open(page: &Value, given: Value) -> String {
    let Value::Object(given) = given else {
        panic!("an object")
    };
    let found = questions(page, &given);
    let open = found.iter().filter(|one| !given.contains_key(&one.name));
    let words: Vec<String> = open
        .map(|one| format!("{}{}", one.name, if one.is_required { "!" } else { "" }))
        .collect();
    words.join(" ")
}

#[test]
fn answers_lead_to_questions() {
    let dependency = json!({"properties": {"open": {"type": "boolean"}}, "dependencies": {"open": {"oneOf": [
        {"properties": {"open": {"const": false}}},
        {"properties": {"open": {"const": true}, "host": {}, "auth": {"enum": ["key", "oidc"]}}, "required": ["host"],
         "dependencies": {"auth": {"oneOf": [{"properties": {"auth": {"const": "key"}}}, {"properties": {"auth": {"enum": ["oidc"]}, "issuer": {}}}]}}},
    ]}}});
    let conditional = json!({"properties": {"kind": {}}, "required": ["kind"],
        "if": {"properties": {"kind": {"const": "db"}}, "required": ["kind"]},
        "then": {"properties": {"engine": {}}, "required": ["engine"]}, "else": {"properties": {"port": {}}}});
    let all = json!({"allOf": [{"properties": {"a": {}}}, {"required": ["a"]},
        {"if": {"required": ["a"]}, "then": {"properties": {"b": {}}}}]});
    let referred = json!({"allOf": [{"$ref": "#/definitions/base"}], "properties": {"size": {"$ref": "#/definitions/size", "title": "Size"}},
        "definitions": {"base": {"properties": {"name": {"type": "string"}}, "required": ["name"]}, "size": {"enum": ["s", "l"]}}});
    let either = json!({"oneOf": [
        {"properties": {"by": {"const": "url"}, "url": {}}, "required": ["url"]},
        {"properties": {"by": {"const": "name"}, "name": {}}, "required": ["name"]},
    ]});
    let any = json!({"anyOf": [{"properties": {"mail": {}}, "required": ["mail"]}, {"properties": {"phone": {}}, "required": ["phone"]}]});
    let dependent = json!({"properties": {"user": {}, "password": {}}, "dependentRequired": {"user": ["password"]},
        "dependentSchemas": {"password": {"properties": {"hint": {}}}}, "dependencies": {"hint": ["user"]}});
    let endless = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"properties": {"a": {}}}]});
    for (what, page, given, expected) in [
        ("nothing was answered", &dependency, json!({}), "open"),
        ("no", &dependency, json!({"open": false}), ""),
        ("yes", &dependency, json!({"open": true}), "host! auth"),
        (
            "and deeper",
            &dependency,
            json!({"open": true, "host": "h", "auth": "oidc"}),
            "issuer",
        ),
        (
            "another branch",
            &dependency,
            json!({"open": true, "host": "h", "auth": "key"}),
            "",
        ),
        ("then", &conditional, json!({"kind": "db"}), "engine!"),
        ("else", &conditional, json!({"kind": "web"}), "port"),
        (
            "else, if nobody has answered",
            &conditional,
            json!({}),
            "kind! port",
        ),
        ("all", &all, json!({}), "a!"),
        ("all, and one leads on", &all, json!({"a": 1}), "b"),
        ("definitions", &referred, json!({}), "size name!"),
        ("which branch", &either, json!({}), "by!"),
        ("this branch", &either, json!({"by": "url"}), "url!"),
        ("that branch", &either, json!({"by": "name"}), "name!"),
        ("branches that nothing tells apart", &any, json!({}), "mail phone"),
        (
            "one answer asks for another",
            &dependent,
            json!({"user": "u"}),
            "password!",
        ),
        (
            "and for a part",
            &dependent,
            json!({"user": "u", "password": "p"}),
            "hint",
        ),
        (
            "a list of names",
            &dependent,
            json!({"hint": "h"}),
            "user! password",
        ),
        ("what leads to itself ends", &endless, json!({}), "a"),
    ] {
        assert_eq!(open(page, given), expected, "{what}");
    }
    let found = questions(&referred, &Map::new());
    assert_eq!(found[0].schema, json!({"enum": ["s", "l"], "title": "Size"}));
    let found = questions(&either, &Map::new());
    assert_eq!(found[0].schema["enum"], json!(["url", "name"]));
}

#[test]
fn who_reads_a_template_sees_when_a_question_is_asked() {
    let page = json!({
        "required": ["kind"], "properties": {"kind": {}, "note": {}, "user": {}, "password": {}},
        "dependencies": {"kind": {"oneOf": [
            {"properties": {"kind": {"const": "db"}, "engine": {}}, "required": ["engine", "note"]},
            {"properties": {"kind": {"enum": ["web", "api"]}, "port": {}}},
        ]}, "user": ["password"]},
        "allOf": [{"$ref": "#/definitions/more"}],
        "if": {"required": ["user"]}, "then": {"properties": {"mail": {}}}, "else": {"properties": {"guest": {}}},
        "definitions": {"more": {"properties": {"tag": {}}, "required": ["tag"]}},
    });
    let found = possible(&page);
    let shown: Vec<(String, bool, String)> = found
        .into_iter()
        .map(|one| (one.name, one.is_required, one.when.join("; ")))
        .collect();
    let expected = [
        ("kind", true, ""),
        ("note", false, "required if kind is \"db\""),
        ("user", false, ""),
        ("password", false, "required if user is answered"),
        ("tag", true, ""),
        ("mail", false, "if user is answered"),
        ("guest", false, "unless user is answered"),
        ("engine", true, "if kind is \"db\""),
        ("port", false, "if kind is \"web\" or \"api\""),
    ];
    let expected = expected.map(|(name, must, when)| (name.to_owned(), must, when.to_owned()));
    assert_eq!(shown, expected);
}
