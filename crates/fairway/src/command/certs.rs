//! `fairway certs`: which certificates there are, and new ones in their place.

use std::process::ExitCode;

use anyhow::bail;
use fairway_kernel_apiserver::chance::{Clock, rfc3339};
use fairway_kernel_x509::Certificate;
use serde_json::{Value, json};

use super::running::Running;
use crate::certs::{self, Name};
use crate::cli::{Certs, CertsCommand, CertsList, CertsName, CertsRenew, CertsRotate};
use crate::data_dir::DataDir;

/// Does what was asked for.
pub(crate) fn run(options: &Certs) -> anyhow::Result<ExitCode> {
    match &options.command {
        CertsCommand::List(list) => self::list(list),
        CertsCommand::Renew(renew) => self::renew(renew),
        CertsCommand::RotateCa(rotate) => rotate_ca(rotate),
        CertsCommand::ForgetOldCa(forget) => {
            let data = existing(forget.data.dir.as_deref())?;
            let _lock = certs::lock(&data)?;
            let forgotten = certs::forget_old(&data, Clock.unix())?;
            println!("{forgotten} former certificate authorities are not trusted any more.");
            tell_running(&data)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn existing(dir: Option<&std::path::Path>) -> anyhow::Result<DataDir> {
    let data = DataDir::find(dir)?;
    if !data.pki("ca").0.exists() {
        bail!(
            "there are no certificates in {} yet; `fairway up` makes them",
            data.path().display()
        );
    }
    Ok(data)
}

fn list(options: &CertsList) -> anyhow::Result<ExitCode> {
    let data = existing(options.data.dir.as_deref())?;
    let now = Clock.unix();
    let _lock = certs::lock(&data)?;
    let mut rows = Vec::new();
    if let Some(files) = certs::existing_authority(&data)? {
        for (place, certificate) in files.trusted()?.iter().enumerate() {
            let name = if place == 0 { "ca" } else { "former-ca" };
            rows.push(row(name, certificate, None, now));
        }
    }
    for name in Name::ALL {
        if let Some(pair) = certs::read_pair(&data, name.text())? {
            let certificate = Certificate::first_from_pem(&pair.certificate)?;
            rows.push(row(
                name.text(),
                &certificate,
                Some(certs::renewal(&certificate)),
                now,
            ));
        }
    }
    let text = table(&rows);
    options.output.print(&json!({ "certificates": rows }), &text);
    Ok(ExitCode::SUCCESS)
}

fn row(name: &str, certificate: &Certificate, renews: Option<i64>, now: i64) -> Value {
    json!({
        "name": name,
        "subject": certificate.subject_text,
        "names": certificate.names,
        "issuer": certificate.issuer_text,
        "serial": certificate.serial,
        "notBefore": rfc3339(certificate.life.start),
        "expires": rfc3339(certificate.life.end),
        "renews": renews.map(rfc3339),
        "residualSeconds": certificate.life.end - now,
        "residual": left(certificate.life.end - now),
    })
}

/// A span in the largest unit that still tells something.
fn left(seconds: i64) -> String {
    match seconds {
        i64::MIN..=0 => "expired".to_owned(),
        1..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        172_800..63_072_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

fn table(rows: &[Value]) -> String {
    let head = [
        "NAME", "SUBJECT", "ISSUER", "EXPIRES", "RESIDUAL", "RENEWS", "NAMES",
    ];
    let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
        let names: Vec<&str> = row["names"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let names = if names.is_empty() {
            "-".to_owned()
        } else {
            names.join(",")
        };
        let mut line: Vec<String> = ["name", "subject", "issuer", "expires", "residual", "renews"]
            .map(text)
            .to_vec();
        line.push(names);
        lines.push(line);
    }
    let widths: Vec<usize> = (0..head.len())
        .map(|column| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0))
        .collect();
    let shown = lines.iter().map(|line| {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("   ").trim_end().to_owned()
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn renew(options: &CertsRenew) -> anyhow::Result<ExitCode> {
    let names = match (options.name, options.all) {
        (None, false) => bail!("say which certificate: serving, admin, or --all"),
        (None, true) => Name::ALL.to_vec(),
        (Some(CertsName::Serving), _) => vec![Name::Serving],
        (Some(CertsName::Admin), _) => vec![Name::Admin],
        (Some(CertsName::Ca), _) => bail!(
            "the certificate authority is not renewed but replaced, which clients notice; see `fairway certs rotate-ca \
             --help`"
        ),
    };
    let data = existing(options.data.dir.as_deref())?;
    let now = Clock.unix();
    let guard = certs::lock(&data)?;
    let authority = certs::authority(&data, now)?.load()?;
    for name in names {
        let pair = certs::renew(&data, &authority, name, None, now)?;
        let certificate = Certificate::first_from_pem(&pair.certificate)?;
        println!(
            "The certificate \"{}\" is new and valid until {}.",
            name.text(),
            rfc3339(certificate.life.end)
        );
    }
    drop(guard);
    tell_running(&data)?;
    Ok(ExitCode::SUCCESS)
}

fn rotate_ca(options: &CertsRotate) -> anyhow::Result<ExitCode> {
    let data = existing(options.data.dir.as_deref())?;
    let guard = certs::lock(&data)?;
    let rotated = certs::rotate(&data, options.forget_old, Clock.unix())?;
    drop(guard);
    println!(
        "There is a new certificate authority, and new certificates for the server and the administrator."
    );
    if rotated.still_trusted > 0 {
        println!(
            "Clients that trust only the former one go on working; give them {} before you call\n  fairway certs \
             forget-old-ca",
            data.pki("ca").0.display()
        );
    } else {
        println!(
            "Nothing of the former one is trusted any more: every client needs {} and a new certificate.",
            data.pki("ca").0.display()
        );
    }
    tell_running(&data)?;
    Ok(ExitCode::SUCCESS)
}

/// A running server looks at the files itself.
fn tell_running(data: &DataDir) -> anyhow::Result<()> {
    match Running::find(data)? {
        Some(running) => println!(
            "The running server (process {}) takes this up within seconds, and writes {}.",
            running.pid,
            data.kubeconfig().display()
        ),
        None => println!(
            "The next `fairway up` uses it, and writes {}.",
            data.kubeconfig().display()
        ),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{left, table};

    #[test]
    fn residual_life_is_short_to_read() {
        for (seconds, want) in [
            (-5, "expired"),
            (0, "expired"),
            (90, "90s"),
            (600, "10m"),
            (86_400, "24h"),
            (31_536_000, "365d"),
            (315_360_000, "10y"),
        ] {
            assert_eq!(left(seconds), want);
        }
    }

    #[test]
    fn a_table_is_aligned() {
        let row = serde_json::json!({
            "name": "ca", "subject": "CN=a", "issuer": "CN=a", "expires": "2030", "residual": "3y", "names": [],
        });
        assert_eq!(
            table(&[row]),
            "NAME   SUBJECT   ISSUER   EXPIRES   RESIDUAL   RENEWS   NAMES\nca     CN=a      CN=a     2030      3y         \
             -        -"
        );
    }
}
