//! The guests that are booted.

/// An image, and a machine that boots from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest {
    /// The image, and the machine's name.
    pub(crate) image: &'static str,
    /// Memory, as the API writes it.
    pub(crate) memory: &'static str,
    /// Mebibytes of its disk.
    pub(crate) disk: u32,
}

pub(crate) const TINY: Guest = Guest {
    image: "tiny",
    memory: "128Mi",
    disk: 512,
};

/// A whole system, with systemd and the real cloud-init: minutes where the processor is emulated.
pub(crate) const DEBIAN: Guest = Guest {
    image: "debian",
    memory: "512Mi",
    disk: 3072,
};
