//! Files of every kind, most of them bad.

use std::io::Write as _;
use std::process::Command;

use super::*;

fn has_qemu_img() -> bool {
    let found = Command::new("qemu-img").arg("--version").output().is_ok();
    if !found {
        fairway_machines_required::skipped("qemu-img is not installed (scripts/tools.sh qemu)");
    }
    found
}

struct Place {
    directory: tempfile::TempDir,
    cache: Cache,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(&directory.path().join("cache")).unwrap();
        Self { directory, cache }
    }

    fn import(&self, bytes: &[u8], change: impl FnOnce(&mut Request)) -> Result<Image, ImageError> {
        let mut request = Request::new("x", "test");
        change(&mut request);
        stream(&self.cache, bytes, &request, |_| {})
    }

    /// What is left after an import that failed: nothing.
    fn is_empty(&self) -> bool {
        let count = |name: &str| {
            let directory = self.cache.directory().join(name);
            std::fs::read_dir(directory).unwrap().count()
        };
        count("blobs") == 0 && count("images") == 0 && count("stage") == 0
    }

    fn qcow2(&self, arguments: &[&str]) -> Vec<u8> {
        let path = self.directory.path().join("made.qcow2");
        let made = Command::new("qemu-img")
            .args(["create", "-q", "-f", "qcow2"])
            .args(arguments)
            .arg(&path)
            .arg("16M")
            .current_dir(self.directory.path())
            .status()
            .unwrap();
        assert!(made.success());
        std::fs::read(path).unwrap()
    }
}

fn raw() -> Vec<u8> {
    let mut disk = vec![0; 1 << 20];
    disk[..4].copy_from_slice(b"boot");
    disk[700_000..700_004].copy_from_slice(b"data");
    disk
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn packed_or_not_the_disk_is_the_same() {
    let place = Place::new();
    let expected = place.import(&raw(), |_| {}).unwrap();
    assert_eq!((expected.format, expected.virtual_size), (Format::Raw, 1 << 20));
    assert_eq!(std::fs::read(&expected.path).unwrap(), raw());
    let packed = place.import(&gzip(&raw()), |_| {}).unwrap();
    assert_eq!(packed.digest, expected.digest);
    // The same disk packed by xz and zstd, by the programs themselves if they are there.
    for program in ["xz", "zstd"] {
        let file = place.directory.path().join("disk");
        std::fs::write(&file, raw()).unwrap();
        let Ok(output) = Command::new(program).args(["-c", "-q"]).arg(&file).output() else {
            eprintln!("SKIPPED: {program} is not installed");
            continue;
        };
        let image = place.import(&output.stdout, |_| {}).unwrap();
        assert_eq!(image.digest, expected.digest, "{program}");
        // Half of it is not a disk.
        let half = &output.stdout[..output.stdout.len() / 2];
        let error = place.import(half, |_| {}).unwrap_err();
        assert!(matches!(error, ImageError::Unusable { .. }), "{program}: {error}");
    }
}

#[test]
fn zeros_take_no_room() {
    use std::os::unix::fs::MetadataExt as _;
    let place = Place::new();
    let mut disk = vec![0; 6 << 20];
    disk[5 << 20] = 1;
    let image = place.import(&gzip(&disk), |_| {}).unwrap();
    assert_eq!(image.size, 6 << 20);
    let used = std::fs::metadata(&image.path).unwrap().blocks() * 512;
    assert!(used < 1 << 20, "{used} bytes are used");
}

#[test]
fn a_checksum_is_of_what_was_transferred() {
    let place = Place::new();
    let file = gzip(&raw());
    for (kind, algorithm) in [("sha256", &SHA256), ("sha512", &SHA512)] {
        let value = hex(ring::digest::digest(algorithm, &file).as_ref());
        let checksum = format!("{kind}:{value}");
        place
            .import(&file, |request| request.checksum = Some(checksum))
            .unwrap();
    }
    let place = Place::new();
    let wrong = place.import(&file, |request| request.checksum = Some("0".repeat(64)));
    assert!(matches!(wrong, Err(ImageError::Checksum { .. })), "{wrong:?}");
    for bad in ["md5:00", "sha256:xyz", "sha512:00"] {
        let refused = place.import(&file, |request| request.checksum = Some(bad.to_owned()));
        assert!(matches!(refused, Err(ImageError::Unusable { .. })), "{bad}");
    }
    assert!(place.is_empty());
}

#[test]
fn bombs_do_not_go_off() {
    let place = Place::new();
    // Much that comes out of little.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..6 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let stopped = place.import(&bomb, |request| request.max_size = 4 << 20);
    assert!(
        matches!(stopped, Err(ImageError::TooLarge { limit: 4_194_304, .. })),
        "{stopped:?}"
    );
    assert!(place.is_empty());
}

#[test]
fn what_is_no_disk_is_refused() {
    let place = Place::new();
    let text = |error: ImageError| error.to_string();
    for (bytes, words) in [
        (&b""[..], "empty"),
        (b"<html>not found</html>", "web page"),
        (b"hello", "no whole sectors"),
        (b"KDMV\x01\0\0\0", "another hypervisor"),
        (&gzip(&gzip(&raw())), "packed twice"),
        (b"\x1f\x8b\x08\0broken", "cannot be unpacked"),
        (b"QFI\xfb\0\0\0\x09", "version"),
    ] {
        let error = text(place.import(bytes, |_| {}).unwrap_err());
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(place.is_empty());
}

#[test]
fn qcow2_files_stand_alone_or_are_refused() {
    if !has_qemu_img() {
        return;
    }
    let place = Place::new();
    let good = place.qcow2(&[]);
    let image = place.import(&good, |_| {}).unwrap();
    assert_eq!((image.format, image.virtual_size), (Format::Qcow2, 16 << 20));
    std::fs::write(place.directory.path().join("secret.raw"), vec![0; 1 << 20]).unwrap();
    for (arguments, words) in [
        (&["-F", "raw", "-b", "secret.raw"][..], "needs another file"),
        (&["-o", "data_file=elsewhere.raw"], "another file"),
    ] {
        let bad = place.qcow2(arguments);
        let error = place.import(&bad, |_| {}).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = place
        .import(&good, |request| request.max_size = 1 << 20)
        .unwrap_err();
    assert!(error.to_string().contains("limit"), "{error}");
    // Cut off behind its header: the tables are missing.
    let error = place.import(&good[..66_000], |_| {}).unwrap_err().to_string();
    assert!(error.contains("too early"), "{error}");
}

#[test]
fn a_machine_gets_a_layer_of_its_own() {
    if !has_qemu_img() {
        return;
    }
    let place = Place::new();
    let image = place.import(&raw(), |_| {}).unwrap();
    let machine = place.directory.path().join("machine");
    std::fs::create_dir(&machine).unwrap();
    assert_eq!(
        overlay::over(&image, &machine, "root", Some(8 << 20)).unwrap(),
        8 << 20
    );
    assert_eq!(place.cache.uses(&image), 1);
    let layer = machine.join("root.qcow2");
    // Asked again, the same disk is found.
    assert_eq!(overlay::over(&image, &machine, "root", Some(1)).unwrap(), 8 << 20);
    overlay::grow(&layer, 16 << 20).unwrap();
    assert_eq!(overlay::virtual_size(&layer).unwrap(), 16 << 20);
    assert!(overlay::grow(&layer, 1 << 20).is_err());
    // The directory can be moved, and the cache can lose the image.
    let moved = place.directory.path().join("moved");
    std::fs::rename(&machine, &moved).unwrap();
    place.cache.remove("x").unwrap();
    let flat = moved.join("flat.qcow2");
    overlay::flatten(
        &moved.join("root.qcow2"),
        &flat,
        std::time::Duration::from_secs(60),
    )
    .unwrap();
    let again = file(&place.cache, &flat, &Request::new("again", "flat"), |_| {}).unwrap();
    assert_eq!(again.virtual_size, 16 << 20);
    overlay::blank(&moved, "data", 1 << 30).unwrap();
    assert_eq!(overlay::virtual_size(&moved.join("data.qcow2")).unwrap(), 1 << 30);
}
