//! What a sync agent is told wrongly, and what consumers try.

use fairway_tenancy_syncagent::hosted::ANNOTATION;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use super::world::{
    World, definition, definitions, exports, inner, machine, outer, patch, publication, published, secrets,
    told,
};
use crate::harness::{a_while, eventually, gone, there};
use crate::tenancy::{bindings, create, make};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_and_healed() {
    let world = World::start().await;
    let place = &world.service;
    // The definition is missing, then there.
    let mut other = publication("ships", json!({"projection": {"kind": "Ship"}}));
    other["spec"]["resource"] = json!({"apiGroup": "sea.io", "kind": "Boat"});
    world.publish(other).await;
    let why = told(place, "ships", "SchemaPublished", "CRDNotFound").await;
    assert!(why.contains("\"Boat\"") && why.contains("\"sea.io\""), "{why}");
    let mut boats = definition();
    boats["metadata"]["name"] = json!("boats.sea.io");
    boats["spec"]["group"] = json!("sea.io");
    boats["spec"]["names"] =
        json!({"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"});
    create(&definitions(place), boats).await;
    told(place, "ships", "SchemaPublished", "").await;
    // A template, a rule, a projection that cannot be.
    for (spec, kind, reason) in [
        (
            json!({"naming": {"namespace": "{{ nope }}"}}),
            "Valid",
            "InvalidNaming",
        ),
        (
            json!({"naming": {"namespace": "{{ .ClusterPath }}"}, "enableWorkspacePaths": false}),
            "Valid",
            "WorkspacePathUnknown",
        ),
        (
            json!({"mutation": {"spec": [{"cel": {"path": "spec.a", "expression": "1 +"}}]}}),
            "Valid",
            "InvalidMutation",
        ),
        (
            json!({"resource": {"apiGroup": "inner.io", "kind": "Machine", "versions": ["v9"]}}),
            "SchemaPublished",
            "InvalidProjection",
        ),
        (
            json!({"projection": {"group": "nodots"}}),
            "SchemaPublished",
            "SchemaRefused",
        ),
    ] {
        world.publish(publication("bad", spec)).await;
        told(place, "bad", kind, reason).await;
        let ready = told(place, "bad", "Ready", reason).await;
        assert!(!ready.is_empty());
        published(place)
            .delete("bad", &DeleteParams::default())
            .await
            .unwrap();
        gone(&published(place), "bad").await;
    }
    // The same kind twice: the first by name.
    world.publish(publication("machines", json!({}))).await;
    told(place, "machines", "Exported", "").await;
    world.publish(publication("zweite", json!({}))).await;
    let why = told(place, "zweite", "Exported", "AlreadyPublished").await;
    assert!(why.contains("\"machines\""), "{why}");
    // Somebody else's export, and none at all.
    let taken = json!({"metadata": {"annotations": {"syncagent.kcp.io/agent-name": "another"}}});
    patch(&exports(place), "cloud", taken).await;
    told(place, "machines", "Exported", "AnotherAgent").await;
    let back = json!({"metadata": {"annotations": {"syncagent.kcp.io/agent-name": null}}});
    patch(&exports(place), "cloud", back).await;
    told(place, "machines", "Exported", "").await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_publication_changes_and_goes() {
    let world = World::start().await;
    let place = &world.service;
    world.publish(publication("machines", json!({}))).await;
    told(place, "machines", "Exported", "").await;
    let project = world.project("acme", "frontend").await;
    let within = "ws-acme-frontend-default";
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "a"}, "spec": {"size": 1}}),
    )
    .await;
    there(&inner(place, within), "a").await;
    // Other rules: what is there stays where it is, and what is new goes where they say.
    let change = json!({"spec": {
        "naming": {"name": "vm-{{ .Object.metadata.name }}"},
        "mutation": {"spec": [{"cel": {"path": "spec.tier", "expression": "\"t\" + string(self.spec.size)"}}]},
        "filter": {"resource": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
                   "namespace": {"matchExpressions": [{"key": "private", "operator": "DoesNotExist"}]}},
    }});
    patch(&published(place), "machines", change).await;
    eventually("the rules are at work", || async {
        inner(place, within).get("a").await.unwrap().data["spec"]["tier"] == "t1"
    })
    .await;
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "b"}, "spec": {"size": 2}}),
    )
    .await;
    there(&inner(place, within), "vm-b").await;
    assert!(inner(place, within).get_opt("vm-a").await.unwrap().is_none());
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "c", "labels": {"skip": ""}}, "spec": {"size": 3}}),
    )
    .await;
    project.namespace("n").await;
    patch(
        &project.namespaces(),
        "n",
        json!({"metadata": {"labels": {"private": ""}}}),
    )
    .await;
    machine(
        &project,
        "n",
        json!({"metadata": {"name": "d"}, "spec": {"size": 4}}),
    )
    .await;
    a_while().await;
    assert!(inner(place, within).get_opt("vm-c").await.unwrap().is_none());
    assert!(
        inner(place, "ws-acme-frontend-n")
            .get_opt("vm-d")
            .await
            .unwrap()
            .is_none()
    );
    patch(
        &outer(&project, "default"),
        "c",
        json!({"metadata": {"labels": {"skip": null}}}),
    )
    .await;
    there(&inner(place, within), "vm-c").await;
    patch(
        &project.namespaces(),
        "n",
        json!({"metadata": {"labels": {"private": null}}}),
    )
    .await;
    there(&inner(place, "ws-acme-frontend-n"), "vm-d").await;
    // Another definition: another schema, and the consumers' kind follows.
    let before = published(place).get("machines").await.unwrap().data["status"]["resourceSchemaName"].clone();
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut wider = definition();
    wider.pointer_mut(field).unwrap()["colour"] = json!({"type": "string"});
    patch(
        &definitions(place),
        "machines.inner.io",
        json!({"spec": wider["spec"]}),
    )
    .await;
    eventually("there is another schema", || async {
        published(place).get("machines").await.unwrap().data["status"]["resourceSchemaName"] != before
    })
    .await;
    eventually("and the consumer has it", || async {
        let change = json!({"spec": {"colour": "red"}});
        patch(&outer(&project, "default"), "a", change).await;
        outer(&project, "default").get("a").await.unwrap().data["spec"]["colour"] == "red"
    })
    .await;
    eventually("and the copy, too", || async {
        inner(place, within).get("a").await.unwrap().data["spec"]["colour"] == "red"
    })
    .await;
    // Deleted: nobody's data goes. Nothing moves until it is back.
    let object = published(place).get("machines").await.unwrap();
    published(place)
        .delete("machines", &DeleteParams::default())
        .await
        .unwrap();
    a_while().await;
    patch(
        &outer(&project, "default"),
        "a",
        json!({"spec": {"colour": "blue"}}),
    )
    .await;
    a_while().await;
    assert_eq!(
        inner(place, within).get("a").await.unwrap().data["spec"]["colour"],
        "red"
    );
    assert!(outer(&project, "default").get_opt("a").await.unwrap().is_some());
    let back = json!({"apiVersion": "syncagent.kcp.io/v1alpha1", "kind": "PublishedResource",
        "metadata": {"name": "machines"}, "spec": object.data["spec"]});
    world.publish(back).await;
    eventually("it goes on", || async {
        inner(place, within).get("a").await.unwrap().data["spec"]["colour"] == "blue"
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_stay_in_their_namespaces() {
    let world = World::start().await;
    let place = &world.service;
    let related = json!([
        {"identifier": "secret", "origin": "service", "kind": "Secret", "object": {
            "reference": {"path": "spec.secretName"},
            "namespace": {"reference": {"path": "spec.place"}}}},
        {"identifier": "down", "origin": "kcp", "kind": "ConfigMap", "object": {
            "reference": {"path": "spec.host"}}},
    ]);
    world
        .publish(publication("machines", json!({"related": related})))
        .await;
    told(place, "machines", "Exported", "").await;
    let victim = world.project("acme", "shop").await;
    machine(
        &victim,
        "default",
        json!({"metadata": {"name": "web"}, "spec": {"size": 1}}),
    )
    .await;
    let victims = "ws-acme-shop-default";
    there(&inner(place, victims), "web").await;
    let uid = inner(place, victims).get("web").await.unwrap().metadata.uid;
    let hidden = json!({"metadata": {"name": "hidden"}, "stringData": {"k": "v"}});
    crate::harness::create(&secrets(place, victims), hidden).await;
    crate::harness::create(
        &place.config_maps(victims),
        json!({"metadata": {"name": "theirs"}, "data": {"a": "old"}}),
    )
    .await;

    // Another organisation whose names come out the same.
    let thief = world.project("acme-shop", "default").await;
    let lookalike = world.project("acme", "shop-default").await;
    machine(&thief, "default", json!({"metadata": {"name": "own"}})).await;
    there(&inner(place, "ws-acme-shop-default-default"), "own").await;
    // `acme:shop-default` with `default` comes to the same name as `acme-shop:default` with `default`.
    machine(
        &lookalike,
        "default",
        json!({"metadata": {"name": "own"}, "spec": {"size": 7}}),
    )
    .await;
    let all = place.api("inner.io/v1", "Machine", "machines", "");
    eventually("both have a copy", || async {
        all.list(&ListParams::default()).await.unwrap().items.len() == 3
    })
    .await;
    let copies = all.list(&ListParams::default()).await.unwrap();
    let other = copies
        .items
        .iter()
        .find(|it| it.data["spec"]["size"] == 7)
        .unwrap();
    let namespace = other.metadata.namespace.clone().unwrap();
    assert!(
        namespace.starts_with("ws-acme-shop-default-default-"),
        "{namespace}"
    );

    // Marks of an agent on an original are worth nothing.
    let victims_id = inner(place, victims)
        .get("web")
        .await
        .unwrap()
        .metadata
        .labels
        .unwrap()["syncagent.kcp.io/remote-object-cluster"]
        .clone();
    machine(&thief, "default", json!({
        "metadata": {
            "name": "web",
            "labels": {"syncagent.kcp.io/remote-object-cluster": victims_id, "syncagent.kcp.io/agent-name": "x"},
            "annotations": {"syncagent.kcp.io/remote-object-namespace": "default", "syncagent.kcp.io/remote-object-name": "web"},
        },
        "spec": {"size": 666},
    }))
    .await;
    there(&inner(place, "ws-acme-shop-default-default"), "web").await;
    let copy = inner(place, "ws-acme-shop-default-default")
        .get("web")
        .await
        .unwrap();
    assert_ne!(
        copy.metadata.labels.unwrap()["syncagent.kcp.io/remote-object-cluster"],
        victims_id
    );
    assert_eq!(
        inner(place, victims).get("web").await.unwrap().data["spec"]["size"],
        1
    );

    // A field that names another's namespace, or leaves its place, opens nothing.
    for (name, secret, namespace) in [
        ("reads", "hidden", victims),
        ("system", "hidden", "kube-system"),
        (
            "path",
            "../../ws-acme-shop-default/secrets/hidden",
            "ws-acme-shop-default-default",
        ),
        ("dots", "..", "ws-acme-shop-default-default"),
    ] {
        let spec = json!({"secretName": secret, "place": namespace});
        machine(
            &thief,
            "default",
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await;
        there(&inner(place, "ws-acme-shop-default-default"), name).await;
    }
    let why = told(place, "machines", "Synchronized", "ObjectsFailing").await;
    assert!(why.contains("cannot be synchronised"), "{why}");
    a_while().await;
    let mut seen = Vec::new();
    for namespace in ["default", victims] {
        let list = secrets(&thief, namespace)
            .list(&ListParams::default())
            .await
            .unwrap();
        seen.extend(
            list.items
                .into_iter()
                .map(|it| it.metadata.name.unwrap())
                .filter(|it| it == "hidden"),
        );
    }
    assert_eq!(seen, [""; 0]);
    let events = thief
        .api("v1", "Event", "events", "default")
        .list(&ListParams::default())
        .await
        .unwrap();
    let texts: Vec<_> = events
        .items
        .iter()
        .map(|it| it.data["message"].to_string())
        .collect();
    assert!(
        texts.iter().any(|it| it.contains("a provider-side issue")),
        "{texts:?}"
    );
    assert!(
        texts.iter().all(|it| !it.contains(victims)),
        "nothing of the service's side is told: {texts:?}"
    );

    // What is there already is not overwritten: neither by a copy of a ConfigMap nor by one of the kind itself.
    let within = "ws-acme-shop-default-default";
    let provider = json!({"metadata": {"name": "provider"}, "data": {"a": "provider"}});
    crate::harness::create(&place.config_maps(within), provider).await;
    crate::harness::create(
        &thief.config_maps("default"),
        json!({"metadata": {"name": "provider"}, "data": {"a": "thief"}}),
    )
    .await;
    machine(
        &thief,
        "default",
        json!({"metadata": {"name": "writes"}, "spec": {"host": "provider"}}),
    )
    .await;
    let mine: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "inner.io/v1", "kind": "Machine", "metadata": {"name": "internal"}, "spec": {"size": 5}}))
    .unwrap();
    inner(place, within)
        .create(&PostParams::default(), &mine)
        .await
        .unwrap();
    machine(
        &thief,
        "default",
        json!({"metadata": {"name": "internal"}, "spec": {"size": 6}}),
    )
    .await;
    a_while().await;
    assert_eq!(
        place.config_maps(within).get("provider").await.unwrap().data["data"]["a"],
        "provider"
    );
    assert_eq!(
        inner(place, within).get("internal").await.unwrap().data["spec"]["size"],
        5
    );

    // Who takes the finalizer off leaves no copy behind.
    patch(
        &outer(&thief, "default"),
        "own",
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    let api = outer(&thief, "default");
    eventually("the original is gone, one way or the other", || async {
        let _ = api.delete("own", &DeleteParams::default()).await;
        let none: Value = json!({"metadata": {"finalizers": null}});
        let params = kube::api::PatchParams::default();
        let _ = api.patch("own", &params, &kube::api::Patch::Merge(none)).await;
        api.get_opt("own").await.unwrap().is_none()
    })
    .await;
    gone(&inner(place, within), "own").await;
    assert_eq!(inner(place, victims).get("web").await.unwrap().metadata.uid, uid);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_are_told_what_they_have_not_agreed_to() {
    let world = World::start().await;
    let place = &world.service;
    let related = json!([{"identifier": "key", "origin": "kcp", "kind": "Secret",
        "object": {"reference": {"path": "spec.secretName"}}}]);
    world
        .publish(publication("machines", json!({"related": related})))
        .await;
    told(place, "machines", "Exported", "").await;
    let project = world.project("acme", "frontend").await;
    let api = bindings(&project);
    let answers = api.get("cloud").await.unwrap().data["spec"]["permissionClaims"].clone();
    let answer = async |rejected: &str| {
        let mut answers = answers.clone();
        for it in answers.as_array_mut().unwrap() {
            if it["resource"] == rejected {
                it["state"] = json!("Rejected");
            }
        }
        patch(&api, "cloud", json!({"spec": {"permissionClaims": answers}})).await;
    };
    let events = project.api("v1", "Event", "events", "default");
    let heard = async |text: &str| {
        eventually(&format!("the consumer hears of {text}"), || async {
            let list = events.list(&ListParams::default()).await.unwrap();
            list.items
                .iter()
                .any(|it| it.data["message"].as_str().is_some_and(|it| it.contains(text)))
        })
        .await;
    };
    answer("logicalclusters").await;
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "a"}, "spec": {"secretName": "s"}}),
    )
    .await;
    heard("accept the permission claim on logicalclusters").await;
    let within = "ws-acme-frontend-default";
    assert!(inner(place, within).get_opt("a").await.unwrap().is_none());
    answer("secrets").await;
    there(&inner(place, within), "a").await;
    heard("accept the permission claim on secrets").await;
    answer("").await;
    crate::harness::create(&secrets(&project, "default"), json!({"metadata": {"name": "s"}})).await;
    there(&secrets(place, within), "s").await;
    told(place, "machines", "Ready", "").await;
    world.stop().await;
}

/// The agents of all exports are one user, so no workspace may lead its agent into another's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_looks_into_no_other_export() {
    let world = World::start().await;
    let place = &world.service;
    world.publish(publication("machines", json!({}))).await;
    told(place, "machines", "Exported", "").await;
    let project = world.project("acme", "frontend").await;
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "secret"}, "spec": {"size": 1}}),
    )
    .await;
    there(&inner(place, "ws-acme-frontend-default"), "secret").await;
    let slices = |place: &crate::harness::View| {
        let kind = "APIExportEndpointSlice";
        place.api("apis.kcp.io/v1alpha1", kind, "apiexportendpointslices", "")
    };
    let endpoints = slices(place).get("cloud").await.unwrap().data["status"]["endpoints"].clone();
    assert!(endpoints[0]["url"].is_string());

    // A workspace with an export of its own, and a slice that leads to the other's.
    let id = make(&world.cluster, "curious", Some("universal")).await;
    let curious = world.cluster.at(&id);
    create(&definitions(&curious), definition()).await;
    let export = json!({"metadata": {"name": "cloud", "annotations": {ANNOTATION: ""}}, "spec": {}});
    create(&exports(&curious), export).await;
    let object: DynamicObject = serde_json::from_value(publication("machines", json!({}))).unwrap();
    published(&curious)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    told(&curious, "machines", "Exported", "").await;
    there(&slices(&curious), "cloud").await;
    let params = kube::api::PatchParams::default();
    let lie = json!({"status": {"endpoints": endpoints}});
    // Again and again, since the truth is restored at once.
    for _ in 0..50 {
        let told = kube::api::Patch::Merge(lie.clone());
        let _ = slices(&curious).patch_status("cloud", &params, &told).await;
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    a_while().await;
    let all = curious.api("inner.io/v1", "Machine", "machines", "");
    assert_eq!(all.list(&ListParams::default()).await.unwrap().items.len(), 0);
    world.stop().await;
}
