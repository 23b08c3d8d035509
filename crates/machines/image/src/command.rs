//! Programs that do part of the work, run to their end within a time.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::ImageError;

/// How much of what a program says about a failure is kept.
const MAX_COMPLAINT: usize = 4096;
/// How much of a program's output is read.
const MAX_OUTPUT: u64 = 64 << 20;

/// Runs a program and returns what it printed. Its environment is the caller's with a fixed language.
pub(crate) fn run(command: &mut Command, timeout: Duration) -> Result<Vec<u8>, ImageError> {
    run_accepting(command, timeout, &[0])
}

/// Like [`run`], for a program to which other codes than zero are a success, too.
pub(crate) fn run_accepting(
    command: &mut Command,
    timeout: Duration,
    codes: &[i32],
) -> Result<Vec<u8>, ImageError> {
    let program = Path::new(command.get_program())
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let failed = |why: String| ImageError::Program {
        program: program.clone(),
        why,
    };
    command
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => failed(format!(
            "it is not installed; on Debian: apt-get install {}",
            package_of(&program)
        )),
        _ => failed(error.to_string()),
    })?;
    // Both are read while the program runs: one that is not would stop it when the pipe is full.
    let output = child.stdout.take().map(|pipe| read_all(pipe, MAX_OUTPUT));
    let complaint = child.stderr.take().map(|pipe| read_all(pipe, MAX_OUTPUT));
    let status = wait(&mut child, timeout);
    let joined = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let (output, complaint) = (joined(output), joined(complaint));
    match status.map_err(|error| failed(error.to_string()))? {
        Some(status) if status.code().is_some_and(|code| codes.contains(&code)) => Ok(output),
        Some(status) => {
            let text = String::from_utf8_lossy(&complaint);
            let text = text.trim();
            let start = text.len().saturating_sub(MAX_COMPLAINT);
            let start = (start..text.len())
                .find(|at| text.is_char_boundary(*at))
                .unwrap_or(0);
            Err(failed(match &text[start..] {
                "" => status.to_string(),
                text => text.to_owned(),
            }))
        }
        None => Err(failed(format!("it did not end within {} s", timeout.as_secs()))),
    }
}

fn read_all(mut pipe: impl std::io::Read + Send + 'static, limit: u64) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut out = Vec::new();
        let _ = pipe.by_ref().take(limit).read_to_end(&mut out);
        // What is beyond is thrown away, so that the program can end.
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        out
    })
}

/// Waits for the end; after the time the program is killed, and there is no status.
fn wait(child: &mut Child, timeout: Duration) -> std::io::Result<Option<std::process::ExitStatus>> {
    let end = Instant::now() + timeout;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn package_of(program: &str) -> &str {
    match program {
        "qemu-img" => "qemu-utils",
        "apt-get" | "apt-cache" => "apt",
        "dpkg-deb" => "dpkg",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, seconds: u64) -> Result<Vec<u8>, ImageError> {
        run(
            Command::new("sh").args(["-c", script]),
            Duration::from_secs(seconds),
        )
    }

    #[test]
    fn a_program_says_why() {
        assert_eq!(shell("echo yes", 10).unwrap(), b"yes\n");
        let said = shell("echo no disk >&2; exit 3", 10).unwrap_err().to_string();
        assert_eq!(said, "sh failed: no disk");
        let late = shell("sleep 60", 0).unwrap_err().to_string();
        assert!(late.contains("did not end"), "{late}");
        let missing = run(
            &mut Command::new("fairway-no-such-program"),
            Duration::from_secs(1),
        );
        assert!(missing.unwrap_err().to_string().contains("not installed"));
    }
}
