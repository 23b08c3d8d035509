//! What is published is whole, whatever happens meanwhile.

use std::process::{Command, Stdio};

use super::*;

fn image(name: &str, digest: String, size: u64) -> Image {
    Image {
        name: name.to_owned(),
        digest,
        format: Format::Raw,
        virtual_size: size,
        size,
        source: "test".to_owned(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        labels: BTreeMap::new(),
        direct_boot: None,
        path: PathBuf::new(),
    }
}

fn publish(cache: &Cache, name: &str, content: &[u8]) -> Image {
    let stage = cache.stage().unwrap();
    stage.file().write_all(content).unwrap();
    let digest = cache.put(&stage).unwrap();
    cache.publish(image(name, digest, content.len() as u64)).unwrap()
}

#[test]
fn images_have_names_and_content() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    assert!(cache.images().unwrap().is_empty());
    let one = publish(&cache, "one", b"content");
    assert_eq!(
        one.digest,
        "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    );
    let other = publish(&cache, "other", b"content");
    assert_eq!(one.path, other.path, "the same content lies there once");
    assert_eq!(cache.get("one").unwrap(), one);
    assert_eq!(fs::read(&one.path).unwrap(), b"content");
    assert_eq!(fs::metadata(&one.path).unwrap().mode() & 0o777, 0o444);
    assert_eq!(cache.images().unwrap().len(), 2);
    cache.remove("one").unwrap();
    assert!(cache.find("one").unwrap().is_none());
    assert!(other.path.exists());
    assert!(matches!(cache.remove("one"), Err(ImageError::NotFound(_))));
    assert_eq!(fs::read_dir(directory.path().join("stage")).unwrap().count(), 0);
}

#[test]
fn a_blob_goes_when_nothing_needs_it() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let one = publish(&cache, "one", b"content");
    let link = directory.path().join("machine.base");
    fs::hard_link(&one.path, &link).unwrap();
    assert_eq!(cache.uses(&one), 1);
    // As if it had been there for an hour.
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    File::open(&one.path).unwrap().set_modified(hour_ago).unwrap();
    cache.remove("one").unwrap();
    assert!(!one.path.exists());
    assert_eq!(
        fs::read(&link).unwrap(),
        b"content",
        "machines keep what they have"
    );
}

#[test]
fn names_stay_in_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    for name in ["", "../x", "a/b", ".hidden", "A", &"x".repeat(300), "a b"] {
        assert!(matches!(cache.find(name), Err(ImageError::Name(_))), "{name}");
    }
    assert!(cache.find("debian-12.1").unwrap().is_none());
}

#[test]
fn an_image_without_its_content_is_not_published() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    assert!(cache.publish(image("x", "0".repeat(64), 1)).is_err());
    assert!(cache.images().unwrap().is_empty());
}

#[test]
fn what_is_being_made_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let stage = cache.stage().unwrap();
    stage.file().write_all(b"half").unwrap();
    Cache::open(directory.path()).unwrap();
    assert!(stage.path().exists(), "its maker is alive");
    let path = stage.path().to_owned();
    drop(stage);
    assert!(!path.exists());
}

/// The process of [`killed_at_any_moment`] that is killed: it publishes image after image.
#[test]
#[ignore = "run by another test"]
fn publisher() {
    let directory = std::env::var_os("FAIRWAY_TEST_CACHE").unwrap();
    let cache = Cache::open(Path::new(&directory)).unwrap();
    for round in 0_u64.. {
        // Long enough to be in the middle of it most of the time.
        let content = vec![(round % 251) as u8 + 1; 3 << 20];
        let request = crate::import::Request::new("image", "test");
        crate::import::stream(&cache, content.as_slice(), &request, |_| {}).unwrap();
    }
}

#[test]
fn killed_at_any_moment() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cache::tests::publisher", "--ignored", "--quiet"])
            .env("FAIRWAY_TEST_CACHE", directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(60 + round * 37));
        child.kill().unwrap();
        child.wait().unwrap();
        let cache = Cache::open(directory.path()).unwrap();
        for image in cache.images().unwrap() {
            let content = fs::read(&image.path).unwrap();
            assert_eq!(content.len(), 3 << 20, "half an image");
            assert!(content.iter().all(|byte| *byte == content[0] && *byte != 0));
            let found = digest(&File::open(&image.path).unwrap()).unwrap();
            assert_eq!(found, image.digest);
            seen += 1;
        }
        let left = fs::read_dir(directory.path().join("stage")).unwrap().count();
        assert_eq!(left, 0, "what the killed process left is removed");
    }
    assert!(
        seen > 0,
        "no process came far enough for the test to mean anything"
    );
}

#[test]
fn what_was_fetched_is_found_by_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    assert_eq!(cache.kept("k1").unwrap(), None);
    let stage = cache.stage().unwrap();
    stage.file().write_all(b"content").unwrap();
    let digest = cache.put(&stage).unwrap();
    drop(stage);
    let kept = cache.keep("k1", image("", digest, 7)).unwrap();
    assert_eq!(cache.kept("k1").unwrap(), Some(kept.clone()));
    assert!(cache.images().unwrap().is_empty(), "it has no name");
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    File::open(&kept.path).unwrap().set_modified(hour_ago).unwrap();
    // It stays for as long as it is kept, and while somebody uses it.
    let cache = Cache::open(directory.path()).unwrap();
    assert!(kept.path.exists());
    let link = directory.path().join("machine.base");
    fs::hard_link(&kept.path, &link).unwrap();
    assert_eq!(cache.forget_unused().unwrap(), 0);
    fs::remove_file(&link).unwrap();
    assert_eq!(cache.forget_unused().unwrap(), 7);
    assert!(!kept.path.exists());
    assert_eq!(cache.kept("k1").unwrap(), None);
    // Damaged records are no images, and keys stay in their directory.
    fs::write(directory.path().join("kept/k2.json"), b"{").unwrap();
    assert_eq!(cache.kept("k2").unwrap(), None);
    assert!(cache.kept("../images/x").is_err());
    let week_ago = std::time::SystemTime::now() - Duration::from_secs(8 * 24 * 3600);
    let stage = cache.stage().unwrap();
    stage.file().write_all(b"old").unwrap();
    let digest = cache.put(&stage).unwrap();
    drop(stage);
    let old = cache.keep("k3", image("", digest, 3)).unwrap();
    for path in [&old.path, &directory.path().join("kept/k3.json")] {
        File::open(path).unwrap().set_modified(week_ago).unwrap();
    }
    Cache::open(directory.path()).unwrap();
    assert!(!old.path.exists(), "nobody asked for it");
    // What is forgotten goes at once, unless it has a name as well.
    let named = publish(&cache, "named", b"content");
    cache.keep("k4", image("", named.digest.clone(), 7)).unwrap();
    cache.forget("k4").unwrap();
    assert!(named.path.exists() && cache.kept("k4").unwrap().is_none());
    cache.forget("k4").unwrap();
}
