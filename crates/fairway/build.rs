//! Folds functions whose machine code is the same into one, in release builds.
//!
//! Generic code over many API types compiles to many identical functions; folded, the binary and its resident memory are
//! a tenth smaller. Rust promises no address of its own to a function, so nothing can depend on the copies. Only lld
//! can do it, which is Rust's linker on this target by default.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
