//! What is kept of names and ids must never be less than the resources say.

use serde_json::json;

use super::*;

fn resource(kind: &str, name: &str) -> Resource {
    Resource::new(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})).unwrap()
}

fn id(kind: &str, name: &str) -> ResId {
    resource(kind, name).current_id(&OpenApi::new())
}

fn three() -> ResMap {
    let mut map = ResMap::default();
    let all = ["a", "b", "c"].map(|name| resource("ConfigMap", name));
    map.append_all(all, &OpenApi::new(), 10).unwrap();
    map
}

#[test]
fn a_resource_is_found_by_every_name_that_it_has_or_had() {
    let api = OpenApi::new();
    let mut map = three();
    assert_eq!(map.find(&id("ConfigMap", "b"), &api).unwrap(), 1);
    // After the index was made: a rename that is noted, and one that is not.
    map.edit(1, &api, |resource| {
        resource.store_previous_id(&api);
        resource.set_name("renamed")
    })
    .unwrap();
    map.edit(2, &api, |resource| resource.set_name("other")).unwrap();
    for (name, expected) in [
        ("a", vec![0]),
        ("b", vec![1]),
        ("renamed", vec![1]),
        ("c", vec![]),
        ("other", vec![2]),
    ] {
        let found = map.matching_any_id(&id("ConfigMap", name), &api);
        assert_eq!(found, expected, "{name}");
    }
    map.append(resource("ConfigMap", "c"), &api, 10).unwrap();
    assert_eq!(map.find(&id("ConfigMap", "c"), &api).unwrap(), 3);
    let error = map.append(resource("ConfigMap", "other"), &api, 10).unwrap_err();
    assert!(error.to_string().contains("already registered"), "{error}");
}

#[test]
fn what_is_known_is_kept_only_while_names_stay() {
    let api = OpenApi::new();
    type Step = fn(&mut Resource) -> Result<()>;
    let steps: [(&str, Step, bool); 5] = [
        ("labels", |resource| resource.set_annotation("x", "y"), true),
        (
            "the same name noted again",
            |resource| {
                resource.store_previous_id(&OpenApi::new());
                Ok(())
            },
            true,
        ),
        ("another name", |resource| resource.set_name("z"), false),
        ("another namespace", |resource| resource.set_namespace("n"), false),
        (
            "emptied",
            |resource| {
                resource.value = Value::Null;
                Ok(())
            },
            false,
        ),
    ];
    for (why, step, is_kept) in steps {
        let mut map = three();
        assert!(map.is_known_unique());
        map.edit(0, &api, step).unwrap();
        assert_eq!(map.is_known_unique(), is_kept, "{why}");
    }
}

#[test]
fn what_was_emptied_is_dropped_and_the_rest_is_found() {
    let api = OpenApi::new();
    let mut map = three();
    assert_eq!(map.find(&id("ConfigMap", "c"), &api).unwrap(), 2);
    map.edit(0, &api, |resource| {
        resource.value = Value::Null;
        Ok(())
    })
    .unwrap();
    assert!(map.find(&id("ConfigMap", "a"), &api).is_err());
    map.drop_gone();
    assert_eq!(map.find(&id("ConfigMap", "c"), &api).unwrap(), 1);
    assert_eq!(map.len(), 2);
}

#[test]
fn patterns_look_at_all_and_names_at_theirs() {
    let api = OpenApi::new();
    let mut map = three();
    map.append(resource("Secret", "a"), &api, 10).unwrap();
    for (kind, name, expected) in [
        ("", "a", vec![0, 3]),
        ("Secret", "a", vec![3]),
        ("", "a|b", vec![0, 1, 3]),
        ("", "", vec![0, 1, 2, 3]),
        ("", ".", vec![0, 1, 2, 3]),
        ("", "A", vec![]),
    ] {
        let selector = Selector {
            id: ResId {
                gvk: crate::id::Gvk::new("", "", kind),
                name: name.to_owned(),
                namespace: String::new(),
            },
            ..Selector::default()
        };
        assert_eq!(
            map.select(&selector, &api, 1 << 20).unwrap(),
            expected,
            "{kind} {name}"
        );
    }
}
