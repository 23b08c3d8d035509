//! UEFI firmware, where distributions put it.

use std::path::{Path, PathBuf};

/// Code, which all machines share, and what a machine's own variables start as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Code.
    pub code: PathBuf,
    /// Variables.
    pub variables: PathBuf,
}

/// What there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Firmware {
    /// Starts anything.
    pub plain: Option<Files>,
    /// Starts only signed code, with the keys that everybody trusts.
    pub secure: Option<Files>,
}

/// Debian and Ubuntu; Fedora and its kin; SUSE; Arch. The larger flash comes first: it has room for more variables.
const PLAIN: [(&str, &str); 6] = [
    ("usr/share/OVMF/OVMF_CODE_4M.fd", "usr/share/OVMF/OVMF_VARS_4M.fd"),
    ("usr/share/OVMF/OVMF_CODE.fd", "usr/share/OVMF/OVMF_VARS.fd"),
    (
        "usr/share/edk2/ovmf/OVMF_CODE.fd",
        "usr/share/edk2/ovmf/OVMF_VARS.fd",
    ),
    (
        "usr/share/qemu/ovmf-x86_64-code.bin",
        "usr/share/qemu/ovmf-x86_64-vars.bin",
    ),
    (
        "usr/share/edk2/x64/OVMF_CODE.4m.fd",
        "usr/share/edk2/x64/OVMF_VARS.4m.fd",
    ),
    (
        "usr/share/edk2-ovmf/x64/OVMF_CODE.fd",
        "usr/share/edk2-ovmf/x64/OVMF_VARS.fd",
    ),
];
const SECURE: [(&str, &str); 4] = [
    (
        "usr/share/OVMF/OVMF_CODE_4M.ms.fd",
        "usr/share/OVMF/OVMF_VARS_4M.ms.fd",
    ),
    (
        "usr/share/OVMF/OVMF_CODE.secboot.fd",
        "usr/share/OVMF/OVMF_VARS.ms.fd",
    ),
    (
        "usr/share/edk2/ovmf/OVMF_CODE.secboot.fd",
        "usr/share/edk2/ovmf/OVMF_VARS.secboot.fd",
    ),
    (
        "usr/share/qemu/ovmf-x86_64-ms-code.bin",
        "usr/share/qemu/ovmf-x86_64-ms-vars.bin",
    ),
];

/// What there is below a root.
pub(super) fn find(root: &Path) -> Firmware {
    let first = |all: &[(&str, &str)]| {
        let found = all.iter().map(|(code, variables)| Files {
            code: root.join(code),
            variables: root.join(variables),
        });
        let mut found = found.filter(|it| it.code.is_file() && it.variables.is_file());
        found.next()
    };
    Firmware {
        plain: first(&PLAIN),
        secure: first(&SECURE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_variables_belong_together() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(find(root.path()), Firmware::default());
        for file in [
            "usr/share/OVMF/OVMF_CODE_4M.fd",
            "usr/share/OVMF/OVMF_CODE.fd",
            "usr/share/OVMF/OVMF_VARS.fd",
        ] {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = find(root.path());
        let plain = found.plain.unwrap();
        assert!(
            plain.code.ends_with("OVMF_CODE.fd"),
            "code without variables is of no use: {plain:?}"
        );
        assert_eq!(found.secure, None);
    }
}
