//! Disks as QEMU's own tool sees them.

use std::os::unix::fs::MetadataExt as _;

use crate::import::{self, Request};
use crate::{Cache, overlay};

use super::*;

/// Something that is done with a disk.
type Call<'a> = &'a dyn Fn() -> Result<(), ImageError>;

fn has_qemu_img() -> bool {
    let found = Command::new("qemu-img").arg("--version").output().is_ok();
    if !found {
        fairway_machines_required::skipped("qemu-img is not installed (scripts/tools.sh qemu)");
    }
    found
}

fn qemu_img(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("qemu-img")
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn qemu_io(directory: &Path, disk: &str, command: &str) -> String {
    let output = Command::new("qemu-io")
        .current_dir(directory)
        .args(["-f", "qcow2", "-c", command, disk])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && !said.contains("failed"),
        "{command}: {said}"
    );
    said
}

/// A cache with one raw image of 4 MiB, full of sevens.
fn cache() -> (tempfile::TempDir, Cache, Image) {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(&directory.path().join("images")).unwrap();
    let content = vec![7; 4 << 20];
    let image = import::stream(&cache, &content[..], &Request::new("x", "test"), |_| {}).unwrap();
    (directory, cache, image)
}

fn made(directory: &tempfile::TempDir, name: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn what_is_made_here_is_what_qemu_makes() {
    if !has_qemu_img() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    for size in [512, 1 << 20, (1 << 29) + 512, 10 << 30, 2 << 40, 9 << 40] {
        overlay::blank(place, "ours", size).unwrap();
        qemu_img(place, &["check", "-f", "qcow2", "ours.qcow2"]);
        qemu_img(
            place,
            &["create", "-q", "-f", "qcow2", "theirs.qcow2", &size.to_string()],
        );
        let shown = |disk: &str| -> serde_json::Value {
            let text = qemu_img(place, &["info", "--output=json", disk]);
            serde_json::from_str(&text).unwrap()
        };
        let (ours, theirs) = (shown("ours.qcow2"), shown("theirs.qcow2"));
        for field in ["virtual-size", "cluster-size", "format", "format-specific"] {
            assert_eq!(ours[field], theirs[field], "{field} of {size}");
        }
        assert_eq!(virtual_size(&place.join("ours.qcow2")).unwrap(), size);
        if size < 1 << 40 {
            let same = qemu_img(place, &["compare", "ours.qcow2", "theirs.qcow2"]);
            assert!(same.contains("identical"), "{same}");
        }
        std::fs::remove_file(place.join("ours.qcow2")).unwrap();
    }
}

#[test]
fn a_layer_is_written_and_the_image_is_not() {
    if !has_qemu_img() {
        return;
    }
    let (directory, _cache, image) = cache();
    let machine = made(&directory, "machine");
    assert_eq!(over(&image, &machine, "disk", Some(8 << 20)).unwrap(), 8 << 20);
    qemu_io(&machine, "disk.qcow2", "read -P 7 0 4M");
    qemu_io(&machine, "disk.qcow2", "read -P 0 4M 4M");
    qemu_io(&machine, "disk.qcow2", "write -P 9 1M 1M");
    qemu_io(&machine, "disk.qcow2", "write -P 9 6M 1M");
    qemu_img(&machine, &["check", "-f", "qcow2", "disk.qcow2"]);
    let content = std::fs::read(&image.path).unwrap();
    assert!(content.iter().all(|byte| *byte == 7));
}

#[test]
fn an_empty_one_lies_over_the_same_image() {
    if !has_qemu_img() {
        return;
    }
    let (directory, _cache, image) = cache();
    let (one, other) = (made(&directory, "one"), made(&directory, "other"));
    over(&image, &one, "disk", Some(8 << 20)).unwrap();
    qemu_io(&one, "disk.qcow2", "write -P 9 1M 64k");
    assert_eq!(like(&one, &other, "disk").unwrap(), 8 << 20);
    qemu_io(&other, "disk.qcow2", "read -P 7 0 4M");
    // Over nothing, if there is nothing; and over what is qcow2 itself.
    let (alone, again) = (made(&directory, "alone"), made(&directory, "again"));
    blank(&alone, "disk", 1 << 20).unwrap();
    assert_eq!(like(&alone, &again, "disk").unwrap(), 1 << 20);
    assert!(!again.join("disk.base").exists());
    std::fs::hard_link(again.join("disk.qcow2"), one.join("layer.base")).unwrap();
    std::fs::copy(one.join("disk.qcow2"), one.join("layer.qcow2")).unwrap();
    like(&one, &other, "layer").unwrap();
    let shown = qemu_img(&other, &["info", "--output=json", "layer.qcow2"]);
    assert!(shown.contains(r#""backing-filename-format": "qcow2""#), "{shown}");
    settle(&other.join("layer.qcow2")).unwrap();
}

#[test]
fn a_copy_shares_what_lies_behind() {
    if !has_qemu_img() {
        return;
    }
    let (directory, cache, image) = cache();
    let (one, other) = (made(&directory, "one"), made(&directory, "other"));
    over(&image, &one, "disk", Some(8 << 20)).unwrap();
    qemu_io(&one, "disk.qcow2", "write -P 9 1M 64k");
    assert_eq!(copy(&one, &other, "disk").unwrap(), 8 << 20);
    assert_eq!(cache.uses(&image), 2);
    qemu_io(&other, "disk.qcow2", "read -P 9 1M 64k");
    qemu_io(&other, "disk.qcow2", "read -P 7 2M 1M");
    // From here on each goes its own way.
    qemu_io(&other, "disk.qcow2", "write -P 3 1M 64k");
    qemu_io(&one, "disk.qcow2", "read -P 9 1M 64k");
    let used = std::fs::metadata(disk(&other)).unwrap().blocks() * 512;
    assert!(used < 1 << 20, "{used} bytes are used");
    // Asked again, the same disk is found; what a killed process left is of no account.
    std::fs::write(other.join(".disk.draft"), b"half").unwrap();
    assert_eq!(copy(&one, &other, "disk").unwrap(), 8 << 20);
    qemu_io(&other, "disk.qcow2", "read -P 3 1M 64k");
    // One that stands alone is copied as a whole.
    let (alone, last) = (made(&directory, "alone"), made(&directory, "last"));
    blank(&alone, "disk", 1 << 30).unwrap();
    qemu_io(&alone, "disk.qcow2", "write -P 5 0 64k");
    copy(&alone, &last, "disk").unwrap();
    qemu_io(&last, "disk.qcow2", "read -P 5 0 64k");
    assert!(!last.join("disk.base").exists());
}

#[test]
fn a_disk_can_have_all_its_blocks() {
    if !has_qemu_img() {
        return;
    }
    let (directory, cache, image) = cache();
    let machine = made(&directory, "machine");
    over(&image, &machine, "disk", Some(8 << 20)).unwrap();
    preallocate(&machine, "disk", Duration::from_secs(60)).unwrap();
    assert!(!machine.join("disk.base").exists());
    assert_eq!(cache.uses(&image), 0);
    let used = std::fs::metadata(disk(&machine)).unwrap().blocks() * 512;
    assert!(used >= 8 << 20, "{used} bytes are used");
    qemu_io(&machine, "disk.qcow2", "read -P 7 0 4M");
    assert_eq!(virtual_size(&disk(&machine)).unwrap(), 8 << 20);
}

fn disk(directory: &Path) -> PathBuf {
    directory.join("disk.qcow2")
}

/// Disks whose header a guest could have written, in each way that names something of the host's.
#[test]
fn a_forged_header_is_refused_before_any_tool_opens_the_file() {
    let (directory, _cache, image) = cache();
    let machine = made(&directory, "machine");
    let other = directory.path().join("secret");
    std::fs::write(&other, "secret").unwrap();
    let disk = machine.join("root.qcow2");
    let secret = other.display().to_string();
    let forge = |file: &str, format: &str| empty(8 << 20, Some(Backing { file, format })).unwrap();
    let data_file = {
        let mut header = empty(8 << 20, None).unwrap();
        // The bit of features that says so.
        header[79] |= 4;
        header
    };
    for (what, header, expected) in [
        (
            "another file",
            forge(&secret, "raw"),
            Some("its header names the file"),
        ),
        (
            "a file by a protocol",
            forge("json:{\"driver\": \"nbd\", \"host\": \"10.0.0.1\"}", "raw"),
            Some("its header names the file"),
        ),
        (
            "out of the directory",
            forge("../secret", "raw"),
            Some("its header names the file"),
        ),
        (
            "another way to the base",
            forge("./root.base", "raw"),
            Some("its header names the file"),
        ),
        (
            "the base in another format",
            forge("root.base", "vmdk"),
            Some("is of the format \"vmdk\", which is raw"),
        ),
        (
            "a file with its data",
            data_file,
            Some("its data lies in another file"),
        ),
        (
            "no qcow2 at all",
            b"# Disk DescriptorFile\n".to_vec(),
            Some("it is not a qcow2 file"),
        ),
        ("as it was made", forge("root.base", "raw"), None),
    ] {
        let _ = std::fs::remove_file(&disk);
        overlay::over(&image, &machine, "root", Some(8 << 20)).unwrap();
        std::fs::write(&disk, &header).unwrap();
        let layers = made(&directory, "layers");
        let copies = made(&directory, "copies");
        let to = directory.path().join("flat.qcow2");
        let wait = Duration::from_secs(60);
        let calls: [(&str, Call<'_>); 5] = [
            ("copy", &|| overlay::copy(&machine, &copies, "root").map(drop)),
            ("above", &|| overlay::above(&disk, &layers, "layer").map(drop)),
            ("flatten", &|| overlay::flatten(&disk, &to, wait)),
            ("grow", &|| overlay::grow(&disk, 16 << 20)),
            ("preallocate", &|| overlay::preallocate(&machine, "root", wait)),
        ];
        for (call, run) in calls {
            if expected.is_none() && !has_qemu_img() {
                continue;
            }
            match (run(), expected) {
                (Ok(()), None) => {}
                (Err(error), Some(expected)) => {
                    let error = error.to_string();
                    assert!(error.contains(expected), "{what}, {call}: {error}");
                    assert_eq!(
                        std::fs::read(&disk).unwrap(),
                        header,
                        "{what}, {call}: it is not touched"
                    );
                }
                (found, _) => panic!("{what}, {call}: {found:?}"),
            }
        }
    }
}
