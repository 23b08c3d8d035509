//! wrk, the load: how many requests, and how long the slowest hundredth took.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::Asks;

#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) requests: u64,
    pub(super) p99: Duration,
}

/// A script by which each request has the next line of a file as its `Authorization`.
pub(super) fn each_line(directory: &Path, lines: &Path) -> Result<PathBuf> {
    let text = format!(
        "local lines = {{}}\nfor line in io.lines({:?}) do lines[#lines + 1] = line end\nlocal at = 0\nrequest = function()\n  at = at \
         % #lines + 1\n  return wrk.format(\"GET\", nil, {{[\"Authorization\"] = lines[at]}})\nend\n",
        lines.display().to_string()
    );
    let path = directory.join("lines.lua");
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

pub(super) async fn run(
    door: SocketAddr,
    path: &str,
    asks: &Asks,
    connections: usize,
    seconds: u64,
) -> Result<Load> {
    let mut command = Command::new("wrk");
    match asks {
        Asks::Plain => {}
        Asks::Header(header) => drop(command.arg("--header").arg(header)),
        Asks::Script(script) => drop(command.arg("--script").arg(script)),
    }
    let output = command
        .args(["--threads", "1", "--latency"])
        .arg(format!("--connections={connections}"))
        .arg(format!("--duration={seconds}s"))
        .arg(format!("http://{door}{path}"))
        .output()
        .await
        .context("cannot run wrk: scripts/tools.sh proxies installs it")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        bail!("requests to {door}{path} failed:\n{text}");
    }
    parse(&text).with_context(|| format!("wrk said something unexpected:\n{text}"))
}

fn parse(text: &str) -> Option<Load> {
    let requests = text.lines().find(|line| line.contains(" requests in "))?;
    let p99 = text.lines().find(|line| line.trim_start().starts_with("99%"))?;
    Some(Load {
        requests: requests.split_whitespace().next()?.parse().ok()?,
        p99: duration(p99.split_whitespace().nth(1)?)?,
    })
}

/// `812.00us`, `3.45ms`, `1.02s`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    let seconds = match &text[digits.len()..] {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" => number,
        _ => return None,
    };
    Some(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_says() {
        let text = "  Latency Distribution\n     50%    1.50ms\n     99%  812.00us\n  35000 requests in 4.00s, 7.21MB read\n";
        let load = parse(text).unwrap();
        assert_eq!((load.requests, load.p99), (35_000, Duration::from_micros(812)));
    }
}
