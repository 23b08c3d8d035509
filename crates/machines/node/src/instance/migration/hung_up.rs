//! Why a target's QEMU ended: by itself, or because nothing more came.

/// What QEMU says when nothing more came: where it was reading, and with which error.
const HUNG_UP: [&str; 2] = ["failed: -5", "load of migration failed: Input/output error"];

/// Whether a target's QEMU ended only because the source has hung up, which knows why. What QEMU could not make sense of, only this
/// side knows.
pub(super) fn was_hung_up(message: &str) -> bool {
    HUNG_UP.iter().any(|it| message.contains(it)) && !message.contains("error while loading")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_was_hung_up_lets_the_source_speak() {
        for (message, expected, reason) in [
            (
                "exit status: 1: qemu-system-x86_64: load of migration failed: Input/output error",
                true,
                "nothing more came",
            ),
            (
                "qemu-system-x86_64: check_section_footer: Read section footer failed: -5\nqemu-system-x86_64: load of migration failed: Invalid argument",
                true,
                "nothing more came, in the middle of something",
            ),
            (
                "qemu-system-x86_64: error while loading state for instance 0x0 of device 'ram'\nload of migration failed: Input/output error",
                false,
                "it did not understand what came",
            ),
            (
                "load of migration failed: Invalid argument",
                false,
                "it did not understand what came",
            ),
            ("signal: 9", false, "somebody killed it"),
        ] {
            assert_eq!(was_hung_up(message), expected, "{reason}");
        }
    }
}
