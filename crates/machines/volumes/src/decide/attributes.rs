//! What a VolumeAttributesClass makes of a volume: how much may be read and written in a second.
//!
//! Upstream's way to say so: a claim names a class, also later and while its volume is in use; the driver's controller makes the volume so and
//! writes on the claim which class it has now, or why it cannot have it. Parameters are the driver's own words; ours are those that other
//! drivers use, too.

use fairway_kernel_scalar::quantity::Quantity;
use fairway_machines_plan::machine::DiskLimits;

use crate::PROVISIONER;
use crate::view::AttributesClass;

/// What there is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    None,
    /// The volume gets these limits, and the claim says so.
    Set(DiskLimits),
    /// The class is not there yet.
    Pending(String),
    /// It never will be as the class says.
    Infeasible(String),
}

/// What is known.
#[derive(Debug)]
pub(crate) struct Observed<'a> {
    /// The class that the claim names, and the one that it says it has.
    pub(crate) wanted: Option<&'a str>,
    pub(crate) current: Option<&'a str>,
    /// The class of that name.
    pub(crate) class: Option<&'a AttributesClass>,
    /// The limits that the volume has.
    pub(crate) limits: DiskLimits,
}

/// What there is to do with a claim's volume.
pub(crate) fn decide(observed: &Observed<'_>) -> Step {
    let Some(wanted) = observed.wanted.filter(|it| !it.is_empty()) else {
        return Step::None;
    };
    let Some(class) = observed.class else {
        // One that was deleted later takes nothing from the volumes that have it.
        return match observed.current == Some(wanted) {
            true => Step::None,
            false => Step::Pending(format!(
                "VolumeAttributesClass {wanted} does not exist; create it, or name another"
            )),
        };
    };
    match limits(class) {
        Err(why) => Step::Infeasible(format!("VolumeAttributesClass {wanted}: {why}")),
        Ok(limits) if observed.current == Some(wanted) && observed.limits == limits => Step::None,
        Ok(limits) => Step::Set(limits),
    }
}

/// The limits that a class stands for.
fn limits(class: &AttributesClass) -> Result<DiskLimits, String> {
    if class.driver_name != PROVISIONER {
        return Err(format!(
            "its driver is {:?}, and that of the volume is {PROVISIONER}",
            class.driver_name
        ));
    }
    let mut found = DiskLimits::default();
    for (name, text) in &class.parameters {
        let (place, unit) = match name.as_str() {
            "iops" => (&mut found.iops, "operations"),
            "iopsRead" => (&mut found.iops_read, "operations"),
            "iopsWrite" => (&mut found.iops_write, "operations"),
            "throughput" => (&mut found.bytes_per_second, "bytes"),
            "throughputRead" => (&mut found.read_bytes_per_second, "bytes"),
            "throughputWrite" => (&mut found.write_bytes_per_second, "bytes"),
            _ => {
                return Err(format!(
                    "parameter {name:?} is unknown; there are iops, iopsRead, iopsWrite, throughput, throughputRead and throughputWrite"
                ));
            }
        };
        let amount = Quantity::parse(text.trim()).filter(|it| it.is_whole());
        let amount = amount.and_then(|it| u64::try_from(it.value()).ok());
        *place = amount.filter(|it| (1..=MOST).contains(it)).ok_or_else(|| {
            format!(
                "parameter {name} is {text:?}, and not a number of {unit} per second, such as 500 or 50Mi"
            )
        })?;
    }
    both("iops", found.iops, found.iops_read, found.iops_write)?;
    both(
        "throughput",
        found.bytes_per_second,
        found.read_bytes_per_second,
        found.write_bytes_per_second,
    )?;
    Ok(found)
}

/// QEMU's highest.
const MOST: u64 = 1_000_000_000_000_000;

fn both(name: &str, all: u64, read: u64, write: u64) -> Result<(), String> {
    match all > 0 && (read > 0 || write > 0) {
        true => Err(format!(
            "{name} limits reads and writes together, so {name}Read and {name}Write cannot be given beside it"
        )),
        false => Ok(()),
    }
}

/// Limits of a volume as they are written on it.
pub(crate) fn read(text: Option<&str>) -> DiskLimits {
    text.and_then(|it| serde_json::from_str(it).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(driver: &str, parameters: &[(&str, &str)]) -> AttributesClass {
        AttributesClass {
            driver_name: driver.to_owned(),
            parameters: parameters
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn parameters_are_limits() {
        let limits = |parameters: &[(&str, &str)]| limits(&class(PROVISIONER, parameters));
        let found = limits(&[("iops", "500"), ("throughputRead", "50Mi")]).unwrap();
        assert_eq!((found.iops, found.read_bytes_per_second), (500, 50 << 20));
        assert_eq!(limits(&[]), Ok(DiskLimits::default()), "a class without limits");
        for (parameters, part) in [
            (&[("iops", "-1")][..], "not a number of operations"),
            (&[("iops", "0")], "such as 500"),
            (&[("iops", "1.5")], "such as 500"),
            (&[("throughput", "fast")], "not a number of bytes"),
            (&[("throughput", "9Ei")], "such as 500 or 50Mi"),
            (&[("type", "gp3")], "parameter \"type\" is unknown"),
            (&[("iops", "5"), ("iopsRead", "5")], "cannot be given beside it"),
        ] {
            let why = limits(parameters).unwrap_err();
            assert!(why.contains(part), "{parameters:?}: {why}");
        }
    }

    #[test]
    fn a_claim_gets_the_class_that_it_names() {
        let slow = class(PROVISIONER, &[("iops", "100")]);
        let other = class("ebs.csi.aws.com", &[]);
        let has = DiskLimits {
            iops: 100,
            ..DiskLimits::default()
        };
        let none = DiskLimits::default();
        for (wanted, current, class, limits, expected, reason) in [
            (None, None, None, none, "None", "nothing wanted"),
            (
                Some(""),
                None,
                None,
                none,
                "None",
                "nothing wanted, in so many words",
            ),
            (Some("slow"), None, None, none, "Pending", "not there yet"),
            (Some("slow"), Some("slow"), None, has, "None", "deleted later"),
            (Some("slow"), None, Some(&slow), none, "Set", "new"),
            (Some("slow"), Some("fast"), Some(&slow), none, "Set", "another"),
            (
                Some("slow"),
                Some("slow"),
                Some(&slow),
                none,
                "Set",
                "half of an attempt",
            ),
            (
                Some("slow"),
                Some("slow"),
                Some(&slow),
                has,
                "None",
                "as it should be",
            ),
            (
                Some("ebs"),
                None,
                Some(&other),
                none,
                "Infeasible",
                "another driver's",
            ),
        ] {
            let observed = Observed {
                wanted,
                current,
                class,
                limits,
            };
            let step = format!("{:?}", decide(&observed));
            assert!(step.starts_with(expected), "{reason}: {step}");
        }
        let text = serde_json::to_string(&has).unwrap();
        assert_eq!(read(Some(&text)), has);
        assert_eq!(read(Some("damaged")), none);
    }
}
