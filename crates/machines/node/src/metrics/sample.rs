//! Figures of one running machine: QEMU knows its disks and processors, the host what it costs, the guest how it uses its memory and its network.

use std::time::Duration;

use fairway_controller::ObjectKey;
use fairway_machines_qemu::Machine;
use fairway_machines_qemu::agent::{Filesystem, Traffic};
use serde_json::{Value, json};

use super::moving::Moving;
use super::text::{Page, label};
use super::{filesystems, waiting};
use crate::registry::Reached;

/// How long the agent may take; without it there are figures, too.
const AGENT: Duration = Duration::from_secs(1);
/// How often a guest says how it uses its memory while somebody wants to know.
const MEMORY_EVERY: Duration = Duration::from_secs(5);
/// The guest's memory device, as the plan names it.
const BALLOON: &str = "/machine/peripheral/balloon0";
/// The beginning of the names of disks' devices, as the plan has it.
const DISK: &str = "ua-";

/// Time on processors, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Time {
    pub(super) user: f64,
    pub(super) system: f64,
}

/// One of the guest's processors.
#[derive(Debug, PartialEq)]
struct Processor {
    id: u64,
    time: Time,
    /// Seconds that it waited for one of the host's.
    delay: Option<f64>,
    /// Seconds that it waited at all, where the host's kernel counts that.
    wait: Option<f64>,
}

/// What is known of a machine at one moment.
#[derive(Debug, Default)]
pub(super) struct Sample {
    time: Option<Time>,
    processors: Vec<Processor>,
    resident: Option<u64>,
    domain: Option<u64>,
    balloon: Option<u64>,
    /// What the guest says of its memory, by QEMU's words.
    guest: Value,
    disks: Vec<Value>,
    /// By the hardware address of the card.
    traffic: Vec<Traffic>,
    filesystems: Vec<Filesystem>,
    migration: Option<Moving>,
}

/// Asks a machine; nothing if it does not answer.
pub(super) async fn take(reached: &Reached) -> Option<Sample> {
    let machine = &reached.machine;
    let ask = async |command: &str, arguments: Value| machine.qmp().execute(command, arguments).await.ok();
    let disks = ask("query-blockstats", Value::Null).await?;
    let processors = ask("query-cpus-fast", Value::Null).await.unwrap_or_default();
    let size = ask("query-memory-size-summary", Value::Null).await;
    let balloon = ask("query-balloon", Value::Null).await;
    follow_memory(machine, MEMORY_EVERY).await;
    let guest = json!({"path": BALLOON, "property": "guest-stats"});
    let guest = ask("qom-get", guest).await.unwrap_or_default();
    let traffic = traffic(reached).await;
    let filesystems = filesystems::take(reached, traffic.is_some()).await;
    let pid = machine.pid();
    let size =
        size.map(|it| it["base-memory"].as_u64().unwrap_or(0) + it["plugged-memory"].as_u64().unwrap_or(0));
    Some(Sample {
        time: read(&format!("/proc/{pid}/stat")).and_then(|it| time(&it)),
        processors: processors
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| processor(pid, it))
            .collect(),
        resident: read(&format!("/proc/{pid}/status")).and_then(|it| resident(&it)),
        domain: size,
        balloon: balloon.and_then(|it| it["actual"].as_u64()),
        guest: guest["stats"].clone(),
        disks: disks.as_array().cloned().unwrap_or_default(),
        filesystems,
        traffic: traffic.unwrap_or_default(),
        migration: Moving::take(machine, size.unwrap_or_default()).await,
    })
}

/// What the guest says of its cards. One whose agent was never there is not waited for.
pub(super) async fn traffic(reached: &Reached) -> Option<Vec<Traffic>> {
    if !reached.has_agent() {
        return None;
    }
    let said = tokio::time::timeout(AGENT, reached.agent.traffic()).await;
    said.ok()?.ok()
}

/// Lets a guest say how it uses its memory so often, or no more.
pub(super) async fn follow_memory(machine: &Machine, every: Duration) {
    let arguments =
        json!({"path": BALLOON, "property": "guest-stats-polling-interval", "value": every.as_secs()});
    let _ = machine.qmp().execute("qom-set", arguments).await;
}

pub(super) fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are told as floating point, as Prometheus keeps them"
)]
fn seconds(count: u64, per_second: f64) -> f64 {
    count as f64 / per_second
}

/// The times of a process or thread, out of the host's line about it.
pub(super) fn time(stat: &str) -> Option<Time> {
    // The name in parentheses may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    // The kernel tells hundredths of a second, whatever it counts in.
    let mut next = || Some(seconds(fields.next()?.parse().ok()?, 100.0));
    Some(Time {
        user: next()?,
        system: next()?,
    })
}

/// Bytes that a process has in memory.
pub(super) fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

fn processor(pid: u32, said: &Value) -> Option<Processor> {
    let thread = said["thread-id"].as_u64()?;
    let place = format!("/proc/{pid}/task/{thread}");
    let delay = read(&format!("{place}/schedstat"));
    let delay = delay.and_then(|it| it.split_whitespace().nth(1)?.parse().ok());
    Some(Processor {
        id: said["cpu-index"].as_u64()?,
        time: time(&read(&format!("{place}/stat"))?)?,
        delay: delay.map(|it| seconds(it, 1e9)),
        wait: read(&format!("{place}/sched")).and_then(|it| waiting::seconds(&it)),
    })
}

/// What a guest says of its memory: QEMU's word, our name, whether it only grows, and what it is.
const MEMORY: [(&str, &str, bool, &str); 8] = [
    (
        "stat-total-memory",
        "kubevirt_vmi_memory_available_bytes",
        false,
        "Amount of usable memory as seen by the domain.",
    ),
    (
        "stat-free-memory",
        "kubevirt_vmi_memory_unused_bytes",
        false,
        "The amount of memory left completely unused by the system.",
    ),
    (
        "stat-available-memory",
        "kubevirt_vmi_memory_usable_bytes",
        false,
        "The amount of memory which can be reclaimed by balloon without pushing the guest system to swap.",
    ),
    (
        "stat-disk-caches",
        "kubevirt_vmi_memory_cached_bytes",
        false,
        "The amount of memory that is being used to cache I/O and is available to be reclaimed.",
    ),
    (
        "stat-swap-in",
        "kubevirt_vmi_memory_swap_in_traffic_bytes",
        false,
        "The total amount of data read from swap space of the guest in bytes.",
    ),
    (
        "stat-swap-out",
        "kubevirt_vmi_memory_swap_out_traffic_bytes",
        false,
        "The total amount of memory written out to swap space of the guest in bytes.",
    ),
    (
        "stat-major-faults",
        "kubevirt_vmi_memory_pgmajfault_total",
        true,
        "The number of page faults when disk IO was required.",
    ),
    (
        "stat-minor-faults",
        "kubevirt_vmi_memory_pgminfault_total",
        true,
        "The number of other page faults, when disk IO was not required.",
    ),
];

/// Figures of disks: QEMU's word, our name, what it is, and how many make one of ours.
const DISKS: [(&str, &str, &str, f64); 8] = [
    (
        "rd_operations",
        "kubevirt_vmi_storage_iops_read_total",
        "Total number of I/O read operations.",
        1.0,
    ),
    (
        "wr_operations",
        "kubevirt_vmi_storage_iops_write_total",
        "Total number of I/O write operations.",
        1.0,
    ),
    (
        "rd_bytes",
        "kubevirt_vmi_storage_read_traffic_bytes_total",
        "Total number of bytes read from storage.",
        1.0,
    ),
    (
        "wr_bytes",
        "kubevirt_vmi_storage_write_traffic_bytes_total",
        "Total number of written bytes.",
        1.0,
    ),
    (
        "rd_total_time_ns",
        "kubevirt_vmi_storage_read_times_seconds_total",
        "Total time spent on read operations.",
        1e9,
    ),
    (
        "wr_total_time_ns",
        "kubevirt_vmi_storage_write_times_seconds_total",
        "Total time spent on write operations.",
        1e9,
    ),
    (
        "flush_operations",
        "kubevirt_vmi_storage_flush_requests_total",
        "Total storage flush requests.",
        1.0,
    ),
    (
        "flush_total_time_ns",
        "kubevirt_vmi_storage_flush_times_seconds_total",
        "Total time spent on cache flushing.",
        1e9,
    ),
];

impl Sample {
    /// Adds the figures of a machine.
    pub(super) fn add(&self, node: &str, key: &ObjectKey, object: Option<&Value>, page: &mut Page) {
        let workspace = if key.workspace.is_root() {
            ""
        } else {
            key.workspace.as_str()
        };
        let own = object.and_then(|it| it["metadata"]["labels"].as_object());
        let own: Vec<(String, &str)> = own
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((label(name), value.as_str()?)))
            .collect();
        let mut labels = vec![
            ("node", node),
            ("workspace", workspace),
            ("namespace", key.namespace.as_str()),
            ("name", key.name.as_str()),
        ];
        let short = labels.clone();
        labels.extend(own.iter().map(|(name, value)| (name.as_str(), *value)));
        self.add_processors(&labels, page);
        self.add_memory(&labels, &short, page);
        self.add_disks(&labels, page);
        self.add_cards(&labels, object, page);
        filesystems::add(&self.filesystems, &labels, page);
        if let Some(moving) = &self.migration {
            moving.add(&labels, page);
        }
    }

    fn add_processors(&self, labels: &[(&str, &str)], page: &mut Page) {
        if let Some(time) = self.time {
            let all = time.user + time.system;
            for (name, help, value) in [
                (
                    "kubevirt_vmi_cpu_usage_seconds_total",
                    "Total CPU time spent in all modes (sum of both vcpu and hypervisor usage).",
                    all,
                ),
                (
                    "kubevirt_vmi_cpu_user_usage_seconds_total",
                    "Total CPU time spent in user mode.",
                    time.user,
                ),
                (
                    "kubevirt_vmi_cpu_system_usage_seconds_total",
                    "Total CPU time spent in system mode.",
                    time.system,
                ),
            ] {
                page.counter(name, help).put(labels, value);
            }
        }
        for processor in &self.processors {
            let id = processor.id.to_string();
            let with = |more: &[(&'static str, &'static str)]| {
                let mut all: Vec<(&str, &str)> = labels.to_vec();
                all.push(("id", id.as_str()));
                all.extend(more.iter().copied());
                all
            };
            let time = processor.time.user + processor.time.system;
            page.counter(
                "kubevirt_vmi_vcpu_seconds_total",
                "Total amount of time spent in each state by each vcpu (cpu_time excluding hypervisor time).",
            )
            .put(&with(&[("state", "running")]), time);
            for (name, help, value) in [
                (
                    "kubevirt_vmi_vcpu_delay_seconds_total",
                    "Amount of time spent by each vcpu waiting in the queue instead of running.",
                    processor.delay,
                ),
                (
                    "kubevirt_vmi_vcpu_wait_seconds_total",
                    "Amount of time spent by each vcpu while waiting on I/O.",
                    processor.wait,
                ),
            ] {
                if let Some(value) = value {
                    page.counter(name, help).put(&with(&[]), value);
                }
            }
        }
    }

    fn add_memory(&self, labels: &[(&str, &str)], short: &[(&str, &str)], page: &mut Page) {
        for (name, help, value) in [
            (
                "kubevirt_vmi_memory_resident_bytes",
                "Resident set size of the process running the domain.",
                self.resident,
            ),
            (
                "kubevirt_vmi_memory_domain_bytes",
                "The amount of memory in bytes allocated to the domain.",
                self.domain,
            ),
            (
                "kubevirt_vmi_memory_actual_balloon_bytes",
                "Current balloon size in bytes.",
                self.balloon,
            ),
        ] {
            if let Some(value) = value {
                page.gauge(name, help).put(labels, value);
            }
        }
        // What the guest has not said is all ones.
        let said = |word: &str| self.guest[word].as_u64().filter(|it| *it != u64::MAX);
        for (word, name, grows, help) in MEMORY {
            let Some(value) = said(word) else { continue };
            let family = if grows {
                page.counter(name, help)
            } else {
                page.gauge(name, help)
            };
            family.put(labels, value);
        }
        if let (Some(total), Some(free)) = (said("stat-total-memory"), said("stat-free-memory")) {
            page.gauge(
                "kubevirt_vmi_memory_used_bytes",
                "Amount of `used` memory as seen by the domain.",
            )
            .put(labels, total.saturating_sub(free));
        }
        // Without the guest's word it is what the host gives for it.
        let total = said("stat-total-memory").or(self.domain);
        let used = match (said("stat-total-memory"), said("stat-available-memory")) {
            (Some(total), Some(available)) => Some(total.saturating_sub(available)),
            _ => self.resident.map(|it| it.min(total.unwrap_or(it))),
        };
        if let (Some(total), Some(used)) = (total, used) {
            page.gauge(
                "kubevirt_vm_memory_usage_bytes",
                "Bytes of memory that the guest needs.",
            )
            .put(short, used);
            page.gauge(
                "kubevirt_vm_memory_available_bytes",
                "Bytes of memory that the guest has.",
            )
            .put(short, total);
        }
    }

    fn add_disks(&self, labels: &[(&str, &str)], page: &mut Page) {
        for disk in &self.disks {
            let Some(name) = disk_name(disk["qdev"].as_str().unwrap_or_default()) else {
                continue;
            };
            let mut labels = labels.to_vec();
            labels.push(("drive", name));
            for (word, family, help, per) in DISKS {
                if let Some(value) = disk["stats"][word].as_u64() {
                    page.counter(family, help).put(&labels, seconds(value, per));
                }
            }
        }
    }

    fn add_cards(&self, labels: &[(&str, &str)], object: Option<&Value>, page: &mut Page) {
        let cards = object.and_then(|it| it["status"]["interfaces"].as_array());
        for card in cards.into_iter().flatten() {
            let (Some(name), Some(mac)) = (card["name"].as_str(), card["mac"].as_str()) else {
                continue;
            };
            let Some(traffic) = self.traffic.iter().find(|it| it.mac.eq_ignore_ascii_case(mac)) else {
                continue;
            };
            let mut labels = labels.to_vec();
            labels.push(("interface", name));
            for (family, help, value) in [
                (
                    "kubevirt_vmi_network_receive_bytes_total",
                    "Total network traffic received in bytes.",
                    traffic.received.bytes,
                ),
                (
                    "kubevirt_vmi_network_receive_packets_total",
                    "Total network traffic received packets.",
                    traffic.received.packets,
                ),
                (
                    "kubevirt_vmi_network_receive_errors_total",
                    "Total network received error packets.",
                    traffic.received.errors,
                ),
                (
                    "kubevirt_vmi_network_receive_packets_dropped_total",
                    "The total number of rx packets dropped on vNIC interfaces.",
                    traffic.received.dropped,
                ),
                (
                    "kubevirt_vmi_network_transmit_bytes_total",
                    "Total network traffic transmitted in bytes.",
                    traffic.sent.bytes,
                ),
                (
                    "kubevirt_vmi_network_transmit_packets_total",
                    "Total network traffic transmitted packets.",
                    traffic.sent.packets,
                ),
                (
                    "kubevirt_vmi_network_transmit_errors_total",
                    "Total network transmitted error packets.",
                    traffic.sent.errors,
                ),
                (
                    "kubevirt_vmi_network_transmit_packets_dropped_total",
                    "The total number of tx packets dropped on vNIC interfaces.",
                    traffic.sent.dropped,
                ),
            ] {
                page.counter(family, help).put(&labels, value);
            }
            // Upstream's older name for two of these.
            for (way, bytes) in [("rx", traffic.received.bytes), ("tx", traffic.sent.bytes)] {
                let mut labels = labels.clone();
                labels.push(("type", way));
                page.counter(
                    "kubevirt_vmi_network_traffic_bytes_total",
                    "Total number of bytes sent and received.",
                )
                .put(&labels, bytes);
            }
        }
    }
}

/// The disk whose device this is: `ua-root`, or a path that ends in it.
pub(super) fn disk_name(device: &str) -> Option<&str> {
    let mut parts = device.split('/');
    parts.find_map(|it| it.strip_prefix(DISK))
}

#[cfg(test)]
mod tests {
    use fairway_controller::WorkspaceId;
    use fairway_machines_qemu::agent::Count;

    use super::*;

    #[test]
    fn lines_of_the_host_are_read() {
        let stat = "7 (qemu (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 150 0 0 20 0 3 0 9 0 0";
        assert_eq!(
            time(stat),
            Some(Time {
                user: 2.5,
                system: 1.5
            })
        );
        assert_eq!(time("7 (x) S 1"), None);
        assert_eq!(resident("Name:\tqemu\nVmRSS:\t    12 kB\n"), Some(12 << 10));
        assert_eq!(resident("Name:\tqemu\n"), None);
        for (device, expected) in [
            ("/machine/peripheral/ua-root/virtio-backend", Some("root")),
            ("ua-data", Some("data")),
            ("/machine/unattached/device[3]", None),
        ] {
            assert_eq!(disk_name(device), expected, "{device}");
        }
    }

    #[test]
    fn figures_have_their_names_and_labels() {
        let count = |bytes| Count {
            bytes,
            packets: 1,
            errors: 0,
            dropped: 0,
        };
        let sample = Sample {
            time: Some(Time {
                user: 2.0,
                system: 1.0,
            }),
            processors: vec![Processor {
                id: 0,
                time: Time {
                    user: 1.0,
                    system: 0.5,
                },
                delay: Some(0.25),
                wait: Some(2.5),
            }],
            resident: Some(10),
            domain: Some(100),
            balloon: None,
            guest: json!({"stat-total-memory": 90, "stat-available-memory": 60, "stat-free-memory": 50, "stat-swap-in": u64::MAX}),
            disks: vec![
                json!({"qdev": "/machine/peripheral/ua-root/x", "stats": {"rd_bytes": 7, "rd_total_time_ns": 2_000_000_000_u64}}),
            ],
            traffic: vec![Traffic {
                mac: "AA:bb".to_owned(),
                received: count(5),
                sent: count(6),
            }],
            filesystems: Vec::new(),
            migration: None,
        };
        let object = json!({
            "metadata": {"labels": {"app/x": "web"}}, "status": {"interfaces": [{"name": "default", "mac": "aa:BB"}]},
        });
        let key = ObjectKey::new(&WorkspaceId::root(), "shop", "web");
        let mut page = Page::default();
        sample.add("n1", &key, Some(&object), &mut page);
        let written = page.write();
        let labels = "node=\"n1\",namespace=\"shop\",name=\"web\"";
        let more = format!("{labels},kubernetes_vmi_label_app_x=\"web\"");
        for line in [
            format!("kubevirt_vmi_cpu_usage_seconds_total{{{more}}} 3"),
            format!("kubevirt_vmi_vcpu_seconds_total{{{more},id=\"0\",state=\"running\"}} 1.5"),
            format!("kubevirt_vmi_vcpu_delay_seconds_total{{{more},id=\"0\"}} 0.25"),
            format!("kubevirt_vmi_vcpu_wait_seconds_total{{{more},id=\"0\"}} 2.5"),
            format!("kubevirt_vmi_memory_resident_bytes{{{more}}} 10"),
            format!("kubevirt_vmi_memory_used_bytes{{{more}}} 40"),
            format!("kubevirt_vm_memory_usage_bytes{{{labels}}} 30"),
            format!("kubevirt_vm_memory_available_bytes{{{labels}}} 90"),
            format!("kubevirt_vmi_storage_read_traffic_bytes_total{{{more},drive=\"root\"}} 7"),
            format!("kubevirt_vmi_storage_read_times_seconds_total{{{more},drive=\"root\"}} 2"),
            format!("kubevirt_vmi_network_receive_bytes_total{{{more},interface=\"default\"}} 5"),
            format!("kubevirt_vmi_network_transmit_bytes_total{{{more},interface=\"default\"}} 6"),
            format!("kubevirt_vmi_network_traffic_bytes_total{{{more},interface=\"default\",type=\"tx\"}} 6"),
        ] {
            assert!(written.lines().any(|it| it == line), "{line}\n{written}");
        }
        assert!(
            !written.contains("swap_in"),
            "what the guest has not said is not told"
        );
    }
}
