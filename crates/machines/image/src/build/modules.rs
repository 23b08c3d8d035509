//! The kernel's modules that the guest has, with those that they need.

use std::collections::BTreeMap;

use bytes::Bytes;
use fairway_machines_disk::{Tree, elf};

use crate::ImageError;

/// What the initrd needs to find the root file system.
pub(super) const EARLY: [&str; 5] = ["virtio_pci", "virtio_blk", "virtio_scsi", "sd_mod", "virtio_mmio"];
/// What is loaded when the root file system is there.
pub(super) const LATE: [&str; 9] = [
    "virtio_net",
    "virtio_console",
    "virtio_rng",
    "virtio_balloon",
    "button",
    "evdev",
    "isofs",
    "sr_mod",
    "nls_ascii",
];
/// What is there for whoever asks for it.
pub(super) const ON_DEMAND: [&str; 9] = [
    "vfat",
    "nls_cp437",
    "nls_iso8859_1",
    "nls_utf8",
    "fuse",
    "virtiofs",
    "virtio_mem",
    "loop",
    "tpm_crb",
];
/// Names by which the kernel asks for some of them.
pub(super) const ALIASES: &str = "\
alias fs-iso9660 isofs
alias fs-vfat vfat
alias fs-msdos vfat
alias fs-fuse fuse
alias fs-virtiofs virtiofs
alias nls_ascii nls_ascii
";

/// A module: its path in the package, its content, and the modules that it needs.
pub(super) struct Module {
    pub(super) path: String,
    pub(super) content: Bytes,
    needs: Vec<String>,
}

/// The modules of a kernel, by name with underscores.
pub(super) struct Modules(BTreeMap<String, Module>);

impl Modules {
    /// Those in a tree of packages.
    pub(super) fn of(all: &Tree, release: &str) -> Self {
        let folders = [
            format!("lib/modules/{release}/"),
            format!("usr/lib/modules/{release}/"),
        ];
        let mut modules = BTreeMap::new();
        for (path, _) in all.nodes() {
            let within = folders
                .iter()
                .find_map(|folder| path.strip_prefix(folder.as_str()));
            let name = within
                .and_then(|path| path.rsplit('/').next())
                .and_then(|file| file.strip_suffix(".ko"));
            let (Some(within), Some(name), Some(content)) = (within, name, all.bytes(path)) else {
                continue;
            };
            let needs = elf::module_needs(content).unwrap_or_default();
            let module = Module {
                path: within.to_owned(),
                content: content.clone(),
                needs: needs.into_iter().collect(),
            };
            modules.insert(name.replace('-', "_"), module);
        }
        Self(modules)
    }

    /// The module with a name.
    pub(super) fn get(&self, name: &str) -> Option<&Module> {
        self.0.get(name)
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These modules and what they need, each after what it needs. Those that this kernel does not have as modules are left
    /// out: it has them built in, or not at all.
    pub(super) fn closure<'a>(&'a self, names: &[&'a str]) -> Result<Vec<&'a str>, ImageError> {
        let mut out = Vec::new();
        for name in names {
            self.visit(name, &mut out, 0)?;
        }
        Ok(out)
    }

    fn visit<'a>(&'a self, name: &'a str, out: &mut Vec<&'a str>, depth: usize) -> Result<(), ImageError> {
        let Some(module) = self.0.get(name) else {
            return Ok(());
        };
        if out.contains(&name) {
            return Ok(());
        }
        if depth > 32 {
            return Err(ImageError::Build(format!(
                "the kernel's module {name} needs itself"
            )));
        }
        for need in &module.needs {
            self.visit(need, out, depth + 1)?;
        }
        out.push(name);
        Ok(())
    }

    /// The file by which `modprobe` finds what a module needs: what is needed directly comes first.
    pub(super) fn dependencies(&self, names: &[&str]) -> Result<String, ImageError> {
        let mut text = String::new();
        for name in names {
            let mut chain = self.closure(&[*name])?;
            chain.pop();
            chain.reverse();
            let Some(module) = self.get(name) else { continue };
            let needed: Vec<&str> = chain
                .iter()
                .filter_map(|need| self.get(need))
                .map(|need| need.path.as_str())
                .collect();
            text.push_str(&format!("{}: {}\n", module.path, needed.join(" ")));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(list: &[(&str, &[&str])]) -> Modules {
        let module = |(name, needs): &(&str, &[&str])| {
            let module = Module {
                path: format!("kernel/{name}.ko"),
                content: Bytes::new(),
                needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            };
            ((*name).to_owned(), module)
        };
        Modules(list.iter().map(module).collect())
    }

    #[test]
    fn what_is_needed_comes_first() {
        let modules = modules(&[
            ("ring", &["virtio"]),
            ("virtio", &[]),
            ("net", &["ring", "virtio"]),
        ]);
        let order = modules.closure(&["net", "built_in", "ring"]).unwrap();
        assert_eq!(order, ["virtio", "ring", "net"]);
        assert_eq!(
            modules.dependencies(&["net"]).unwrap(),
            "kernel/net.ko: kernel/ring.ko kernel/virtio.ko\n"
        );
    }

    #[test]
    fn a_circle_is_an_error() {
        assert!(modules(&[("a", &["b"]), ("b", &["a"])]).closure(&["a"]).is_err());
    }
}
