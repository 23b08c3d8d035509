//! jemalloc as the allocator of Rust and of the C libraries in the program, and how it is set.

use std::ffi::c_char;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings, as jemalloc looks for them when it starts.
#[repr(transparent)]
pub(crate) struct Settings(*const c_char);

// SAFETY: it points to a constant, which nobody writes.
unsafe impl Sync for Settings {}

/// Two arenas: threads keep what they need often to themselves, and an arena costs memory. Free pages go back to the kernel
/// within a second, by a thread of the allocator's own, so that an idle server does it, too.
// SAFETY: it is the name and the type of the C variable, a pointer to a text that ends with a zero.
#[unsafe(export_name = "malloc_conf")]
pub(crate) static SETTINGS: Settings =
    Settings(c"narenas:2,dirty_decay_ms:1000,muzzy_decay_ms:0,background_thread:true".as_ptr());

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::SETTINGS;

    /// A setting that jemalloc does not know is only a line on standard error; one that it knows can be read back.
    #[test]
    fn the_settings_are_taken() {
        let written = unsafe {
            // SAFETY: the pointer is that of a constant C text.
            CStr::from_ptr(SETTINGS.0)
        };
        assert!(written.to_str().unwrap().starts_with("narenas:2,"));
        let mut arenas: u32 = 0;
        let mut size = size_of::<u32>();
        let answer = unsafe {
            // SAFETY: the name ends with a zero, and the buffer has the size that is passed.
            tikv_jemalloc_sys::mallctl(
                c"opt.narenas".as_ptr(),
                (&raw mut arenas).cast(),
                &raw mut size,
                std::ptr::null_mut(),
                0,
            )
        };
        assert_eq!((answer, arenas), (0, 2));
    }
}
