//! Whether a guest that runs can go on with the processor of another node.
//!
//! A guest finds out what its processor can when it boots, and does not ask again. So a machine that moves needs at its target what it
//! began with: guests that are emulated go on wherever they are emulated, as QEMU makes their processor; guests that run on the
//! processor itself (KVM) go on with the same one, if theirs is the host's, or with one of the same maker, if its model has a name.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::argv::Accelerator;
use crate::machine::CpuModel;

/// What a machine runs on, or would on some node. Written `tcg`, or `kvm/` and the processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunsOn {
    /// Emulated: whatever the node has.
    Tcg,
    /// This processor, as [`processor`] names it; empty if that cannot be told.
    Kvm(String),
}

impl RunsOn {
    /// What machines of a host run on.
    pub fn new(accelerator: Accelerator, processor: Option<&str>) -> Self {
        match accelerator {
            Accelerator::Tcg => Self::Tcg,
            Accelerator::Kvm => Self::Kvm(processor.unwrap_or_default().to_owned()),
        }
    }
}

impl fmt::Display for RunsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcg => f.write_str("tcg"),
            Self::Kvm(processor) => write!(f, "kvm/{processor}"),
        }
    }
}

/// It is not what a node writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither `tcg` nor `kvm/` and a processor")]
pub struct NotRunsOn;

impl FromStr for RunsOn {
    type Err = NotRunsOn;

    fn from_str(text: &str) -> Result<Self, NotRunsOn> {
        match text.split_once('/') {
            None if text == "tcg" => Ok(Self::Tcg),
            Some(("kvm", processor)) => Ok(Self::Kvm(processor.to_owned())),
            _ => Err(NotRunsOn),
        }
    }
}

/// Why a guest cannot go on with another node's processor, in a few words that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It needs KVM.
    #[error("had no KVM, on which the guest runs")]
    Emulates,
    /// It needs none.
    #[error("had KVM, and the guest is emulated")]
    Accelerates,
    /// Not the same.
    #[error("had another processor than the guest's")]
    Processor,
    /// Not even of the same maker.
    #[error("had a processor of another maker than the guest's")]
    Maker,
}

/// What stands in the way of a guest that goes on there, if anything does.
pub fn misfit(guest: &RunsOn, model: &CpuModel, there: &RunsOn) -> Option<Misfit> {
    match (guest, there, model) {
        (RunsOn::Tcg, RunsOn::Tcg, _) => None,
        (RunsOn::Tcg, RunsOn::Kvm(_), _) => Some(Misfit::Accelerates),
        (RunsOn::Kvm(_), RunsOn::Tcg, _) => Some(Misfit::Emulates),
        // Two that cannot be told are not the same.
        (RunsOn::Kvm(own), RunsOn::Kvm(other), CpuModel::Host) => {
            (own.is_empty() || own != other).then_some(Misfit::Processor)
        }
        (RunsOn::Kvm(own), RunsOn::Kvm(other), CpuModel::Named(_)) => {
            (maker(own).is_empty() || maker(own) != maker(other)).then_some(Misfit::Maker)
        }
    }
}

/// The maker in the name of a processor.
pub fn maker(processor: &str) -> &str {
    processor.split('-').next().unwrap_or_default()
}

/// A name for the first processor of `/proc/cpuinfo`: its maker, its numbers, and a digest of what it can, such as `Intel-6-85-7-1c2f09aa`. It
/// is the value of a label.
pub fn processor(cpuinfo: &str) -> Option<String> {
    let first = cpuinfo.split("\n\n").next()?;
    let field = |name: &str| {
        let mut lines = first.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.trim() == name);
        found.map(|(_, value)| value.trim())
    };
    let maker = match field("vendor_id")? {
        // As libvirt, and with it KubeVirt, calls them.
        "GenuineIntel" => "Intel".to_owned(),
        "AuthenticAMD" => "AMD".to_owned(),
        "HygonGenuine" => "Hygon".to_owned(),
        other => other
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(16)
            .collect(),
    };
    let numbers = ["cpu family", "model", "stepping"].map(|name| field(name).and_then(|it| it.parse().ok()));
    let [family, model, stepping]: [u32; 3] = numbers.map(Option::unwrap_or_default);
    let mut flags: Vec<&str> = field("flags")
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    flags.sort_unstable();
    let digest = Sha256::digest(flags.join(" "));
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    (!maker.is_empty()).then(|| format!("{maker}-{family}-{model}-{stepping}-{digest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_where() {
        let host = CpuModel::Host;
        let named = CpuModel::Named("Nehalem".to_owned());
        let (old, new, amd) = ("kvm/Intel-6-85-7-aa", "kvm/Intel-6-106-6-bb", "kvm/AMD-25-1-1-cc");
        for (guest, model, there, expected, reason) in [
            ("tcg", &host, "tcg", None, "QEMU makes the same one"),
            ("tcg", &named, "tcg", None, "of that name, too"),
            (
                "tcg",
                &host,
                old,
                Some(Misfit::Accelerates),
                "the host's can less than QEMU's",
            ),
            (
                "tcg",
                &named,
                old,
                Some(Misfit::Accelerates),
                "a clock that is not there",
            ),
            (
                old,
                &host,
                "tcg",
                Some(Misfit::Emulates),
                "QEMU cannot do what the host does",
            ),
            (
                old,
                &named,
                "tcg",
                Some(Misfit::Emulates),
                "nor what a name promises under KVM",
            ),
            (old, &host, old, None, "the same"),
            (
                old,
                &host,
                new,
                Some(Misfit::Processor),
                "of the same maker, and another",
            ),
            (old, &host, amd, Some(Misfit::Processor), "nothing is the same"),
            (old, &named, new, None, "a name is for that"),
            (old, &named, amd, Some(Misfit::Maker), "names do not reach so far"),
            ("kvm/", &host, "kvm/", Some(Misfit::Processor), "nobody knows"),
            ("kvm/", &named, "kvm/", Some(Misfit::Maker), "nobody knows"),
        ] {
            let [own, other] = [guest, there].map(|it| it.parse::<RunsOn>().unwrap());
            assert_eq!(
                misfit(&own, model, &other),
                expected,
                "{guest} to {there}: {reason}"
            );
            assert_eq!(own.to_string(), guest);
        }
        for text in ["", "kvm", "TCG", "xen/x"] {
            assert_eq!(text.parse::<RunsOn>(), Err(NotRunsOn), "{text}");
        }
    }

    #[test]
    fn processors_have_names() {
        let cpuinfo = |flags: &str| {
            format!(
                "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: X\nstepping\t: 7\nflags\t\t: {flags}\n\nprocessor\t: 1\nvendor_id\t: Other\n"
            )
        };
        let name = processor(&cpuinfo("fpu aes")).unwrap();
        assert!(name.starts_with("Intel-6-85-7-") && name.len() < 63, "{name}");
        assert_eq!(
            processor(&cpuinfo("aes fpu")),
            Some(name.clone()),
            "in whatever order"
        );
        assert_ne!(
            processor(&cpuinfo("aes fpu avx2")),
            Some(name.clone()),
            "it can more"
        );
        assert_eq!(maker(&name), "Intel");
        let strange = processor("vendor_id : Some/One Else and a very long name\n").unwrap();
        assert!(strange.starts_with("SomeOneElseandav-0-0-0-"), "{strange}");
        assert_eq!(
            processor("CPU implementer : 0x41\n"),
            None,
            "those say it in another way"
        );
    }
}
