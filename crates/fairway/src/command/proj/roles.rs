//! `fairway proj role`: tokens of projects' roles. The engine makes and revokes them.

use anyhow::{Context as _, anyhow, bail};
use fairway_api::argoproj::APP_PROJECT;
use fairway_gitops_sync::rbac::token::tokens;
use fairway_gitops_view::field::text;
use serde_json::{Value, json};

use super::super::gitops::{Session, path_of};
use crate::cli::appset::RoleCommand;
use crate::cli::gitops::Place;

pub(super) async fn run(command: &RoleCommand) -> anyhow::Result<()> {
    match command {
        RoleCommand::CreateToken(options) => {
            let seconds = seconds(&options.expires_in)?;
            let wanted = json!({
                "role": options.role.role, "id": options.id.as_deref().unwrap_or_default(), "expiresIn": seconds,
            });
            let answer = ask(&options.role.place, &options.role.project, &wanted).await?;
            let token = text(&answer, "/token");
            if options.token_only {
                println!("{token}");
                return Ok(());
            }
            println!(
                "Create token succeeded for proj:{}:{}.",
                options.role.project, options.role.role
            );
            println!(
                "  Expires: {}",
                if seconds == 0 {
                    "Never"
                } else {
                    options.expires_in.as_str()
                }
            );
            println!("  Token: {token}");
        }
        RoleCommand::ListTokens(options) => {
            let session = Session::open(&options.role.place).await?;
            let project = session.find(APP_PROJECT, &options.role.project, None).await?;
            let listed = tokens(&project, &options.role.role).map_err(|why| anyhow!("{why}"))?;
            println!("{:<38} {:<22} EXPIRES AT", "ID", "ISSUED AT");
            for token in listed {
                let (id, made) = (text(&token, "/id"), time(&token["iat"]));
                let end = match token["exp"].as_i64() {
                    None | Some(0) => "Never".to_owned(),
                    Some(_) => time(&token["exp"]),
                };
                println!("{id:<38} {made:<22} {end}");
            }
        }
        RoleCommand::DeleteToken(options) => {
            let wanted = json!({"role": options.role, "revoke": options.token});
            ask(&options.place, &options.project, &wanted).await?;
            println!(
                "Token {} of proj:{}:{} revoked",
                options.token, options.project, options.role
            );
        }
    }
    Ok(())
}

async fn ask(place: &Place, project: &str, wanted: &Value) -> anyhow::Result<Value> {
    let session = Session::open(place).await?;
    let project = session.find(APP_PROJECT, project, None).await?;
    let path = format!("{}/token", path_of(APP_PROJECT, &project));
    session.post(&path, wanted).await
}

fn time(seconds: &Value) -> String {
    let moment = seconds
        .as_i64()
        .and_then(|at| jiff::Timestamp::from_second(at).ok());
    moment.map_or_else(String::new, |moment| {
        moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    })
}

/// A duration in whole seconds: numbers with `s`, `m`, `h` or `d`.
fn seconds(text: &str) -> anyhow::Result<i64> {
    let mut rest = text.trim();
    let mut total: i64 = 0;
    if rest.is_empty() {
        bail!("a duration such as 12h is missing");
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: i64 = rest[..digits]
            .parse()
            .with_context(|| format!("{text:?} is no duration such as 90s, 15m, 12h or 3d"))?;
        let mut after = rest[digits..].chars();
        let unit = match after.next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            _ => bail!("{text:?} is no duration such as 90s, 15m, 12h or 3d"),
        };
        rest = after.as_str();
        total = number
            .checked_mul(unit)
            .and_then(|part| total.checked_add(part))
            .with_context(|| format!("{text} is too long"))?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, expected) in [
            ("0s", Some(0)),
            ("90s", Some(90)),
            ("1h30m", Some(5_400)),
            ("2d", Some(172_800)),
        ] {
            assert_eq!(seconds(text).ok(), expected, "{text}");
        }
        for wrong in ["", "5", "h", "-1h", "1y", "9999999999999999999d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
