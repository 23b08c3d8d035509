//! One boot by Fairway, from the request that creates the machine to a login.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::guest::Guest;
use super::{Bench, objects};
use crate::client::Call;
use crate::process;

/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// What one boot took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boot {
    /// Until there was a process of QEMU.
    pub(crate) started: Duration,
    /// Until the login.
    pub(crate) login: Duration,
    /// CPU time of QEMU until then.
    pub(crate) qemu: Duration,
    /// CPU time of everything else that took part.
    pub(crate) others: Duration,
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} ms until QEMU, {:.2} s until login, CPU {:.2} s and {:.3} s",
            self.started.as_secs_f64() * 1e3,
            self.login.as_secs_f64(),
            self.qemu.as_secs_f64(),
            self.others.as_secs_f64()
        )
    }
}

/// The machine's process as Fairway started it: what to do by hand.
pub(crate) struct Template {
    pub(super) guest: Guest,
    /// Program and arguments.
    pub(super) line: Vec<String>,
    /// A copy of the files in the directory that it ran in.
    pub(super) directory: PathBuf,
    /// The layer over the image, as the arguments name it.
    pub(super) disk: String,
}

/// Ports of the host that lead to a machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    pub(super) ssh: u16,
    pub(super) iperf: u16,
}

/// Boots a machine, and ends it. The process is described for those who want to start another.
pub(super) async fn run(bench: &Bench, guest: Guest, port: u16) -> Result<(Boot, Template)> {
    let before = bench.server.cpu()?;
    let began = Instant::now();
    let since_boot = uptime()?;
    bench
        .create(
            objects::MACHINES,
            &objects::booting(guest.image, &guest, &bench.key.public),
        )
        .await?;
    let (pid, directory) = process_of(bench, guest.image, began).await?;
    let started = started_at(pid)?.saturating_sub(since_boot);
    bench.key.login(port).await?;
    let boot = Boot {
        started,
        login: began.elapsed(),
        qemu: process::cpu_time(pid)?,
        others: bench.server.cpu()?.saturating_sub(before) + beside(&directory, pid),
    };
    let template = template(&bench.scratch, guest, pid, &directory)?;
    bench.clear().await?;
    Ok((boot, template))
}

impl Bench {
    pub(super) async fn delete(&self, path: &str) -> Result<()> {
        let reply = self.client.send(Call::delete(path)).await?;
        if reply.status != http::StatusCode::NOT_FOUND {
            reply.success()?;
        }
        Ok(())
    }

    /// Deletes every machine, and waits until nothing of one is left.
    pub(super) async fn clear(&self) -> Result<()> {
        self.delete(objects::MACHINES).await?;
        let began = Instant::now();
        loop {
            let list = self.get(objects::MACHINES).await?.unwrap_or_default();
            let is_left = list["items"].as_array().is_some_and(|items| !items.is_empty());
            if !is_left && self.running().is_empty() {
                break;
            }
            if began.elapsed() > PATIENCE {
                bail!("machines are left after {PATIENCE:?}: {:?}", self.running());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // What is left to do for them, such as removing disks, is not the next one's.
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    /// Ports of the host that lead to a machine: those of a Service, which is made if there is none.
    pub(super) async fn ports(&self, machine: &str) -> Result<Ports> {
        let path = format!("{}/{machine}", objects::SERVICES);
        if self.get(&path).await?.is_none() {
            self.create(objects::SERVICES, &objects::service(machine)).await?;
        }
        let service = self.get(&path).await?.context("the Service is gone")?;
        let port = |at: usize| {
            let port = service["spec"]["ports"][at]["nodePort"].as_u64();
            port.and_then(|port| u16::try_from(port).ok())
                .context("the Service has no port of the host")
        };
        Ok(Ports {
            ssh: port(0)?,
            iperf: port(1)?,
        })
    }

    /// Processes of QEMU in the directories of machines, with these directories.
    pub(super) fn running(&self) -> Vec<(u32, PathBuf)> {
        let nodes = [Some(&self.data), self.second.as_ref()];
        nodes
            .into_iter()
            .flatten()
            .flat_map(|data| running(data))
            .collect()
    }
}

/// Processes of QEMU in the directories of the machines of one data directory, with these directories.
pub(crate) fn running(data: &Path) -> Vec<(u32, PathBuf)> {
    let machines = std::fs::read_dir(data.join("machines/run"));
    let machines = machines.into_iter().flatten().flatten();
    let found = machines.map(|entry| entry.path()).filter_map(|directory| {
        let text = std::fs::read_to_string(directory.join("qemu.pid")).ok()?;
        let pid = text.trim().parse().ok()?;
        Path::new(&format!("/proc/{pid}"))
            .exists()
            .then_some((pid, directory))
    });
    found.collect()
}

async fn process_of(bench: &Bench, machine: &str, began: Instant) -> Result<(u32, PathBuf)> {
    loop {
        if let Some(found) = bench.running().pop() {
            return Ok(found);
        }
        if began.elapsed() > PATIENCE {
            let path = format!("{}/{machine}", objects::MACHINES);
            let machine = bench.get(&path).await?.unwrap_or_default();
            bail!("no QEMU was started within {PATIENCE:?}: {}", machine["status"]);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Since the computer was started.
pub(crate) fn uptime() -> Result<Duration> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME)?;
    Ok(Duration::from(now))
}

/// When a process was started, since the computer was; in hundredths of a second.
pub(crate) fn started_at(pid: u32) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = text
        .rsplit_once(')')
        .context("/proc/PID/stat is of another form")?;
    let ticks: u64 = fields
        .split_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .context("/proc/PID/stat is of another form")?;
    Ok(Duration::from_millis(ticks * 10))
}

/// CPU time of processes that work in a machine's directory beside its QEMU.
fn beside(directory: &Path, qemu: u32) -> Duration {
    others(directory, qemu)
        .into_iter()
        .filter_map(|pid| process::cpu_time(pid).ok())
        .sum()
}

/// Processes that work in a machine's directory beside its QEMU.
pub(crate) fn others(directory: &Path, qemu: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != qemu)
        .filter(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place| place == directory))
        .collect()
}

/// Describes a machine that runs, with copies of its files in `scratch`.
pub(crate) fn template(scratch: &Path, guest: Guest, pid: u32, directory: &Path) -> Result<Template> {
    let text = std::fs::read(format!("/proc/{pid}/cmdline")).context("the machine has ended")?;
    let line: Vec<String> = text
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let copy = scratch.join(format!("template-{}", guest.image));
    let _ = std::fs::remove_dir_all(&copy);
    std::fs::create_dir_all(&copy)?;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), copy.join(entry.file_name()))?;
        }
    }
    let disk = line
        .iter()
        .find_map(|word| disk_in(word))
        .context("the machine's arguments name no disk")?;
    Ok(Template {
        guest,
        line,
        directory: copy,
        disk,
    })
}

/// The file of a volume that an argument names, by its way from the machine's directory.
fn disk_in(word: &str) -> Option<String> {
    let volumes = word.find("/volumes/")?;
    let begin = word[..volumes].rfind(['=', '"']).map_or(0, |at| at + 1);
    let end = word[volumes..]
        .find([',', '"'])
        .map_or(word.len(), |at| volumes + at);
    Some(word[begin..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_found_in_both_forms() {
        let disk = "../../volumes/root/pvc-1/disk.qcow2";
        for word in [
            format!("driver=file,filename={disk},node-name=f0"),
            format!("driver=file,node-name=f0,filename={disk}"),
            format!(r#"{{"driver":"file","filename":"{disk}","node-name":"f0"}}"#),
        ] {
            assert_eq!(disk_in(&word).as_deref(), Some(disk), "{word}");
        }
        assert_eq!(disk_in("driver=file,filename=seed.iso"), None);
    }
}
