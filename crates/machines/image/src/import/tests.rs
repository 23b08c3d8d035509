//! Files of every kind, most of them bad.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        fairway_machines_required::skipped(format_args!(
            "{program} is not installed (scripts/tools.sh qemu)"
        ));
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

/// What a program makes of bytes that it gets through a pipe, so that it does not know beforehand how many there are.
fn packed_by(program: &str, bytes: &[u8]) -> Vec<u8> {
    let mut running = Command::new(program)
        .args(["-c", "-q"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = running.stdin.take().unwrap();
    let bytes = bytes.to_owned();
    let writer = std::thread::spawn(move || to.write_all(&bytes).unwrap());
    let output = running.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    output.stdout
}

#[test]
fn packed_or_not_the_disk_is_the_same() {
    let place = Place::new();
    let expected = place.import(&raw(), |_| {}).unwrap();
    assert_eq!((expected.format, expected.virtual_size), (Format::Raw, 1 << 20));
    assert_eq!(std::fs::read(&expected.path).unwrap(), raw());
    let packed = place.import(&gzip(&raw()), |_| {}).unwrap();
    assert_eq!(packed.digest, expected.digest);
    // The same disk packed by xz and zstd, by the programs themselves.
    for program in ["xz", "zstd"] {
        if !has(program) {
            continue;
        }
        let file = packed_by(program, &raw());
        let image = place.import(&file, |_| {}).unwrap();
        assert_eq!(image.digest, expected.digest, "{program}");
        // Half of it is not a disk.
        let half = &file[..file.len() / 2];
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
    let zeros = vec![0; 6 << 20];
    for program in ["gzip", "xz", "zstd"] {
        if program != "gzip" && !has(program) {
            continue;
        }
        // Much that comes out of little.
        let bomb = match program {
            "gzip" => gzip(&zeros),
            other => packed_by(other, &zeros),
        };
        assert!(bomb.len() < 64 << 10, "{program}: {} bytes", bomb.len());
        let stopped = place.import(&bomb, |request| request.max_size = 4 << 20);
        assert!(
            matches!(stopped, Err(ImageError::TooLarge { limit: 4_194_304, .. })),
            "{program}: {stopped:?}"
        );
        assert!(place.is_empty(), "{program}");
    }
}

/// A file of xz that wants 4 GiB of memory to be unpacked.
fn hungry_xz() -> Vec<u8> {
    let mut file = packed_by("xz", &raw());
    // Behind 12 bytes for the stream, the header of the first block: a quarter of its length less one, flags, the filter LZMA2 (0x21) with
    // one byte of properties, which is the size of its dictionary, and in the end the checksum of all that.
    let length = (usize::from(file[12]) + 1) * 4;
    let header = &mut file[12..12 + length];
    let at = header.windows(2).position(|pair| pair == [0x21, 1]).unwrap() + 2;
    header[at] = 40;
    let mut checksum = flate2::Crc::new();
    checksum.update(&header[..length - 4]);
    header[length - 4..].copy_from_slice(&checksum.sum().to_le_bytes());
    file
}

/// The same of zstd: behind its magic number and flags there is the size of its window.
fn hungry_zstd() -> Vec<u8> {
    let mut file = packed_by("zstd", &raw());
    assert_eq!(file[4] & 0x20, 0, "it has a window of its own");
    file[5] = 0xf8;
    file
}

#[test]
fn memory_is_not_given_to_whoever_asks_for_much() {
    let place = Place::new();
    type Maker = fn() -> Vec<u8>;
    for (program, make) in [("xz", hungry_xz as Maker), ("zstd", hungry_zstd)] {
        if !has(program) {
            continue;
        }
        let refused = place.import(&make(), |_| {});
        assert!(
            matches!(refused, Err(ImageError::Unusable { .. })),
            "{program}: {refused:?}"
        );
        assert!(place.is_empty(), "{program}");
    }
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
    if !has("qemu-img") {
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
    if !has("qemu-img") {
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
