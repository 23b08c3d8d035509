//! DataVolumes: filled from everywhere, or told why not.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::harness::{At, World, claim_path, condition, data_volume_path, eventually, everywhere, qemu_io};
use crate::server::{Answer, Asked, Server};

/// A raw disk of 4 MiB that does not pack well.
fn disk() -> Vec<u8> {
    let mut state = 1_u32;
    let noise = (0..4 << 20).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    noise.collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn checksum(content: &[u8]) -> String {
    let hex: String = digest(&SHA256, content)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

fn http(url: &str) -> Value {
    json!({"http": {"url": url}})
}

fn annotated(checksum: &str) -> Value {
    json!({"metadata": {"annotations": {"cdi.kubevirt.io/storage.import.checksum": checksum}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_on_the_web_becomes_a_disk() {
    everywhere(|world: World| async move {
        let (raw, packed) = (disk(), gzip(&disk()));
        let server = {
            let (raw, packed) = (raw.clone(), packed.clone());
            Server::start(move |asked| match asked.path.as_str() {
                "/disk.raw" => Answer::file(asked, &raw, "a"),
                "/disk.gz" => Answer::file(asked, &packed, "b"),
                _ => Answer::status(404),
            })
            .await
        };
        for (name, path, sum) in [("one", "/disk.raw", &raw), ("two", "/disk.gz", &packed)] {
            let more = annotated(&checksum(sum));
            world
                .data_volume(name, http(&server.url(path)), "16Mi", more)
                .await;
            let volume = world.phase(name, "Succeeded").await;
            assert_eq!(volume["status"]["progress"], "100.0%");
            assert_eq!(volume["status"]["claimName"], name);
            assert_eq!(condition(&volume, "Ready").0, "True");
            assert_eq!(condition(&volume, "Bound").2, format!("PVC {name} Bound"));
            let running = condition(&volume, "Running");
            assert_eq!(
                (running.0.as_str(), running.2.as_str()),
                ("False", "Import Complete")
            );
            let claim = world.bound(name).await;
            assert_eq!(claim["metadata"]["ownerReferences"][0]["kind"], "DataVolume");
            let directory = world.directory_of(name).await;
            qemu_io(&directory, "read -P 0 8M 1M");
            // The same content lies there once, whoever brought it.
            let base = std::fs::metadata(directory.join("disk.base")).unwrap();
            assert_eq!(base.len(), 4 << 20);
        }
        let said = world.events("DataVolume", "one").await;
        assert!(
            said.iter()
                .any(|it| it == "ImportSucceeded Successfully imported into PVC one"),
            "{said:?}"
        );
        let links =
            |directory: std::path::PathBuf| std::fs::metadata(directory.join("disk.base")).unwrap().nlink();
        assert_eq!(
            links(world.directory_of("one").await),
            3,
            "the cache and two volumes"
        );
        // A third of the same address costs no copy: the server is asked whether it is still the same.
        let before = server.asked().len();
        world
            .data_volume("three", http(&server.url("/disk.raw")), "16Mi", json!({}))
            .await;
        world.phase("three", "Succeeded").await;
        assert_eq!(server.asked().len(), before + 1);
        assert_eq!(links(world.directory_of("three").await), 4);
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_off_goes_on() {
    everywhere(|world: World| async move {
        let content = disk();
        let count = Arc::new(AtomicUsize::new(0));
        let (served, counted) = (content.clone(), Arc::clone(&count));
        let server = Server::start(move |asked| {
            let answer = Answer::file(asked, &served, "a");
            match counted.fetch_add(1, Ordering::SeqCst) {
                0 => Answer {
                    cut: Some(1 << 20),
                    ..answer
                },
                1 => Answer::status(503),
                _ => answer,
            }
        })
        .await;
        let more = annotated(&checksum(&content));
        world
            .data_volume("disk", http(&server.url("/d")), "8Mi", more)
            .await;
        let failing = world
            .until(&data_volume_path("disk"), "failing", |it| {
                condition(it, "Running").1 == "Error"
            })
            .await;
        assert_eq!(failing["status"]["phase"], "ImportInProgress");
        assert_eq!(world.get_claim("disk").await["status"]["phase"], "Pending");
        let volume = world.phase("disk", "Succeeded").await;
        assert_eq!(volume["status"]["restartCount"], 2);
        let ranges: Vec<Option<String>> = server
            .asked()
            .iter()
            .map(|asked| asked.header("range").map(str::to_owned))
            .collect();
        let rest = Some("bytes=1048576-".to_owned());
        assert_eq!(ranges, [None, rest.clone(), rest]);
        let said = world.events("DataVolume", "disk").await;
        assert!(said.iter().any(|it| it.starts_with("Error ")), "{said:?}");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_told_and_a_kill_in_the_middle_does_no_harm() {
    everywhere(|mut world: World| async move {
        let content = disk();
        let is_slow = Arc::new(AtomicBool::new(true));
        let (served, slow) = (content.clone(), Arc::clone(&is_slow));
        let server = Server::start(move |asked| Answer {
            pause: match slow.load(Ordering::SeqCst) {
                true => Duration::from_millis(100),
                false => Duration::ZERO,
            },
            ..Answer::file(asked, &served, "a")
        })
        .await;
        world
            .data_volume("disk", http(&server.url("/d")), "8Mi", json!({}))
            .await;
        let running = world
            .until(&data_volume_path("disk"), "under way", |it| {
                it["status"]["progress"]
                    .as_str()
                    .is_some_and(|it| it.ends_with('%'))
            })
            .await;
        assert_eq!(running["status"]["phase"], "ImportInProgress");
        assert_eq!(condition(&running, "Ready").1, "TransferRunning");
        assert_eq!(condition(&running, "Running").0, "True");
        let progress = running["status"]["progress"]
            .as_str()
            .unwrap()
            .trim_end_matches('%')
            .to_owned();
        assert!(progress.parse::<f64>().unwrap() < 100.0);
        world.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        is_slow.store(false, Ordering::SeqCst);
        world.begin();
        world.phase("disk", "Succeeded").await;
        let directory = world.directory_of("disk").await;
        let base = std::fs::read(directory.join("disk.base")).unwrap();
        assert!(base == content, "what is there is whole");
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_disk_is_never_used() {
    everywhere(|world: World| async move {
        let directory = world.folder().join("made");
        std::fs::create_dir(&directory).unwrap();
        let qcow2 = |arguments: &[&str]| {
            let output = std::process::Command::new("qemu-img")
                .current_dir(&directory)
                .args(["create", "-q", "-f", "qcow2"])
                .args(arguments)
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        std::fs::write(directory.join("host.raw"), vec![1; 1 << 20]).unwrap();
        qcow2(&["-F", "raw", "-b", "host.raw", "backed.qcow2"]);
        qcow2(&["-o", "data_file=elsewhere.raw", "data.qcow2", "1M"]);
        qcow2(&["large.qcow2", "64M"]);
        qcow2(&["good.qcow2", "4M"]);
        let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
        let whole = disk();
        let files: Vec<(&str, Vec<u8>, &str)> = vec![
            ("backed", read("backed.qcow2"), "needs another file"),
            ("data", read("data.qcow2"), "data lies in another file"),
            ("large", read("large.qcow2"), "more than the limit"),
            ("bomb", gzip(&vec![0; 30 << 20]), "larger than the limit"),
            ("page", b"<html>login</html>".to_vec(), "web page"),
            ("truncated", read("good.qcow2")[..66_000].to_vec(), "too early"),
            ("packed", gzip(&whole)[..1 << 20].to_vec(), "cannot be unpacked"),
            ("empty", Vec::new(), "empty"),
        ];
        let served: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|(name, content, _)| (format!("/{name}"), content.clone()))
            .collect();
        let server = Server::start(move |asked| {
            let found = served.iter().find(|(path, _)| *path == asked.path);
            found.map_or_else(|| Answer::status(404), |(_, content)| Answer::ok(content.clone()))
        })
        .await;
        for (name, _, words) in &files {
            world
                .data_volume(name, http(&server.url(&format!("/{name}"))), "8Mi", json!({}))
                .await;
            let volume = world.phase(name, "Failed").await;
            let running = condition(&volume, "Running");
            assert!(
                running.1 == "Error" && running.2.contains(words),
                "{name}: {running:?}"
            );
            eventually(&format!("{name} tells of it"), || async {
                let said = world.events("DataVolume", name).await;
                said.iter()
                    .any(|it| it.starts_with("Error ") && it.contains(words))
            })
            .await;
            assert_eq!(
                world.get_claim(name).await["status"]["phase"],
                "Pending",
                "{name}"
            );
        }
        // What was promised and is something else, and an address that may not be asked.
        let server = Server::start(move |_| Answer::ok(whole.clone())).await;
        world
            .data_volume(
                "sum",
                http(&server.url("/d")),
                "8Mi",
                annotated(&checksum(b"other")),
            )
            .await;
        let volume = world.phase("sum", "Failed").await;
        assert!(condition(&volume, "Running").2.contains("checksum"), "{volume}");
        world
            .data_volume(
                "metadata",
                http("http://169.254.169.254/latest"),
                "8Mi",
                json!({}),
            )
            .await;
        let volume = world.phase("metadata", "Failed").await;
        assert!(
            condition(&volume, "Running").2.contains("not among the hosts"),
            "{volume}"
        );
        // Nothing of all that is left over.
        let left = |part: &str| std::fs::read_dir(world.images().join(part)).unwrap().count();
        assert_eq!((left("stage"), left("kept"), left("blobs")), (0, 0, 0));
        // One that failed goes when it is deleted.
        world.api.delete(&data_volume_path("sum")).await.unwrap();
        eventually("it goes", || async { world.get_claim("sum").await.is_null() }).await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_have_a_file_is_for_its_server_to_say() {
    everywhere(|world: World| async move {
        let content = disk();
        let server = Server::start(move |asked: &Asked| {
            // me:secret
            let is_known = asked.header("authorization") == Some("Basic bWU6c2VjcmV0");
            match is_known && asked.header("x-tenant") == Some("shop") && asked.header("x-key") == Some("k1")
            {
                true => Answer::file(asked, &content, "a"),
                false => Answer::status(403),
            }
        })
        .await;
        let secrets = "/api/v1/namespaces/shop/secrets";
        let secret = |name: &str, data: Value| json!({"metadata": {"name": name}, "stringData": data});
        let mut source = http(&server.url("/private"));
        source["http"]["secretRef"] = json!("login");
        source["http"]["extraHeaders"] = json!(["X-Tenant: shop"]);
        source["http"]["secretExtraHeaders"] = json!(["key"]);
        world.data_volume("mine", source, "8Mi", json!({})).await;
        let waiting = world
            .until(&data_volume_path("mine"), "waiting", |it| {
                condition(it, "Running").2.contains("login")
            })
            .await;
        assert_eq!(waiting["status"]["phase"], "ImportScheduled");
        world
            .create(
                secrets,
                secret("login", json!({"accessKeyId": "me", "secretKey": "secret"})),
            )
            .await;
        world
            .create(secrets, secret("key", json!({"header": "X-Key: k1"})))
            .await;
        world.phase("mine", "Succeeded").await;
        // It is here now, but that gives it to nobody whom its server would not give it to.
        world
            .data_volume("theirs", http(&server.url("/private")), "8Mi", json!({}))
            .await;
        let refused = world
            .until(&data_volume_path("theirs"), "refused", |it| {
                condition(it, "Running").2.contains("403")
            })
            .await;
        assert_eq!(refused["status"]["phase"], "ImportInProgress");
        assert_eq!(world.get_claim("theirs").await["status"]["phase"], "Pending");
        // Credentials are nowhere to be read.
        let all = world.get(&data_volume_path("mine")).await.to_string()
            + &world.get_claim("mine").await.to_string();
        assert!(!all.contains("bWU6c2VjcmV0") && !all.contains("k1\""));
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_says_what_is_wrong_with_it() {
    everywhere(|world: World| async move {
        let quota = json!({"metadata": {"name": "few"}, "spec": {"hard": {"requests.storage": "10Mi"}}});
        world
            .create("/api/v1/namespaces/shop/resourcequotas", quota)
            .await;
        world
            .data_volume("small", json!({"blank": {}}), "8Mi", json!({}))
            .await;
        world.phase("small", "Succeeded").await;
        world
            .data_volume("large", json!({"blank": {}}), "8Mi", json!({}))
            .await;
        let volume = world
            .until(&data_volume_path("large"), "refused", |it| {
                condition(it, "Bound").1 == "ErrExceededQuota"
            })
            .await;
        assert_eq!(volume["status"]["phase"], "Pending");
        world.api.delete(&data_volume_path("small")).await.unwrap();
        world.phase("large", "Succeeded").await;
        let class = json!({"spec": {"storage": {"storageClassName": "fast"}}});
        world
            .data_volume("classy", json!({"blank": {}}), "1Mi", class)
            .await;
        world
            .until(&data_volume_path("classy"), "refused", |it| {
                condition(it, "Bound").2.contains("\"fast\" not found")
            })
            .await;
        world.end().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_volume_may_go_when_it_is_finished() {
    let world = World::start(At::Workspace).await;
    let more =
        json!({"metadata": {"annotations": {"cdi.kubevirt.io/storage.deleteAfterCompletion": "true"}}});
    world.data_volume("disk", json!({"blank": {}}), "1Mi", more).await;
    eventually("it goes", || async {
        world.get_data_volume("disk").await.is_null() && !world.get_claim("disk").await.is_null()
    })
    .await;
    let claim = world.get(&claim_path("disk")).await;
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(claim["metadata"].get("ownerReferences"), None);
    // Preallocation takes its room at once.
    let more = json!({"spec": {"preallocation": true}});
    world.data_volume("full", json!({"blank": {}}), "4Mi", more).await;
    world.phase("full", "Succeeded").await;
    let directory = world.directory_of("full").await;
    let used = std::fs::metadata(directory.join("disk.qcow2")).unwrap().blocks() * 512;
    assert!(used >= 4 << 20, "{used}");
    world.end().await;
}
