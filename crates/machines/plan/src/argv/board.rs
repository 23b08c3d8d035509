//! Who the machine is, its board, processors, memory and firmware.

use jiff::{SignedDuration, tz::TimeZone};
use serde_json::json;

use super::{Accelerator, Arguments, ArgvError, Host, escaped};
use crate::machine::{CpuModel, Loader, MachinePlan};

/// Memory that emulation may use for code it has translated. Without a limit it grows to a gigabyte.
const TRANSLATED_CODE: &str = "tb-size=128";

pub(super) fn identity(plan: &MachinePlan, arguments: &mut Arguments) {
    let name = escaped(&format!("{}_{}", plan.namespace, plan.name));
    arguments.option("name", format!("guest={name},debug-threads=on"));
    arguments.option("uuid", plan.uuid.clone());
    // Guests know the platform by these: systemd, cloud-init and drivers look for them.
    let mut system = format!(
        "type=1,manufacturer=KubeVirt,product=None,uuid={},family=KubeVirt",
        plan.uuid
    );
    if !plan.smbios.serial.is_empty() {
        system += &format!(",serial={}", escaped(&plan.smbios.serial));
    }
    arguments.option("smbios", system);
    if !plan.smbios.chassis.is_empty() {
        let parts: Vec<String> = plan
            .smbios
            .chassis
            .iter()
            .map(|(name, value)| format!(",{name}={}", escaped(value)))
            .collect();
        arguments.option("smbios", format!("type=3{}", parts.concat()));
    }
}

fn on(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

pub(super) fn machine(plan: &MachinePlan, host: &Host, arguments: &mut Arguments) -> Result<(), ArgvError> {
    let board = &plan.board;
    let mut machine = format!(
        "{},usb=off,vmport=off,dump-guest-core=off,acpi={},smm={},memory-backend=pc.ram",
        escaped(&board.machine_type),
        on(board.acpi),
        on(board.smm)
    );
    if let Some(hpet) = board.hpet {
        machine += &format!(",hpet={}", on(hpet));
    }
    match plan.firmware.loader {
        Loader::Bios { on_serial } => {
            if on_serial {
                machine += ",graphics=off";
            }
        }
        Loader::Efi { secure, .. } => {
            let files = host.firmware.as_ref().ok_or_else(|| ArgvError::NoFirmware {
                machine: format!("{}/{}", plan.namespace, plan.name),
            })?;
            for (node, file, read_only) in [
                ("pflash0", &files.code, true),
                ("pflash1", &files.variables, false),
            ] {
                let storage = format!("{node}-storage");
                let file =
                    json!({"driver": "file", "node-name": storage, "filename": file, "read-only": read_only});
                arguments.json("blockdev", &file);
                let format =
                    json!({"driver": "raw", "node-name": node, "file": storage, "read-only": read_only});
                arguments.json("blockdev", &format);
                machine += &format!(",{node}={node}");
            }
            if secure {
                // Variables can be written in system management mode only.
                arguments.option("global", "driver=cfi.pflash01,property=secure,value=on");
            }
        }
    }
    arguments.option("machine", machine);
    arguments.option("global", "ICH9-LPC.disable_s3=1");
    arguments.option("global", "ICH9-LPC.disable_s4=1");
    match host.accelerator {
        Accelerator::Kvm => arguments.option("accel", "kvm"),
        Accelerator::Tcg => arguments.option("accel", format!("tcg,thread=multi,{TRANSLATED_CODE}")),
    }
    Ok(())
}

pub(super) fn processors(plan: &MachinePlan, host: &Host, arguments: &mut Arguments) {
    let cpu = &plan.cpu;
    let mut model = match (&cpu.model, host.accelerator) {
        (CpuModel::Host, Accelerator::Kvm) => "host".to_owned(),
        (CpuModel::Host, Accelerator::Tcg) => "max".to_owned(),
        (CpuModel::Named(name), _) => escaped(name),
    };
    for property in &cpu.properties {
        model += &format!(",{}", escaped(property));
    }
    for (feature, wanted) in &cpu.features {
        model += &format!(",{}={}", escaped(feature), on(*wanted));
    }
    arguments.option("cpu", model);
    let (count, most) = (cpu.count(), cpu.max_count());
    arguments.option(
        "smp",
        format!(
            "{count},maxcpus={most},sockets={},cores={},threads={}",
            cpu.max_sockets, cpu.cores, cpu.threads
        ),
    );
}

pub(super) fn memory(plan: &MachinePlan, arguments: &mut Arguments) {
    let memory = &plan.memory;
    let mut size = format!("size={}k", memory.guest / 1024);
    if let Some(growth) = memory.growth {
        size += &format!(",maxmem={}k", growth.most / 1024);
    }
    arguments.option("m", size);
    let backend = |id: &str, size: u64| match memory.hugepages {
        Some(page) => json!({
            "qom-type": "memory-backend-memfd", "id": id, "size": size, "hugetlb": true, "hugetlbsize": page,
        }),
        None => json!({"qom-type": "memory-backend-ram", "id": id, "size": size}),
    };
    arguments.object(&backend("pc.ram", memory.guest));
    if let Some(growth) = memory.growth {
        let mut more = backend("vmem0", growth.most - memory.guest);
        // Only what is plugged in is taken from the host.
        more["reserve"] = json!(false);
        arguments.object(&more);
    }
}

pub(super) fn time(plan: &MachinePlan, host: &Host, arguments: &mut Arguments) {
    let clock = &plan.clock;
    let ahead = SignedDuration::from_secs(clock.offset_seconds);
    let base = match host.now.checked_add(ahead) {
        Ok(moment) if clock.offset_seconds != 0 => moment
            .to_zoned(TimeZone::UTC)
            .strftime("%Y-%m-%dT%H:%M:%S")
            .to_string(),
        _ => "utc".to_owned(),
    };
    let mut time = format!("base={base}");
    if clock.follows_guest {
        time += ",clock=vm";
    }
    if clock.catch_up {
        time += ",driftfix=slew";
    }
    arguments.option("rtc", time);
}

pub(super) fn boot(plan: &MachinePlan, host: &Host, arguments: &mut Arguments) -> Result<(), ArgvError> {
    arguments.option("boot", "menu=off,strict=on");
    let Some(kernel) = &plan.firmware.kernel else {
        return Ok(());
    };
    let files = host.kernel.as_ref().ok_or_else(|| ArgvError::NoKernel {
        machine: format!("{}/{}", plan.namespace, plan.name),
        image: kernel.image.image.clone(),
    })?;
    if let Some(file) = &files.kernel {
        arguments.option("kernel", file.clone());
    }
    if let Some(file) = &files.initrd {
        arguments.option("initrd", file.clone());
    }
    if !kernel.arguments.is_empty() {
        arguments.option("append", kernel.arguments.clone());
    }
    Ok(())
}
