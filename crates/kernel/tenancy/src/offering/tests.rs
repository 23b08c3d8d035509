//! An export before and after an agent has looked at it.

use super::*;

fn published(name: &str, spec: &Value) -> PublishedResource {
    PublishedResource::read(&json!({"metadata": {"name": name}, "spec": spec}))
}

fn export(resources: &Value, claims: &Value) -> Value {
    json!({
        "metadata": {"name": "e", "resourceVersion": "7", "annotations": {AGENT_ANNOTATION: "a"}},
        "spec": {"resources": resources, "permissionClaims": claims},
    })
}

fn resource(name: &str, schema: &str) -> Value {
    json!({"group": "sea.io", "name": name, "schema": schema, "storage": {"crd": {}}})
}

fn claim(group: &str, resource: &str) -> Value {
    json!({"group": group, "resource": resource, "verbs": ["*"]})
}

#[test]
fn kinds_and_claims_are_added_and_none_is_taken_away() {
    let boats = published(
        "boats",
        &json!({"enableWorkspacePaths": true, "related": [
            {"identifier": "s", "origin": "service", "kind": "Secret", "object": {}},
            {"identifier": "b", "origin": "kcp", "group": "sea.io", "version": "v1", "resource": "boats", "object": {}},
            {"identifier": "x", "origin": "kcp", "group": "x.io", "version": "v1", "resource": "xs", "identityHash": "h", "object": {}},
        ]}),
    );
    let plain = published("plain", &json!({}));
    let foreign = json!({"group": "", "resource": "secrets", "verbs": ["get"]});
    for (name, before, offers, expected) in [
        (
            "a new export",
            export(&json!([]), &json!([])),
            vec![(&plain, "v1.boats.sea.io")],
            Some((
                json!([resource("boats", "v1.boats.sea.io")]),
                json!([claim("", "events")]),
            )),
        ),
        (
            "another schema, beside what others have put there",
            export(
                &json!([
                    resource("boats", "v1.boats.sea.io"),
                    resource("gone", "v1.gone.sea.io")
                ]),
                &json!([foreign]),
            ),
            vec![(&boats, "v2.boats.sea.io")],
            Some((
                json!([
                    resource("boats", "v2.boats.sea.io"),
                    resource("gone", "v1.gone.sea.io")
                ]),
                json!([
                    foreign,
                    claim("", "events"),
                    claim("", "namespaces"),
                    claim("core.kcp.io", "logicalclusters"),
                    {"group": "x.io", "resource": "xs", "verbs": ["*"], "identityHash": "h"},
                ]),
            )),
        ),
        (
            "nothing new",
            export(
                &json!([resource("boats", "v1.boats.sea.io")]),
                &json!([claim("", "events")]),
            ),
            vec![(&plain, "v1.boats.sea.io")],
            None,
        ),
    ] {
        let offers: Vec<Offer<'_>> = offers
            .into_iter()
            .map(|(published, schema)| Offer { published, schema })
            .collect();
        let verdict = decide(&before, &offers, "a");
        match expected {
            None => assert_eq!(verdict, Verdict::UpToDate, "{name}"),
            Some((resources, claims)) => {
                let Verdict::Change(patch) = verdict else {
                    panic!("{name}: {verdict:?}")
                };
                let now = |field: &str| match &patch["spec"][field] {
                    Value::Null => before["spec"][field].clone(),
                    changed => changed.clone(),
                };
                assert_eq!(
                    (now("resources"), now("permissionClaims")),
                    (resources, claims),
                    "{name}"
                );
                assert_eq!(patch["metadata"]["resourceVersion"], "7", "{name}");
            }
        }
    }
}

#[test]
fn an_export_has_one_agent() {
    let before = export(&json!([]), &json!([]));
    assert_eq!(decide(&before, &[], "b"), Verdict::Anothers("a".to_owned()));
    let mut nobodys = before;
    nobodys["metadata"]["annotations"] = json!({});
    let Verdict::Change(patch) = decide(&nobodys, &[], "b") else {
        panic!()
    };
    assert_eq!(patch["metadata"]["annotations"][AGENT_ANNOTATION], "b");
}

#[test]
fn the_first_by_name_wins() {
    let (a, b, c) = (
        published("a", &json!({})),
        published("b", &json!({})),
        published("c", &json!({})),
    );
    let offers = [
        (&c, "v1.boats.sea.io"),
        (&a, "v1.boats.sea.io"),
        (&b, "v1.ports.sea.io"),
    ]
    .map(|(published, schema)| Offer { published, schema });
    assert_eq!(superseded(&offers), BTreeMap::from([("c", "a")]));
}
