//! Templates of others that ask under conditions, keep parts from some people, or give a step what it does not take.

use serde_json::{Value, json};

use crate::world::{World, phase, voyage, voyage_when};

const TEMPLATES: &str = "/apis/scaffolder.backstage.io/v1beta3/namespaces/default/templates";

#[allow(clippy::needless_pass_by_value, reason = "callers write them in place")]
fn template(name: &str, parameters: Value, step: Value) -> Value {
    json!({
        "apiVersion": "scaffolder.backstage.io/v1beta3", "kind": "Template", "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "test", "parameters": parameters, "steps": [step]},
    })
}

/// Each is tried by the command line, by which a person comes, and as a Voyage, by which a program may.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_hold_on_every_way_to_a_run() {
    let world = World::start();
    let api = world.api().await;
    let tell = |message: &str| json!({"id": "say", "action": "debug:log", "input": {"message": message}});
    let paged = json!([
        {"required": ["cloud"], "properties": {"cloud": {"type": "string"}}},
        {"when": "${{ parameters.cloud === 'A' }}", "required": ["zone"], "properties": {"zone": {"type": "string"}}},
    ]);
    let restricted =
        json!([{"backstage:permissions": {"tags": ["ops"]}, "properties": {"cloud": {"type": "string"}}}]);
    let all = [
        template("paged", paged.clone(), tell("said ${{ parameters.zone }}.")),
        template("restricted", restricted, tell("x")),
        template(
            "mistyped",
            paged,
            json!({"id": "wait", "action": "debug:wait", "input": {"seconds": "${{ parameters.cloud }}"}}),
        ),
        template(
            "told",
            json!([]),
            json!({"id": "tell", "action": "notification:send", "input": {
                "recipients": "entity", "entityRefs": ["platform", "user:default/nobody"], "title": "done", "scope": "x"}}),
        ),
    ];
    for template in all {
        assert!(api.create(TEMPLATES, &template).await.unwrap(), "{template}");
    }
    for (what, template, values, succeeds, expected) in [
        (
            "a page that is asked",
            "paged",
            json!({"cloud": "A"}),
            false,
            "zone: an answer is required",
        ),
        (
            "its answer",
            "paged",
            json!({"cloud": "A", "zone": "1"}),
            true,
            "said 1.",
        ),
        ("one that is not", "paged", json!({"cloud": "B"}), true, "said ."),
        (
            "nor is its answer taken",
            "paged",
            json!({"cloud": "B", "zone": "2"}),
            true,
            "said .",
        ),
        (
            "a text stays one",
            "paged",
            json!({"cloud": "A", "zone": "007"}),
            true,
            "said 007.",
        ),
        (
            "not for everybody",
            "restricted",
            json!({"cloud": "A"}),
            false,
            "spec.parameters[0].backstage:permissions",
        ),
        (
            "a wrong type",
            "mistyped",
            json!({"cloud": "5"}),
            false,
            "debug:wait takes input.seconds as a number, and was given a string",
        ),
        (
            "nobody in the catalog",
            "told",
            json!({}),
            true,
            "platform is not in the catalog and is not written to",
        ),
        (
            "what nobody looks at",
            "told",
            json!({}),
            true,
            "notification:send does not know input.scope",
        ),
    ] {
        let mut words = vec!["new".to_owned(), template.to_owned(), "-y".to_owned()];
        for (name, value) in values.as_object().unwrap() {
            words.extend(["--set".to_owned(), format!("{name}={}", value.as_str().unwrap())]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (done, text) = world.fairway(&words);
        assert_eq!(done, succeeds, "{what}: {text}");
        assert!(text.contains(expected), "{what}: {text}");

        let name = format!("by-hand-{}", what.replace(' ', "-"));
        voyage(&api, &name, json!({"template": template, "values": values})).await;
        let ended = voyage_when(&api, &name, "it is over", |voyage| {
            matches!(phase(voyage), "Succeeded" | "Failed")
        })
        .await;
        assert_eq!(phase(&ended) == "Succeeded", succeeds, "{what}: {ended:#}");
        assert!(
            ended["status"].to_string().contains(expected),
            "{what}: {ended:#}"
        );
    }
}
