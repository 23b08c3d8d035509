//! When, on what, and of which commit a report tells: without these its figures mean nothing next month.

use std::process::Command;

pub(crate) struct Circumstances {
    rounds: usize,
    scale: f64,
    date: String,
    commit: String,
    cpu: String,
    cores: usize,
    memory_gib: u64,
    kernel: String,
    load: String,
}

impl Circumstances {
    pub(crate) fn gather(rounds: usize, scale: f64) -> Self {
        let line_of = |path: &str, prefix: &str| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let found = text.lines().find_map(|line| line.strip_prefix(prefix));
            found
                .unwrap_or_default()
                .trim_start_matches([':', ' ', '\t'])
                .to_owned()
        };
        let kibibytes = line_of("/proc/meminfo", "MemTotal");
        let memory: u64 = kibibytes
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            rounds,
            scale,
            date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
            commit: commit(),
            cpu: line_of("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_gib: memory >> 20,
            kernel: line_of("/proc/sys/kernel/osrelease", ""),
            load: load.split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }

    pub(super) fn heading(&self) -> String {
        format!(
            "# Fairway beside etcd and kube-apiserver\n\n{} Medians of {} rounds, sizes times {}; every round on empty \
             data directories, servers in turns; fsync on.\n",
            self.machine(),
            self.rounds,
            self.scale
        )
    }

    /// The heading of a scale run.
    pub(crate) fn scale_heading(&self) -> String {
        format!(
            "# How cost grows with size: Fairway beside etcd and kube-apiserver\n\n{} One run, each server on an empty data \
             directory; fsync on.\n",
            self.machine()
        )
    }

    /// The heading of a run of the renderers.
    pub(crate) fn renderers_heading(&self) -> String {
        format!(
            "# Fairway's renderers beside the originals\n\n{} Medians of {} rounds; CPU time, user and system, per build.\n",
            self.machine(),
            self.rounds
        )
    }

    /// The heading of a run with workspaces.
    pub(crate) fn workspaces_heading(&self, count: usize) -> String {
        format!(
            "# What a workspace costs among {count}\n\n{} One run; fsync on.\n",
            self.machine()
        )
    }

    /// The heading of a run that renders a repository again and again.
    pub(crate) fn rerender_heading(&self) -> String {
        format!(
            "# Rendering a repository again after a commit\n\n{} Medians of {} rounds; CPU time, user and system.\n",
            self.machine(),
            self.rounds
        )
    }

    /// The heading of the data plane of gateways.
    pub(crate) fn gateway_heading(&self, connections: usize) -> String {
        format!(
            "# The data plane of gateways beside nginx and HAProxy\n\n{} Medians of {} rounds, proxies in turns; plain HTTP/1.1 \
             over {connections} connections that are kept, 52 bytes from an nginx, load by wrk on the same machine.\n",
            self.machine(),
            self.rounds
        )
    }

    /// The heading of a run of the userspace switch.
    pub(crate) fn switch_heading(&self) -> String {
        format!(
            "# The userspace switch beside a bare copy\n\n{} Medians of {} rounds.\n",
            self.machine(),
            self.rounds
        )
    }

    /// The heading of a run with machines.
    pub(crate) fn machines_heading(&self) -> String {
        format!(
            "# Machines: what Fairway adds to QEMU\n\n{} Medians of {} boots of each side, in turns.\n",
            self.machine(),
            self.rounds
        )
    }

    /// The heading of a run of the golden path.
    pub(crate) fn golden_path_heading(&self) -> String {
        format!(
            "# The golden path: a form, the catalog, sign-in and the platform at rest\n\n{} Medians of {}; fsync on.\n",
            self.machine(),
            self.rounds
        )
    }

    /// The heading of a GitOps run.
    pub(crate) fn gitops_heading(&self) -> String {
        format!(
            "# GitOps: Fairway beside Argo CD\n\n{} One run, each side on an empty data directory; fsync on.\n",
            self.machine()
        )
    }

    fn machine(&self) -> String {
        format!(
            "{}, commit {}. {} cores of {}, {} GiB, Linux {}; load average at the end {}.",
            self.date, self.commit, self.cores, self.cpu, self.memory_gib, self.kernel, self.load
        )
    }
}

/// The commit that was measured, marked when the tree had changes.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "unknown".to_owned());
    // A report that lies in the tree already is not a change of what was measured.
    let changed =
        git(&["status", "--porcelain", "--", ":!bench/results"]).is_some_and(|status| !status.is_empty());
    if changed {
        format!("{commit}-changed")
    } else {
        commit
    }
}
