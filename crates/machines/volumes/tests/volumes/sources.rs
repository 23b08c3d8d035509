//! DataSources, images that are published, and images that are looked for by a schedule.

use fairway_machines_image::Cache;
use serde_json::{Value, json};

use crate::harness::{World, condition, eventually, everywhere, qemu_io};
use crate::registries::{Registry, digest_of, disk_image};

const SOURCES: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces/shop/datasources";
const CRONS: &str = "/apis/cdi.kubevirt.io/v1beta1/namespaces/shop/dataimportcrons";

fn source(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataSource", "metadata": {"name": name},
        "spec": {"source": {"pvc": {"name": claim, "namespace": "shop"}}},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_source_says_whether_it_can_be_used() {
    everywhere(|world: World| async move {
        let path = format!("{SOURCES}/os");
        world.create(SOURCES, source("os", "gold")).await;
        let says = async |reason: &str| {
            world
                .until(&path, reason, |it| condition(it, "Ready").1 == reason)
                .await
        };
        says("NotFound").await;
        let labels =
            json!({"metadata": {"labels": {"instancetype.kubevirt.io/default-instancetype": "u1.small"}}});
        world
            .data_volume("gold", json!({"blank": {}}), "1Mi", labels)
            .await;
        let ready = says("Ready").await;
        assert_eq!(condition(&ready, "Ready").2, "DataSource is ready to be consumed");
        let label = "instancetype.kubevirt.io/default-instancetype";
        assert_eq!(ready["metadata"]["labels"][label], "u1.small");
        let other = json!({"spec": {"source": {"pvc": {"name": "none"}}}});
        world.api.merge(&path, &other).await.unwrap();
        let missing = says("NotFound").await;
        assert_eq!(missing["status"]["source"]["pvc"]["name"], "none");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_published_while_the_server_runs() {
    let world = World::start(crate::harness::At::Workspace).await;
    let root = world.root();
    let all = "/apis/cdi.kubevirt.io/v1beta1/namespaces/fairway-images/datasources";
    let names = async || -> Vec<String> {
        let found = root.list(all).await.unwrap_or_default();
        let mut names: Vec<String> = found
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert!(names().await.is_empty());
    assert!(
        root.get("/api/v1/namespaces/fairway-images")
            .await
            .unwrap()
            .is_none()
    );
    let image = world.image("tiny", 4, 7);
    eventually("it is published", || async { names().await == ["tiny"] }).await;
    let tiny = root.get(&format!("{all}/tiny")).await.unwrap().unwrap();
    assert_eq!(condition(&tiny, "Ready").0, "True");
    let annotation = &tiny["metadata"]["annotations"]["fairway.dev/image-digest"];
    assert_eq!(*annotation, format!("sha256:{}", image.digest));
    world.image("big", 1, 1);
    eventually("so is the next", || async { names().await == ["big", "tiny"] }).await;
    // What somebody takes away comes back, and what is gone goes.
    root.delete(&format!("{all}/tiny")).await.unwrap();
    eventually("it is back", || async { names().await == ["big", "tiny"] }).await;
    Cache::open(&world.images()).unwrap().remove("big").unwrap();
    eventually("it goes", || async { names().await == ["tiny"] }).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_imported_when_it_changed() {
    everywhere(|world: World| async move {
        let registry = Registry::start(false).await;
        registry.tag("latest", disk_image(7));
        let cron = json!({
            "apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataImportCron", "metadata": {"name": "os"},
            "spec": {
                "schedule": "* * * * *", "managedDataSource": "os", "importsToKeep": 1, "retentionPolicy": "None",
                "template": {"spec": {
                    "source": {"registry": {"url": format!("docker://{}", registry.name("latest"))}},
                    "storage": {"resources": {"requests": {"storage": "2Mi"}}},
                }},
            },
        });
        world.create(CRONS, cron).await;
        let path = format!("{CRONS}/os");
        let first = digest_of(&disk_image(7).manifest);
        let done = world
            .until(&path, "up to date", |it| condition(it, "UpToDate").0 == "True")
            .await;
        assert_eq!(done["status"]["currentImports"][0]["Digest"], first);
        assert_eq!(done["status"]["sourceFormat"], "pvc");
        assert!(done["status"]["lastExecutionTimestamp"].is_string());
        let name = done["status"]["lastImportedPVC"]["name"].as_str().unwrap().to_owned();
        assert_eq!(name, format!("os-{}", &first[7..19]));
        qemu_io(&world.directory_of(&name).await, "read -P 7 0 1M");
        let source = world
            .until(&format!("{SOURCES}/os"), "ready", |it| condition(it, "Ready").0 == "True")
            .await;
        assert_eq!(source["spec"]["source"]["pvc"]["name"], name.as_str());
        // Another image at the next look, which somebody brings about before its time.
        registry.tag("latest", disk_image(9));
        let due = json!({"metadata": {"annotations": {"cdi.kubevirt.io/storage.import.nextCronTime": "2020-01-01T00:00:00Z"}}});
        world.api.merge(&path, &due).await.unwrap();
        let second = format!("os-{}", &digest_of(&disk_image(9).manifest)[7..19]);
        world
            .until(&format!("{SOURCES}/os"), "moved on", |it| {
                it["spec"]["source"]["pvc"]["name"] == second.as_str() && condition(it, "Ready").0 == "True"
            })
            .await;
        qemu_io(&world.directory_of(&second).await, "read -P 9 0 1M");
        eventually("the old one goes", || async { world.get_claim(&name).await.is_null() }).await;
        // It goes with everything that it made.
        world.api.delete(&path).await.unwrap();
        eventually("all of it goes", || async {
            world.get_claim(&second).await.is_null() && world.get(&format!("{SOURCES}/os")).await.is_null()
        })
        .await;
        world.end().await;
    })
    .await;
}
