//! What the linker does for the size of a release build, where it is lld, which is Rust's linker on this target by default.
//!
//! Generic code over many API types compiles to many identical functions: folded into one, the binary and its resident
//! memory are a tenth smaller. Rust promises no address of its own to a function, so nothing can depend on the copies.
//!
//! The addresses that are mended when the program is loaded are a megabyte of table, all of it read at every start. Packed,
//! they are a few kilobytes; the C library can read that from version 2.36 on.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        if c_library().is_some_and(|version| version >= (2, 36)) {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// The version of this machine's C library; a binary that is built here needs it, or a newer one, anyway.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
