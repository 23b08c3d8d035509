//! The image `tiny`, built from packages: the same bytes every time, in file systems that their own tools find in order.
//! Where apt or QEMU's tools are missing the test is SKIPPED with a line that says so.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed, and one that is skipped says so"
)]

use std::path::Path;
use std::process::{Command, Stdio};

use fairway_machines_image::{Cache, Image, ImageError, build};

fn has(program: &str) -> bool {
    let run = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if run.is_err() {
        fairway_machines_required::skipped(format_args!(
            "{program} is not installed (scripts/tools.sh qemu)"
        ));
    }
    run.is_ok()
}

fn built(cache: &Cache, rebuild: bool) -> Option<Image> {
    match build::tiny(cache, rebuild, |text| eprintln!("tiny: {text}")) {
        Ok(image) => Some(image),
        Err(ImageError::Program { program, why }) if program.starts_with("apt") => {
            fairway_machines_required::skipped(format_args!("the packages cannot be had: {why}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_same_packages_give_the_same_bytes() {
    if !has("apt-get") || !has("qemu-img") {
        return;
    }
    // The packages are fetched once and stay there; the tests of machines use the image, too.
    let cache = Cache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("images")).unwrap();
    let Some(first) = built(&cache, false) else {
        return;
    };
    let again = built(&cache, true).unwrap();
    assert_eq!(first.digest, again.digest);
    assert_eq!(first.direct_boot, again.direct_boot);
    assert!(first.size < 64 << 20, "{} bytes", first.size);
    assert!(first.labels[build::PACKAGES_LABEL].contains("busybox-static="));

    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let raw = directory.path().join("disk.raw");
    let convert = Command::new("qemu-img")
        .args(["convert", "-O", "raw"])
        .args([&first.path, &raw])
        .status();
    assert!(convert.unwrap().success());
    if Command::new("e2fsck")
        .arg("-V")
        .stderr(Stdio::null())
        .status()
        .is_ok()
    {
        // The second partition, as `tiny` has it.
        let place = format!("{}?offset={}", raw.display(), 9 << 20);
        let check = Command::new("e2fsck")
            .args(["-f", "-n", &place])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&check.stdout);
        assert!(check.status.success(), "{said}");
    } else {
        fairway_machines_required::skipped(
            "checking the file system: e2fsck is not installed (scripts/tools.sh qemu)",
        );
    }
}
