//! Container images that are made here, in the three forms.

use super::*;
use crate::Format;

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, path, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

fn disk(letter: u8) -> Vec<u8> {
    vec![letter; 4096]
}

/// Files of an image in OCI's layout with these layers.
fn layout(layers: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut blob = |bytes: &[u8]| {
        let digest = sha256(bytes);
        files.push((format!("blobs/sha256/{digest}"), bytes.to_vec()));
        serde_json::json!({"digest": format!("sha256:{digest}"), "size": bytes.len()})
    };
    let layers: Vec<Value> = layers.iter().map(|layer| blob(layer)).collect();
    let manifest = serde_json::json!({"schemaVersion": 2, "layers": layers}).to_string();
    let mut entry = blob(manifest.as_bytes());
    entry["platform"] = serde_json::json!({"architecture": "amd64", "os": "linux"});
    let other = serde_json::json!({"digest": format!("sha256:{}", "0".repeat(64)), "platform": {"architecture": "arm64"}});
    let inner = serde_json::json!({"manifests": [other, entry]}).to_string();
    let index = serde_json::json!({"manifests": [blob(inner.as_bytes())]}).to_string();
    files.push(("index.json".to_owned(), index.into_bytes()));
    files.push((
        "oci-layout".to_owned(),
        b"{\"imageLayoutVersion\": \"1.0.0\"}".to_vec(),
    ));
    files
}

fn write(directory: &Path, files: &[(String, Vec<u8>)]) {
    for (path, content) in files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn imported(path: &Path, inner: Option<&str>) -> Result<Vec<u8>, ImageError> {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path()).unwrap();
    let request = import::Request::new("x", "test");
    let image = import(&cache, path, inner, &request, |_| {})?;
    assert_eq!(image.format, Format::Raw);
    Ok(std::fs::read(image.path).unwrap())
}

#[test]
fn every_form_gives_the_disk() {
    let place = tempfile::tempdir().unwrap();
    let layers = [
        gzip(&tar_of(&[("disk/old.img", &disk(b'o')), ("etc/x", b"x")])),
        gzip(&tar_of(&[("disk/disk.img", &disk(b'd'))])),
    ];
    let files = layout(&layers);
    let directory = place.path().join("layout");
    write(&directory, &files);
    // The last layer with a disk counts.
    assert_eq!(imported(&directory, None).unwrap(), disk(b'd'));
    assert_eq!(imported(&directory, Some("/disk/old.img")).unwrap(), disk(b'o'));
    let named: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
        .collect();
    let archive = place.path().join("oci.tar");
    std::fs::write(&archive, tar_of(&named)).unwrap();
    assert_eq!(imported(&archive, None).unwrap(), disk(b'd'));
    assert!(is_image(&archive) && is_image(&directory));

    let manifest = br#"[{"Config": "c.json", "Layers": ["a/layer.tar"]}]"#;
    let layer = tar_of(&[("./disk/d.img", &disk(b'e'))]);
    let docker = place.path().join("docker.tar");
    std::fs::write(
        &docker,
        tar_of(&[("a/layer.tar", &layer), ("manifest.json", manifest)]),
    )
    .unwrap();
    assert_eq!(imported(&docker, None).unwrap(), disk(b'e'));
}

#[test]
fn bad_images_say_what_is_wrong() {
    let place = tempfile::tempdir().unwrap();
    let check = |name: &str, files: &[(String, Vec<u8>)], inner: Option<&str>, words: &str| {
        let directory = place.path().join(name);
        write(&directory, files);
        let error = imported(&directory, inner).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    };
    let two = gzip(&tar_of(&[
        ("disk/a.img", &disk(b'a')),
        ("disk/b.img", &disk(b'b')),
    ]));
    check(
        "two",
        &layout(std::slice::from_ref(&two)),
        None,
        "more than one file under /disk (disk/a.img, disk/b.img)",
    );
    check(
        "other",
        &layout(&[two]),
        Some("/disk/c.img"),
        "there is no /disk/c.img",
    );
    check(
        "none",
        &layout(&[gzip(&tar_of(&[("etc/x", b"x")]))]),
        None,
        "no container disk",
    );
    let mut changed = layout(&[tar_of(&[("disk/a.img", &disk(b'a'))])]);
    changed[0].1[600] ^= 1;
    check("changed", &changed, None, "checksum");
    let escape = vec![(
        "index.json".to_owned(),
        br#"{"manifests": [{"digest": "sha256:../../../../etc/passwd"}]}"#.to_vec(),
    )];
    check("escape", &escape, None, "no digest");
    check(
        "empty",
        &[("index.json".to_owned(), b"{}".to_vec())],
        None,
        "names no image",
    );
    assert!(!is_image(place.path()));
}
