//! The guests that are booted.

/// An image, and a machine that boots from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    /// The image, and the machine's name.
    pub(super) image: &'static str,
    /// Memory, as the API writes it.
    pub(super) memory: &'static str,
    /// Mebibytes of its disk.
    pub(super) disk: u32,
}

pub(super) const TINY: Guest = Guest {
    image: "tiny",
    memory: "128Mi",
    disk: 512,
};

/// A whole system, with systemd and the real cloud-init: minutes where the processor is emulated.
pub(super) const DEBIAN: Guest = Guest {
    image: "debian",
    memory: "512Mi",
    disk: 3072,
};
