//! Cron schedules: five fields or a name, as CronJobs write them.

use fairway_text_gotext::duration;

/// What is wrong with a schedule, in the words of the parser that Kubernetes uses.
pub(crate) fn validate(schedule: &str) -> Result<(), String> {
    let mut rest = schedule;
    for prefix in ["TZ=", "CRON_TZ="] {
        if let Some(zoned) = schedule.strip_prefix(prefix) {
            rest = zoned.split_once(' ').map_or("", |(_, rest)| rest).trim();
        }
    }
    if let Some(name) = rest.strip_prefix('@') {
        return validate_name(name);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    let bounds = [
        Bounds {
            lowest: 0,
            highest: 59,
            names: &[],
        },
        Bounds {
            lowest: 0,
            highest: 23,
            names: &[],
        },
        Bounds {
            lowest: 1,
            highest: 31,
            names: &[],
        },
        Bounds {
            lowest: 1,
            highest: 12,
            names: &[
                "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
            ],
        },
        Bounds {
            lowest: 0,
            highest: 6,
            names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        },
    ];
    for (field, bounds) in fields.iter().zip(&bounds) {
        for part in field.split(',').filter(|p| !p.is_empty()) {
            bounds.validate(part)?;
        }
    }
    Ok(())
}

fn validate_name(name: &str) -> Result<(), String> {
    match name {
        "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
        other => match other.strip_prefix("every ") {
            Some(every) => match duration::parse(every) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("failed to parse duration @{other}: {error}")),
            },
            None => Err(format!("unrecognized descriptor: @{other}")),
        },
    }
}

struct Bounds {
    lowest: u64,
    highest: u64,
    names: &'static [&'static str],
}

impl Bounds {
    fn number(&self, text: &str) -> Result<u64, String> {
        if let Some(index) = self.names.iter().position(|n| n.eq_ignore_ascii_case(text)) {
            return Ok(self.lowest + index as u64);
        }
        text.parse::<u64>().map_err(|_| {
            format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
        })
    }

    /// `*`, `a`, `a-b`, each with an optional `/step`.
    fn validate(&self, part: &str) -> Result<(), String> {
        let (range, step) = match part.split_once('/') {
            Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {part}")),
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let (start, end) = if matches!(range, "*" | "?") {
            (self.lowest, self.highest)
        } else {
            match range.split_once('-') {
                Some((_, end)) if end.contains('-') => return Err(format!("too many hyphens: {part}")),
                Some((start, end)) => (self.number(start)?, self.number(end)?),
                None => {
                    let start = self.number(range)?;
                    (start, if step.is_some() { self.highest } else { start })
                }
            }
        };
        if let Some(step) = step {
            let step = step.parse::<u64>().map_err(|_| {
                format!("failed to parse int from {step}: strconv.Atoi: parsing {step:?}: invalid syntax")
            })?;
            if step == 0 {
                return Err(format!("step of range should be a positive number: {part}"));
            }
        }
        if start < self.lowest {
            return Err(format!(
                "beginning of range ({start}) below minimum ({}): {part}",
                self.lowest
            ));
        }
        if end > self.highest {
            return Err(format!(
                "end of range ({end}) above maximum ({}): {part}",
                self.highest
            ));
        }
        if start > end {
            return Err(format!(
                "beginning of range ({start}) beyond end of range ({end}): {part}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::validate;

    #[test]
    fn schedules() {
        for good in [
            "* * * * *",
            "*/5 0-6 1,15 jan-mar MON",
            "0 0 ? * 0",
            "@hourly",
            "@every 1h30m",
            "TZ=UTC * * * * *",
            "10/20 * * * *",
        ] {
            assert_eq!(validate(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("error", "expected exactly 5 fields, found 1: [error]"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            (
                "x * * * *",
                "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            ),
            ("@never", "unrecognized descriptor: @never"),
            (
                "@every soon",
                "failed to parse duration @every soon: time: invalid duration \"soon\"",
            ),
        ] {
            assert_eq!(validate(bad), Err(why.to_owned()), "{bad}");
        }
    }
}
