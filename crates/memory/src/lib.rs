//! Where the process takes its memory from, and what it gives back, so that a busy server is quick and an idle one small.
//!
//! Serving is mostly making and dropping small trees, on several threads: jemalloc does that with some 15 % less of the
//! whole server's time than glibc, for 4 MiB (`docs/decisions/0006-allocator.md`). Linux maps 64 KiB around every page of the
//! program that is touched, so that starting, which touches a little of everything, leaves nearly the whole program mapped;
//! that can be given back.
//!
//! Beside `fairway-machines-tap` this is the only crate with unsafe code: each place says why it is sound. Elsewhere than on Linux the allocator is the
//! system's, and nothing is given back.

#[cfg(target_os = "linux")]
mod allocator;
#[cfg(target_os = "linux")]
mod mapping;

/// Gives back what starting needed and running does not: mapped pages of the program. Those that are needed again come from the
/// page cache, for a microsecond each. The allocator gives back free memory by itself.
pub fn give_back() {
    #[cfg(target_os = "linux")]
    mapping::forget_code();
}

/// What is resident of mapped files, in bytes: mostly the program's own code. None where that cannot be told.
#[must_use]
pub fn mapped_of_files() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return mapping::resident_of_files();
    #[cfg(not(target_os = "linux"))]
    None
}
