//! What the tests share: the image, a machine's arguments, patience.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use fairway_machines_image::{Cache, Image, ImageError, build, overlay};
use fairway_machines_qemu::console::Reader;
use fairway_machines_qemu::names;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(240);
pub(crate) const QEMU: &str = "qemu-system-x86_64";

/// Two guests at a time would take each other's processor.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The image and the turn, or nothing with the reason said.
pub(crate) struct Bench {
    pub(crate) cache: Cache,
    pub(crate) image: Image,
    pub(crate) directory: tempfile::TempDir,
    _turn: tokio::sync::MutexGuard<'static, ()>,
}

pub(crate) fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

pub(crate) async fn bench(test: &str) -> Option<Bench> {
    for program in [QEMU, "qemu-img", "genisoimage", "apt-get"] {
        if !has(program) {
            fairway_machines_required::skipped(format_args!(
                "{test}: {program} is not installed (scripts/tools.sh qemu)"
            ));
            return None;
        }
    }
    let turn = TURN.lock().await;
    // Built once for every version of the packages and of the guest's scripts.
    let cache = Cache::open(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("images")).unwrap();
    static BUILT: OnceLock<Result<Image, ImageError>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build::tiny(&cache, false, |text| eprintln!("tiny: {text}")));
    let image = match built {
        Ok(image) => image.clone(),
        // Without a network there are no packages; anything else is a fault.
        Err(ImageError::Program { program, why }) if program.starts_with("apt") => {
            fairway_machines_required::skipped(format_args!(
                "{test}: the packages of the image tiny cannot be had: {why}"
            ));
            return None;
        }
        Err(error) => panic!("the image tiny cannot be built: {error}"),
    };
    Some(Bench {
        // On the same file system as the image, as a machine's disk is linked to it.
        directory: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        cache,
        image,
        _turn: turn,
    })
}

impl Drop for Bench {
    /// Machines outlive whoever started them, also a test that failed: those that work in the test's directory are ended.
    fn drop(&mut self) {
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let works_in = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if works_in.starts_with(self.directory.path()) {
                let _ = Command::new("kill").arg("-9").arg(entry.file_name()).status();
            }
        }
    }
}

/// How a guest is started.
pub(crate) enum Boot {
    /// By its kernel.
    Direct,
    /// By its boot loader.
    Disk,
}

impl Bench {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A directory for a machine, with a disk over the image.
    pub(crate) fn machine(&self, name: &str) -> PathBuf {
        let directory = self.path(name);
        std::fs::create_dir_all(&directory).unwrap();
        overlay::over(&self.image, &directory, "root", Some(1 << 30)).unwrap();
        directory
    }

    /// Arguments of a machine with everything that tests look at. Disks are named by whole paths, as two machines share
    /// one while a guest moves.
    pub(crate) fn arguments(
        &self,
        boot: &Boot,
        disk: &Path,
        seed: Option<&Path>,
        more: &[String],
    ) -> Vec<String> {
        let mut line = words(
            "-M q35 -accel tcg,thread=multi,tb-size=128 -cpu max -smp 1,maxcpus=2 -m 256,slots=2,maxmem=1G -display none \
             -device virtio-balloon-pci,id=balloon -device virtio-serial-pci,id=ports \
             -device virtserialport,chardev=agent,name=org.qemu.guest_agent.0,id=agent-port \
             -serial chardev:serial -device pcie-root-port,id=slot1,chassis=1,port=1 \
             -device pcie-root-port,id=slot2,chassis=2,port=2",
        );
        for (id, name) in [("agent", names::AGENT), ("serial", names::SERIAL)] {
            line.push("-chardev".to_owned());
            line.push(format!("socket,id={id},path={name},server=on,wait=off"));
        }
        line.push("-blockdev".to_owned());
        line.push(format!(
            "driver=file,filename={},node-name=root-file",
            disk.display()
        ));
        line.extend(words(
            "-blockdev driver=qcow2,file=root-file,node-name=root-disk -device virtio-blk-pci,drive=root-disk,id=root",
        ));
        if let Some(seed) = seed {
            line.push("-blockdev".to_owned());
            line.push(format!(
                "driver=raw,node-name=seed,read-only=on,file.driver=file,file.filename={}",
                seed.display()
            ));
            line.extend(words("-device virtio-blk-pci,drive=seed,id=seed"));
        }
        if let Boot::Direct = boot {
            let direct = self.image.direct_boot.as_ref().unwrap();
            for (option, value) in [
                ("-kernel", self.cache.blob(&direct.kernel).display().to_string()),
                ("-initrd", self.cache.blob(&direct.initrd).display().to_string()),
                ("-append", direct.command_line.clone()),
            ] {
                line.extend([option.to_owned(), value]);
            }
        }
        line.extend(more.iter().cloned());
        line
    }

    /// A seed with these files.
    pub(crate) fn seed(&self, files: &[(&str, &str)]) -> PathBuf {
        let folder = self.path("seed");
        std::fs::create_dir_all(&folder).unwrap();
        let iso = self.path("seed.iso");
        let mut make = Command::new("genisoimage");
        make.args(["-quiet", "-volid", "cidata", "-joliet", "-rock", "-output"])
            .arg(&iso);
        for (name, content) in files {
            let path = folder.join(name);
            std::fs::write(&path, content).unwrap();
            make.arg(path);
        }
        assert!(make.status().unwrap().success());
        iso
    }
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Reads a console until it shows a text; everything up to there.
pub(crate) async fn shows(reader: &mut Reader, wanted: &str) -> String {
    let mut text = String::from_utf8_lossy(&reader.scrollback).into_owned();
    let end = Instant::now() + PATIENCE;
    while !text.contains(wanted) {
        let left = end.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left, reader.next()).await {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            _ => panic!("the console does not show {wanted:?} but:\n{text}"),
        }
    }
    text
}

/// Tries until it succeeds.
pub(crate) async fn eventually<T, E: std::fmt::Display, F: Future<Output = Result<T, E>>>(
    what: &str,
    mut attempt: impl FnMut() -> F,
) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) if Instant::now() >= end => panic!("{what}: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
