//! Disks in container images: from a registry that a scenario made up, and from a real one.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fairway_machines_volumes::{ContainerDisk, ContainerDiskError, ContainerDisks, PullPolicy};
use fairway_outbound::AllowedHosts;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::harness::{At, World, condition, data_volume_path, eventually, everywhere, qemu_io};
use crate::server::{Answer, Asked, Server};

pub(crate) fn digest_of(content: &[u8]) -> String {
    let hex: String = digest(&SHA256, content)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// A layer with files, packed.
fn layer(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o444);
        header.set_cksum();
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

/// An image: manifest and blobs by digest.
#[derive(Clone, Default)]
pub(crate) struct Image {
    pub(crate) manifest: Vec<u8>,
    blobs: BTreeMap<String, Vec<u8>>,
}

impl Image {
    fn of(layers: &[Vec<u8>]) -> Self {
        let configuration = br#"{"architecture": "amd64", "os": "linux"}"#.to_vec();
        let mut blobs: BTreeMap<String, Vec<u8>> = layers
            .iter()
            .map(|layer| (digest_of(layer), layer.clone()))
            .collect();
        let described: Vec<Value> = layers
            .iter()
            .map(|layer| {
                json!({
                    "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest_of(layer), "size": layer.len(),
                })
            })
            .collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(&configuration),
                "size": configuration.len(),
            },
            "layers": described,
        });
        blobs.insert(digest_of(&configuration), configuration);
        Self {
            manifest: manifest.to_string().into_bytes(),
            blobs,
        }
    }
}

/// A disk of 1 MiB full of a number, as the only file of an image.
pub(crate) fn disk_image(byte: u8) -> Image {
    Image::of(&[
        layer(&[("etc/motd", b"hello")]),
        layer(&[("disk/disk.img", &vec![byte; 1 << 20])]),
    ])
}

/// A registry with one repository, `team/disk`; what its tags stand for may change.
pub(crate) struct Registry {
    server: Server,
    tags: Arc<Mutex<BTreeMap<String, Image>>>,
}

impl Registry {
    pub(crate) async fn start(wants_token: bool) -> Self {
        let tags: Arc<Mutex<BTreeMap<String, Image>>> = Arc::default();
        let served = Arc::clone(&tags);
        let server = Server::start(move |asked| answer(asked, &served.lock().unwrap(), wants_token)).await;
        Self { server, tags }
    }

    pub(crate) fn tag(&self, tag: &str, image: Image) {
        self.tags.lock().unwrap().insert(tag.to_owned(), image);
    }

    pub(crate) fn name(&self, tag: &str) -> String {
        format!("127.0.0.1:{}/team/disk:{tag}", self.server.port)
    }

    pub(crate) fn asked(&self, part: &str) -> usize {
        self.server
            .asked()
            .iter()
            .filter(|asked| asked.path.contains(part))
            .count()
    }
}

fn answer(asked: &Asked, tags: &BTreeMap<String, Image>, wants_token: bool) -> Answer {
    if asked.path.starts_with("/token") {
        // me:secret
        let is_known = asked.header("authorization") == Some("Basic bWU6c2VjcmV0");
        assert!(
            asked.path.contains("scope=repository%3Ateam%2Fdisk%3Apull"),
            "{}",
            asked.path
        );
        return match is_known {
            true => Answer::ok(br#"{"token": "t1"}"#.to_vec()),
            false => Answer::status(401),
        };
    }
    if wants_token && asked.header("authorization") != Some("Bearer t1") {
        let host = asked.header("host").unwrap_or_default();
        return Answer::status(401).header(
            "www-authenticate",
            &format!("Bearer realm=\"http://{host}/token\",service=\"test\""),
        );
    }
    let Some(path) = asked.path.strip_prefix("/v2/team/disk/") else {
        return Answer::status(404);
    };
    let images = || tags.values();
    let found = match path.split_once('/') {
        Some(("manifests", tag)) => tags
            .get(tag)
            .or_else(|| images().find(|image| digest_of(&image.manifest) == tag))
            .map(|image| image.manifest.clone()),
        Some(("blobs", digest)) => images().find_map(|image| image.blobs.get(digest)).cloned(),
        _ => None,
    };
    found.map_or_else(|| Answer::status(404), Answer::ok)
}

fn docker_config(port: u16) -> Vec<u8> {
    let auth = STANDARD.encode("me:secret");
    json!({"auths": {format!("127.0.0.1:{port}"): {"auth": auth}}})
        .to_string()
        .into_bytes()
}

fn disks(directory: &Path) -> ContainerDisks {
    ContainerDisks::new(directory.join("images"), AllowedHosts::parse("loopback").unwrap())
}

fn wanted(image: &str) -> ContainerDisk<'_> {
    ContainerDisk {
        image,
        pull_policy: PullPolicy::of("", image),
        ..ContainerDisk::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_disk_is_fetched_once() {
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::start(false).await;
    registry.tag("v1", disk_image(7));
    registry.tag("latest", disk_image(7));
    let disks = disks(directory.path());
    let (fixed, moving) = (registry.name("v1"), registry.name("latest"));
    let image = disks.fetch(&wanted(&fixed)).await.unwrap();
    assert_eq!(image.virtual_size, 1 << 20);
    assert_eq!(std::fs::read(&image.path).unwrap(), vec![7; 1 << 20]);
    // A tag that does not move is not asked for again; one that may is, and finds what is here.
    disks.fetch(&wanted(&fixed)).await.unwrap();
    assert_eq!((registry.asked("manifests"), registry.asked("blobs")), (1, 1));
    let again = disks.fetch(&wanted(&moving)).await.unwrap();
    assert_eq!(again.digest, image.digest);
    assert_eq!((registry.asked("manifests"), registry.asked("blobs")), (2, 1));
    registry.tag("latest", disk_image(9));
    let other = disks.fetch(&wanted(&moving)).await.unwrap();
    assert_ne!(other.digest, image.digest);
    // Two at once fetch it once.
    registry.tag("v2", disk_image(3));
    let blobs = registry.asked("blobs");
    let both = registry.name("v2");
    let both = wanted(&both);
    let (one, two) = tokio::join!(disks.fetch(&both), disks.fetch(&both));
    assert_eq!(one.unwrap().digest, two.unwrap().digest);
    assert_eq!(registry.asked("blobs"), blobs + 1);
    let never = |image| ContainerDisk {
        pull_policy: PullPolicy::Never,
        ..wanted(image)
    };
    disks.fetch(&never(&fixed)).await.unwrap();
    let elsewhere = registry.name("v3");
    let missing = disks.fetch(&never(&elsewhere)).await.unwrap_err();
    assert!(matches!(missing, ContainerDiskError::NeverPull(_)));
    assert_eq!(
        missing.to_string(),
        format!("container image {elsewhere:?} is not present with pull policy of Never")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_fetched_with_a_password_needs_one() {
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::start(true).await;
    registry.tag("v1", disk_image(7));
    let disks = disks(directory.path());
    let name = registry.name("v1");
    let secret = docker_config(registry.server.port);
    let with = ContainerDisk {
        secret: Some(&secret),
        ..wanted(&name)
    };
    let refused = disks.fetch(&wanted(&name)).await.unwrap_err();
    assert!(
        refused.to_string().contains("401") && !refused.is_final(),
        "{refused}"
    );
    disks.fetch(&with).await.unwrap();
    // It is here now, but not for who asks without it.
    let refused = disks.fetch(&wanted(&name)).await.unwrap_err();
    assert!(refused.to_string().contains("credentials"), "{refused}");
    let other = docker_config(1);
    let with_other = ContainerDisk {
        secret: Some(&other),
        ..wanted(&name)
    };
    assert!(disks.fetch(&with_other).await.is_err());
    assert!(disks.fetch(&with).await.is_ok());
    // A host that may not be asked.
    let forbidden = disks.fetch(&wanted("169.254.169.254/a")).await.unwrap_err();
    assert!(
        forbidden.is_final() && forbidden.to_string().contains("not among the hosts"),
        "{forbidden}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_container_disk_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::start(false).await;
    let disks = disks(directory.path());
    let big = vec![1; 1 << 20];
    registry.tag("none", Image::of(&[layer(&[("etc/motd", b"hello")])]));
    registry.tag(
        "two",
        Image::of(&[layer(&[("disk/a.img", &big), ("disk/b.img", &big)])]),
    );
    registry.tag("page", Image::of(&[layer(&[("disk/a.img", b"<html></html>")])]));
    let mut changed = disk_image(5);
    let disk = changed.blobs.values_mut().max_by_key(|blob| blob.len()).unwrap();
    disk[20] ^= 1;
    registry.tag("changed", changed);
    let mut huge = disk_image(6);
    huge.manifest = String::from_utf8(huge.manifest)
        .unwrap()
        .replace("\"size\":", "\"size\":9999999999999")
        .into_bytes();
    registry.tag("huge", huge);
    registry.tag(
        "strange",
        Image {
            manifest: b"{}".to_vec(),
            ..Image::default()
        },
    );
    for (tag, words) in [
        ("none", "no file under /disk"),
        ("two", "more than one file"),
        ("page", "web page"),
        ("changed", "checksum"),
        ("huge", "larger than the limit"),
        ("strange", "neither of an image"),
        ("missing", "404"),
    ] {
        let name = registry.name(tag);
        let error = disks.fetch(&wanted(&name)).await.unwrap_err();
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            text = format!("{text}: {source}");
        }
        assert!(text.contains(words), "{tag}: {text}");
    }
    // One of two can be named.
    let name = registry.name("two");
    let named = ContainerDisk {
        path: Some("/disk/b.img"),
        ..wanted(&name)
    };
    assert_eq!(disks.fetch(&named).await.unwrap().virtual_size, 1 << 20);
    for image in ["", "quay.io/A", "quay.io/../etc", "fairway-images/none"] {
        assert!(
            disks.fetch(&wanted(image)).await.unwrap_err().is_final() || image.starts_with("fairway"),
            "{image}"
        );
    }
    let left = std::fs::read_dir(directory.path().join("images/stage"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_volume_is_filled_from_a_registry() {
    everywhere(|world: World| async move {
        let registry = Registry::start(true).await;
        registry.tag("v1", disk_image(7));
        let source = json!({"registry": {"url": format!("docker://{}", registry.name("v1")), "secretRef": "login"}});
        world.data_volume("disk", source, "2Mi", json!({})).await;
        world
            .until(&data_volume_path("disk"), "waiting", |it| condition(it, "Running").2.contains("login"))
            .await;
        let secret = json!({"metadata": {"name": "login"}, "stringData": {"accessKeyId": "me", "secretKey": "secret"}});
        world.create("/api/v1/namespaces/shop/secrets", secret).await;
        world.phase("disk", "Succeeded").await;
        qemu_io(&world.directory_of("disk").await, "read -P 7 0 1M");
        // In the form that Kubernetes has for it.
        let data = STANDARD.encode(docker_config(registry.server.port));
        let secret = json!({
            "metadata": {"name": "docker"}, "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": data},
        });
        world.create("/api/v1/namespaces/shop/secrets", secret).await;
        let source = json!({"registry": {"url": format!("docker://{}", registry.name("v1")), "secretRef": "docker"}});
        world.data_volume("again", source, "2Mi", json!({})).await;
        world.phase("again", "Succeeded").await;
        assert_eq!(registry.asked("blobs"), 1, "the second costs no copy");
        world.end().await;
    })
    .await;
}

/// A real registry, which ends with this value.
struct Real(Child, u16);

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn real_registry(directory: &Path) -> Option<Real> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let configuration = directory.join("registry.yml");
    let mut file = std::fs::File::create(&configuration).unwrap();
    write!(
        file,
        "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n",
        directory.join("registry").display()
    )
    .unwrap();
    let child = Command::new("docker-registry")
        .arg("serve")
        .arg(&configuration)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => Some(Real(child, port)),
        Err(_) => {
            println!("SKIPPED: docker-registry is not installed");
            None
        }
    }
}

/// Sends a request over a connection of its own; the status, and where the answer sends to.
fn send(port: u16, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(body).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let text = String::from_utf8_lossy(&reply).into_owned();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let location = text.lines().find_map(|line| line.strip_prefix("Location: "));
    (status, location.unwrap_or_default().trim().to_owned())
}

fn push(port: u16, image: &Image) {
    for (digest, blob) in &image.blobs {
        let (status, place) = send(port, "POST", "/v2/team/disk/blobs/uploads/", "text/plain", b"");
        assert_eq!(status, 202);
        let place = place
            .strip_prefix(&format!("http://127.0.0.1:{port}"))
            .unwrap_or(&place)
            .to_owned();
        let (status, _) = send(
            port,
            "PUT",
            &format!("{place}&digest={digest}"),
            "application/octet-stream",
            blob,
        );
        assert_eq!(status, 201);
    }
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let (status, _) = send(port, "PUT", "/v2/team/disk/manifests/v1", kind, &image.manifest);
    assert_eq!(status, 201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_registry_is_understood() {
    let world = World::start(At::Workspace).await;
    let Some(real) = real_registry(world.folder()) else {
        return;
    };
    let port = real.1;
    eventually("it listens", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    })
    .await;
    push(port, &disk_image(7));
    let source = json!({"registry": {"url": format!("docker://localhost:{port}/team/disk:v1")}});
    world.data_volume("disk", source, "2Mi", json!({})).await;
    world.phase("disk", "Succeeded").await;
    qemu_io(&world.directory_of("disk").await, "read -P 7 0 1M");
    world.end().await;
}
