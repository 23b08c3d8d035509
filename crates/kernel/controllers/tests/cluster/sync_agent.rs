//! A kind of a service workspace in the hands of consumers: from the PublishedResource to the end of the last copy.

mod bad_input;
mod world;

use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use self::world::{
    World, definition, definitions, exports, inner, machine, outer, patch, publication, published, secrets,
    told,
};
use crate::harness::{View, a_while, eventually, gone, there};
use crate::tenancy::{bindings, create, workspaces};

async fn copied(place: &View, namespace: &str, name: &str) -> DynamicObject {
    there(&inner(place, namespace), name).await;
    inner(place, namespace).get(name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn same_named_objects_of_two_projects_live_side_by_side() {
    let world = World::start().await;
    let rules = json!({"mutation": {
        "spec": [{"template": {"path": "spec.tier", "template": "gold"}}],
        "status": [{"delete": {"path": "status.host"}}],
    }});
    world.publish(publication("machines", rules)).await;
    told(&world.service, "machines", "Exported", "").await;
    told(&world.service, "machines", "Synchronized", "NoConsumers").await;
    let schema =
        published(&world.service).get("machines").await.unwrap().data["status"]["resourceSchemaName"].clone();
    let schema = schema.as_str().unwrap().to_owned();
    assert!(
        schema.starts_with('v') && schema.ends_with(".virtualmachines.cloud.io"),
        "{schema}"
    );
    let export = exports(&world.service).get("cloud").await.unwrap();
    assert_eq!(export.data["spec"]["resources"][0]["schema"], schema.as_str());
    assert_eq!(
        export.metadata.annotations.unwrap()["syncagent.kcp.io/agent-name"],
        "cloud-syncagent"
    );

    let frontend = world.project("acme", "frontend").await;
    let backend = world.project("acme", "backend").await;
    for (place, size) in [(&frontend, 1), (&backend, 2)] {
        let object = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"size": size}});
        machine(place, "default", object).await;
    }
    for (namespace, place, size) in [
        ("ws-acme-frontend-default", &frontend, 1),
        ("ws-acme-backend-default", &backend, 2),
    ] {
        let copy = copied(&world.service, namespace, "web").await;
        assert_eq!(copy.data["spec"], json!({"size": size, "tier": "gold"}));
        let labels = copy.metadata.labels.unwrap();
        assert_eq!(labels["app"], "web");
        assert_eq!(labels["syncagent.kcp.io/agent-name"], "cloud-syncagent");
        // The status comes up, without what is nobody's business.
        let status = json!({"status": {"phase": format!("Running {size}"), "host": "node-7"}});
        let params = PatchParams::default();
        inner(&world.service, namespace)
            .patch_status("web", &params, &Patch::Merge(status))
            .await
            .unwrap();
        eventually("the status comes up", || async {
            outer(place, "default").get("web").await.unwrap().data["status"]
                == json!({"phase": format!("Running {size}")})
        })
        .await;
        let original = outer(place, "default").get("web").await.unwrap();
        assert!(
            original.data["spec"]["tier"].is_null(),
            "the consumer's spec is his own"
        );
    }
    told(&world.service, "machines", "Ready", "").await;
    // What the consumer changes and removes, changes and goes; what the service adds, stays.
    let inside = inner(&world.service, "ws-acme-frontend-default");
    patch(&inside, "web", json!({"spec": {"host": "node-7"}})).await;
    patch(
        &outer(&frontend, "default"),
        "web",
        json!({"spec": {"size": null, "place": "north"}}),
    )
    .await;
    eventually("the copy follows", || async {
        inside.get("web").await.unwrap().data["spec"]
            == json!({"host": "node-7", "place": "north", "tier": "gold"})
    })
    .await;
    // Somebody on the service's side changes what is the consumer's.
    patch(&inside, "web", json!({"spec": {"place": "south"}})).await;
    eventually("it is changed back", || async {
        inside.get("web").await.unwrap().data["spec"]["place"] == "north"
    })
    .await;
    // The consumer never sees the inner kind, and is told what happened.
    assert!(
        inner(&frontend, "default")
            .list(&ListParams::default())
            .await
            .is_err()
    );
    let events = frontend.api("v1", "Event", "events", "default");
    eventually("there are events", || async {
        let list = events.list(&ListParams::default()).await.unwrap();
        let reasons: Vec<_> = list.items.iter().map(|it| it.data["reason"].clone()).collect();
        [
            "ObjectAccepted",
            "ObjectPlaced",
            "ObjectSynced",
            "ObjectStatusSynced",
        ]
        .iter()
        .all(|it| reasons.contains(&json!(it)))
    })
    .await;
    // One watch over all workspaces.
    let watches = world.cluster.watches();
    let consumers: Vec<_> = watches
        .iter()
        .filter(|(path, _)| path.contains("/services/apiexport/") && path.ends_with("/virtualmachines"))
        .collect();
    assert_eq!(consumers.len(), 1, "{watches:?}");
    assert!(consumers[0].0.contains("/clusters/*/"));
    // Deletion: the copy first, and while it is held the original waits.
    patch(
        &inside,
        "web",
        json!({"metadata": {"finalizers": ["inner.io/hold"]}}),
    )
    .await;
    let params = DeleteParams::default();
    outer(&frontend, "default").delete("web", &params).await.unwrap();
    eventually("the copy is being deleted", || async {
        inside
            .get("web")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    })
    .await;
    a_while().await;
    assert!(
        outer(&frontend, "default")
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );
    patch(&inside, "web", json!({"metadata": {"finalizers": null}})).await;
    gone(&outer(&frontend, "default"), "web").await;
    assert!(inside.get_opt("web").await.unwrap().is_none());
    assert!(
        inner(&world.service, "ws-acme-backend-default")
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );
    // A whole project goes, and its copies with it.
    let acme = workspaces(&world.cluster).get("acme").await.unwrap().data["spec"]["cluster"].clone();
    let acme = world.cluster.at(acme.as_str().unwrap());
    workspaces(&acme).delete("backend", &params).await.unwrap();
    gone(&workspaces(&acme), "backend").await;
    gone(&inner(&world.service, "ws-acme-backend-default"), "web").await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_go_both_ways() {
    let world = World::start().await;
    world
        .publish(publication(
            "machines",
            json!({"related": [
                {"identifier": "credentials", "origin": "service", "kind": "Secret", "cleanup": true,
                 "object": {"template": {"template": "{{ .Object.metadata.name }}-credentials"}}},
                {"identifier": "key", "origin": "kcp", "group": "", "version": "v1", "resource": "secrets",
                 "object": {"reference": {"path": "spec.secretName"}}},
                {"identifier": "settings", "origin": "kcp", "kind": "ConfigMap",
                 "object": {"selector": {"matchLabels": {"vm": "{{ .RemoteObject.metadata.name }}"},
                    "rewrite": {"template": {"template": "{{ .LocalObject.metadata.name }}-{{ .Value }}"}}}}},
            ]}),
        ))
        .await;
    told(&world.service, "machines", "Exported", "").await;
    let export = exports(&world.service).get("cloud").await.unwrap();
    let claims = export.data["spec"]["permissionClaims"].as_array().unwrap();
    let mut claims: Vec<_> = claims.iter().map(|it| it["resource"].as_str().unwrap()).collect();
    claims.sort_unstable();
    assert_eq!(
        claims,
        ["configmaps", "events", "logicalclusters", "namespaces", "secrets"]
    );
    let project = world.project("acme", "frontend").await;
    let within = "ws-acme-frontend-default";
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "web"}, "spec": {"secretName": "ssh"}}),
    )
    .await;
    copied(&world.service, within, "web").await;
    // Up: it comes after the object, changes, and goes with it.
    let inside = secrets(&world.service, within);
    let secret = |name: &str, value: &str| json!({"metadata": {"name": name}, "stringData": {"k": value}});
    crate::harness::create(&inside, secret("web-credentials", "one")).await;
    let outside = secrets(&project, "default");
    there(&outside, "web-credentials").await;
    let up = outside.get("web-credentials").await.unwrap();
    assert_eq!(up.data["data"]["k"], "b25l");
    let labels = up.metadata.labels.unwrap_or_default();
    assert!(
        labels.keys().all(|key| !key.starts_with("syncagent")),
        "{labels:?}"
    );
    eventually("the object names it", || async {
        let all = outer(&project, "default").get("web").await.unwrap().metadata.annotations;
        let text = all.unwrap_or_default().remove("related-resources.syncagent.kcp.io/credentials.0");
        text.and_then(|it| serde_json::from_str(&it).ok()).unwrap_or(Value::Null)
            == json!({"namespace": "default", "name": "web-credentials", "apiVersion": "v1", "kind": "Secret"})
    })
    .await;
    patch(&inside, "web-credentials", json!({"stringData": {"k": "two"}})).await;
    eventually("the change comes up", || async {
        outside.get("web-credentials").await.unwrap().data["data"]["k"] == "dHdv"
    })
    .await;
    // Down: the same, and the consumer's Secret is not held.
    crate::harness::create(&outside, secret("ssh", "mine")).await;
    there(&inside, "ssh").await;
    assert_eq!(inside.get("ssh").await.unwrap().data["data"]["k"], "bWluZQ==");
    patch(&outside, "ssh", json!({"stringData": {"k": "new"}})).await;
    eventually("the change goes down", || async {
        inside.get("ssh").await.unwrap().data["data"]["k"] == "bmV3"
    })
    .await;
    let map = |name: &str| json!({"metadata": {"name": name, "labels": {"vm": "web"}}, "data": {"a": "b"}});
    crate::harness::create(&project.config_maps("default"), map("one")).await;
    crate::harness::create(&project.config_maps("default"), map("two")).await;
    there(&world.service.config_maps(within), "web-one").await;
    there(&world.service.config_maps(within), "web-two").await;
    let params = DeleteParams::default();
    project
        .config_maps("default")
        .delete("one", &params)
        .await
        .unwrap();
    gone(&world.service.config_maps(within), "web-one").await;
    // Two that name the same Secret share its copy, and the last of them takes it along.
    let object = json!({"metadata": {"name": "twin"}, "spec": {"secretName": "ssh"}});
    machine(&project, "default", object).await;
    copied(&world.service, within, "twin").await;
    patch(
        &outer(&project, "default"),
        "web",
        json!({"spec": {"secretName": "other"}}),
    )
    .await;
    a_while().await;
    assert!(inside.get_opt("ssh").await.unwrap().is_some());
    outer(&project, "default").delete("twin", &params).await.unwrap();
    gone(&outer(&project, "default"), "twin").await;
    gone(&inside, "ssh").await;
    patch(
        &outer(&project, "default"),
        "web",
        json!({"spec": {"secretName": "ssh"}}),
    )
    .await;
    there(&inside, "ssh").await;
    outside.delete("ssh", &params).await.unwrap();
    gone(&inside, "ssh").await;
    assert!(
        world
            .service
            .config_maps(within)
            .get_opt("web-two")
            .await
            .unwrap()
            .is_some()
    );
    outer(&project, "default").delete("web", &params).await.unwrap();
    gone(&outer(&project, "default"), "web").await;
    gone(&outside, "web-credentials").await;
    gone(&world.service.config_maps(within), "web-two").await;
    assert!(
        project
            .config_maps("default")
            .get_opt("two")
            .await
            .unwrap()
            .is_some()
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_was_away_takes_up_where_it_left() {
    let mut world = World::start().await;
    world.publish(publication("machines", json!({}))).await;
    told(&world.service, "machines", "Exported", "").await;
    let project = world.project("acme", "frontend").await;
    let within = "ws-acme-frontend-default";
    for name in ["kept", "deleted", "changed"] {
        machine(
            &project,
            "default",
            json!({"metadata": {"name": name}, "spec": {"size": 1}}),
        )
        .await;
    }
    for name in ["kept", "deleted", "changed"] {
        copied(&world.service, within, name).await;
    }
    let uid = inner(&world.service, within)
        .get("kept")
        .await
        .unwrap()
        .metadata
        .uid;
    world.stop_agent().await;
    let params = DeleteParams::default();
    outer(&project, "default")
        .delete("deleted", &params)
        .await
        .unwrap();
    patch(
        &outer(&project, "default"),
        "changed",
        json!({"spec": {"size": 2}}),
    )
    .await;
    machine(
        &project,
        "default",
        json!({"metadata": {"name": "new"}, "spec": {"size": 3}}),
    )
    .await;
    let status = json!({"status": {"phase": "Up"}});
    inner(&world.service, within)
        .patch_status("kept", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    a_while().await;
    assert!(
        outer(&project, "default")
            .get_opt("deleted")
            .await
            .unwrap()
            .is_some(),
        "it is held"
    );
    world.start_agent();
    gone(&outer(&project, "default"), "deleted").await;
    assert!(
        inner(&world.service, within)
            .get_opt("deleted")
            .await
            .unwrap()
            .is_none()
    );
    copied(&world.service, within, "new").await;
    eventually("what was missed is made up for", || async {
        inner(&world.service, within).get("changed").await.unwrap().data["spec"]["size"] == 2
            && outer(&project, "default").get("kept").await.unwrap().data["status"]["phase"] == "Up"
    })
    .await;
    assert_eq!(
        inner(&world.service, within)
            .get("kept")
            .await
            .unwrap()
            .metadata
            .uid,
        uid
    );
    // Again and again, in the middle of the work.
    for round in 0..4 {
        for number in 0..5 {
            let name = format!("r{round}-{number}");
            machine(&project, "default", json!({"metadata": {"name": name}})).await;
            if number < 2 {
                outer(&project, "default").delete(&name, &params).await.unwrap();
            }
        }
        world.stop_agent().await;
        world.start_agent();
    }
    eventually("in the end everything is in step", || async {
        let names = async |api: Api<DynamicObject>| {
            let list = api.list(&ListParams::default()).await.unwrap();
            list.items
                .into_iter()
                .map(|it| it.metadata.name.unwrap())
                .collect::<Vec<_>>()
        };
        let (mut outside, mut inside) = (
            names(outer(&project, "default")).await,
            names(inner(&world.service, within)).await,
        );
        outside.sort();
        inside.sort();
        outside == inside && outside.len() == 3 + 4 * 3
    })
    .await;
    world.stop().await;
}

/// A kind may be of the cluster on one side and in namespaces on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_may_differ() {
    let world = World::start().await;
    let mut realms = definition();
    realms["metadata"]["name"] = json!("realms.inner.io");
    realms["spec"]["scope"] = json!("Cluster");
    realms["spec"]["names"] =
        json!({"plural": "realms", "singular": "realm", "kind": "Realm", "listKind": "RealmList"});
    create(&definitions(&world.service), realms).await;
    // Of the cluster outside, in namespaces inside; by the default rules for names.
    let machines = json!({"naming": null, "enableWorkspacePaths": false, "projection": {
        "group": "cloud.io", "kind": "VirtualMachine", "scope": "Cluster"}});
    world.publish(publication("machines", machines)).await;
    // And the other way round.
    let mut realms = publication(
        "realms",
        json!({
        "projection": {"group": "cloud.io", "scope": "Namespaced"}, "enableWorkspacePaths": false,
        "naming": {"name": "{{ .ClusterName }}-{{ .Object.metadata.namespace }}-{{ .Object.metadata.name }}"}}),
    );
    realms["spec"]["resource"] = json!({"apiGroup": "inner.io", "kind": "Realm"});
    world.publish(realms).await;
    told(&world.service, "machines", "Exported", "").await;
    told(&world.service, "realms", "Exported", "").await;
    let project = world.project("acme", "frontend").await;
    let id = bindings(&project)
        .get("cloud")
        .await
        .unwrap()
        .metadata
        .annotations
        .unwrap()["kcp.io/cluster"]
        .clone();
    machine(
        &project,
        "",
        json!({"metadata": {"name": "web"}, "spec": {"size": 1}}),
    )
    .await;
    let copies = inner(&world.service, &id);
    eventually("there is a copy", || async {
        copies.list(&ListParams::default()).await.unwrap().items.len() == 1
    })
    .await;
    let copy = copies.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert_eq!(
        copy.metadata.annotations.unwrap()["syncagent.kcp.io/remote-object-name"],
        "web"
    );
    let outside = project.api("cloud.io/v1", "Realm", "realms", "default");
    let object =
        json!({"apiVersion": "cloud.io/v1", "kind": "Realm", "metadata": {"name": "r"}, "spec": {"size": 2}});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    eventually("the second kind is served, too", || async {
        outside.list(&ListParams::default()).await.is_ok()
    })
    .await;
    outside.create(&PostParams::default(), &object).await.unwrap();
    let inside = world.service.api("inner.io/v1", "Realm", "realms", "");
    let name = format!("{id}-default-r");
    there(&inside, &name).await;
    let status = json!({"status": {"phase": "Up"}});
    let params = PatchParams::default();
    inside
        .patch_status(&name, &params, &Patch::Merge(status))
        .await
        .unwrap();
    eventually("the status comes up", || async {
        outside.get("r").await.unwrap().data["status"]["phase"] == "Up"
    })
    .await;
    let params = DeleteParams::default();
    outer(&project, "").delete("web", &params).await.unwrap();
    outside.delete("r", &params).await.unwrap();
    gone(&outer(&project, ""), "web").await;
    gone(&outside, "r").await;
    assert_eq!(inside.list(&ListParams::default()).await.unwrap().items.len(), 0);
    world.stop().await;
}

/// A service workspace may have its kind from somebody else's export: it has no definition there, and is published all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_kind_is_published() {
    let world = World::start().await;
    let maker = crate::tenancy::make(&world.cluster, "maker", Some("universal")).await;
    let maker = world.cluster.at(&maker);
    let kind = "APIResourceSchema";
    let schema = json!({"metadata": {"name": "v1.boats.sea.io"}, "spec": {
        "group": "sea.io", "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}],
    }});
    create(
        &maker.api("apis.kcp.io/v1alpha1", kind, "apiresourceschemas", ""),
        schema,
    )
    .await;
    let export = json!({"metadata": {"name": "boats"}, "spec": {"resources": [
        {"group": "sea.io", "name": "boats", "schema": "v1.boats.sea.io", "storage": {"crd": {}}}]}});
    create(&exports(&maker), export).await;
    let binding = json!({"metadata": {"name": "boats"}, "spec": {
        "reference": {"export": {"path": "root:maker", "name": "boats"}}}});
    create(&bindings(&world.service), binding).await;
    let inside = |namespace: &str| world.service.api("sea.io/v1", "Boat", "boats", namespace);
    eventually("the service has the kind", || async {
        inside("default").list(&ListParams::default()).await.is_ok()
    })
    .await;
    let rbac = "rbac.authorization.k8s.io/v1";
    let roles = world.service.api(rbac, "ClusterRole", "clusterroles", "");
    let mut rules = roles.get("agent").await.unwrap().data["rules"].clone();
    rules[0]["apiGroups"] = json!(["inner.io", "sea.io"]);
    patch(&roles, "agent", json!({"rules": rules})).await;
    let mut boats = publication("boats", json!({"projection": {"group": "cloud.io"}}));
    boats["spec"]["resource"] = json!({"apiGroup": "sea.io", "kind": "Boat"});
    world.publish(boats).await;
    told(&world.service, "boats", "Exported", "").await;
    world.publish(publication("machines", json!({}))).await;
    told(&world.service, "machines", "Exported", "").await;
    let project = world.project("acme", "frontend").await;
    let outside = project.api("cloud.io/v1", "Boat", "boats", "default");
    let boat = |size: u8| {
        let object = json!({"apiVersion": "cloud.io/v1", "kind": "Boat", "metadata": {"name": "ark"}, "spec": {"size": size}});
        serde_json::from_value::<DynamicObject>(object).unwrap()
    };
    let refused = outside.create(&PostParams::default(), &boat(10)).await;
    assert!(refused.is_err(), "the schema is complete");
    outside.create(&PostParams::default(), &boat(3)).await.unwrap();
    let copies = inside("ws-acme-frontend-default");
    there(&copies, "ark").await;
    let status = json!({"status": {"phase": "Afloat"}});
    let params = PatchParams::default();
    copies
        .patch_status("ark", &params, &Patch::Merge(status))
        .await
        .unwrap();
    eventually("the status comes up", || async {
        outside.get("ark").await.unwrap().data["status"]["phase"] == "Afloat"
    })
    .await;
    world.stop().await;
}
