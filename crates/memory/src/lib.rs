//! What the process asks of the C library and the kernel about its memory, so that an idle server holds little.
//!
//! Two things make a small server look large. glibc gives every thread an arena of its own, and what a thread needed for a
//! moment stays there. And Linux maps 64 KiB around every page of the program that is touched, so that starting, which
//! touches a little of everything, leaves nearly the whole program mapped. Both can be given back; nothing else is here.
//!
//! This is the only crate with unsafe code: four calls of the C library, each with the reason why it is sound. Elsewhere
//! than on Linux with glibc the functions do nothing.

#[cfg(target_os = "linux")]
mod mapping;

/// Arenas of the allocator: as many threads as this can allocate without waiting for each other.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 2;

/// Lets all threads share a few arenas. To be called before threads are made: an arena that exists stays.
pub fn share_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt only sets a number in the allocator, and takes its lock for it.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}

/// Free memory inside the heap, in bytes, whether its pages were given back or not; 0 where nobody can tell.
pub fn unused() -> usize {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallinfo2 only reads the allocator's figures, and takes its locks for it.
    let free = unsafe { libc::mallinfo2() }.fordblks;
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let free = 0;
    free
}

/// Gives back what starting needed and running does not: free memory inside the heap, and mapped pages of the program. Pages
/// of the program that are needed again come from the page cache, for a microsecond each.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim returns pages without live allocations only, and takes the allocator's locks for it.
    unsafe {
        libc::malloc_trim(0);
    }
    #[cfg(target_os = "linux")]
    mapping::forget_code();
}
