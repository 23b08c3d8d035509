//! `.helmignore`: shell patterns, one per line. The rules are simpler than Git's.

use crate::glob::Pattern;

pub(super) struct Rules(Vec<Rule>);

struct Rule {
    pattern: Pattern,
    negate: bool,
    only_directories: bool,
    /// Whether the whole path is compared, not only its last part.
    whole: bool,
}

impl Rules {
    /// Reads the file, and adds that files with a leading dot are not templates.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Self(Vec::new());
        for line in text.trim_start_matches('\u{feff}').lines() {
            rules.add(line)?;
        }
        rules.add("templates/.?*")?;
        Ok(rules)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let rule = line.trim();
        if rule.is_empty() || rule.starts_with('#') {
            return Ok(());
        }
        if rule.contains("**") {
            return Err("double-star (**) syntax is not supported".to_owned());
        }
        let (negate, rule) = match rule.strip_prefix('!') {
            Some(rule) => (true, rule),
            None => (false, rule),
        };
        let (only_directories, rule) = match rule.strip_suffix('/') {
            Some(rule) => (true, rule),
            None => (false, rule),
        };
        let pattern = Pattern::parse(rule.strip_prefix('/').unwrap_or(rule));
        self.0.push(Rule {
            negate,
            only_directories,
            whole: rule.contains('/'),
            pattern: pattern.ok_or("syntax error in pattern")?,
        });
        Ok(())
    }

    /// Whether a path within the chart is left out. The first rule that says something decides; a negated one leaves
    /// out everything that it does not match.
    pub(super) fn ignores(&self, path: &str, is_directory: bool) -> bool {
        for rule in &self.0 {
            let subject = match rule.whole {
                true => path,
                false => path.rsplit('/').next().unwrap_or(path),
            };
            let wrong_kind = rule.only_directories && !is_directory;
            let matches = rule.pattern.matches(subject);
            if rule.negate {
                if wrong_kind || !matches {
                    return true;
                }
            } else if !wrong_kind && matches {
                return true;
            }
        }
        false
    }
}
