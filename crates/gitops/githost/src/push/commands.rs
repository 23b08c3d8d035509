//! What a client asks for in a push: which references to move, and in which words it wants the answer.

use fairway_gitops_git::{ObjectId, RefName};

use crate::seams::Update;

/// The most references in one push.
pub const MAX_COMMANDS: usize = 20_000;
/// The most options in one push.
pub const MAX_OPTIONS: usize = 64;

/// The capabilities that we offer. `quiet` is about progress, of which there is none: git asks for it wherever it is not
/// in a terminal, and messages are for pipes, too.
pub const CAPABILITIES: &str = concat!(
    "report-status delete-refs side-band-64k quiet atomic ofs-delta push-options object-format=sha1 agent=fairway/",
    env!("CARGO_PKG_VERSION")
);

/// What a client can do and wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// It wants to know what became of each reference.
    pub report_status: bool,
    /// It can tell messages from data.
    pub side_band: bool,
    /// All references or none.
    pub is_atomic: bool,
    /// Options follow the commands.
    pub has_options: bool,
}

/// A line of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A reference to move.
    Command(Command),
    /// A commit whose parents the client does not have. Whether we have them is found out when objects are checked.
    Shallow,
}

/// A reference to move, whose name may be impossible: then it alone is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The name as the client wrote it.
    pub name: String,
    /// The update, or why it cannot be.
    pub update: Result<Update, String>,
}

/// A push that is not in Git's protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request is not in Git's protocol: {0}")]
pub struct BadCommand(String);

/// Reads a line. Capabilities come after a NUL in the first.
pub fn parse(line: &[u8], wishes: &mut Wishes) -> Result<Line, BadCommand> {
    let bad = || BadCommand(String::from_utf8_lossy(line).chars().take(100).collect());
    let text = std::str::from_utf8(line).map_err(|_| bad())?;
    let (text, capabilities) = match text.split_once('\0') {
        Some((text, capabilities)) => (text, capabilities),
        None => (text, ""),
    };
    for capability in capabilities.split_ascii_whitespace() {
        match capability {
            "report-status" => wishes.report_status = true,
            "side-band-64k" => wishes.side_band = true,
            "atomic" => wishes.is_atomic = true,
            "push-options" => wishes.has_options = true,
            _ => {
                if capability
                    .strip_prefix("object-format=")
                    .is_some_and(|format| format != "sha1")
                {
                    return Err(BadCommand("objects are named by SHA-1 here".to_owned()));
                }
            }
        }
    }
    let text = text.trim_end_matches('\n');
    if text.starts_with("shallow ") {
        return Ok(Line::Shallow);
    }
    if text.starts_with("push-cert") {
        return Err(BadCommand("signed pushes are not understood".to_owned()));
    }
    let mut words = text.splitn(3, ' ');
    let (Some(old), Some(new), Some(name)) = (words.next(), words.next(), words.next()) else {
        return Err(bad());
    };
    let id = |text: &str| ObjectId::parse(text).map_err(|_| bad());
    let (old, new) = (id(old)?, id(new)?);
    let there = |id: ObjectId| (!id.is_zero()).then_some(id);
    let (old, new) = (there(old), there(new));
    let update = match RefName::parse(name) {
        Err(_) => Err("funny refname".to_owned()),
        Ok(_) if old.is_none() && new.is_none() => Err("neither old nor new value".to_owned()),
        Ok(name) => Ok(Update { name, old, new }),
    };
    Ok(Line::Command(Command {
        name: name.to_owned(),
        update,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let (a, b, zero) = ("a".repeat(40), "b".repeat(40), "0".repeat(40));
        let mut wishes = Wishes::default();
        let line = format!(
            "{a} {b} refs/heads/x\0 report-status side-band-64k atomic agent=git/2 object-format=sha1"
        );
        let Line::Command(command) = parse(line.as_bytes(), &mut wishes).unwrap() else {
            panic!()
        };
        let update = command.update.unwrap();
        assert_eq!(
            (update.old.unwrap().as_str(), update.new.unwrap().as_str()),
            (&*a, &*b)
        );
        assert!(wishes.report_status && wishes.side_band && wishes.is_atomic && !wishes.has_options);

        let cases: &[(String, Result<Option<&str>, ()>)] = &[
            (format!("{zero} {b} refs/heads/x\n"), Ok(None)),
            (format!("{a} {zero} refs/heads/x"), Ok(None)),
            (
                format!("{zero} {zero} refs/heads/x"),
                Ok(Some("neither old nor new value")),
            ),
            (
                format!("{a} {b} refs/heads/../../config"),
                Ok(Some("funny refname")),
            ),
            (format!("{a} {b} HEAD"), Ok(Some("funny refname"))),
            (format!("{a} {b} refs/heads/a b"), Ok(Some("funny refname"))),
            (format!("{a} {b} refs/heads/x.lock"), Ok(Some("funny refname"))),
            (format!("{a} {b}"), Err(())),
            (format!("{a} refs/heads/x"), Err(())),
            ("x y refs/heads/x".to_owned(), Err(())),
            ("push-cert\0".to_owned(), Err(())),
            (format!("{a} {b} refs/heads/x\0object-format=sha256"), Err(())),
        ];
        for (line, expected) in cases {
            let found = parse(line.as_bytes(), &mut Wishes::default());
            let found = found.map_err(|_| ()).map(|line| match line {
                Line::Command(command) => command.update.err(),
                Line::Shallow => None,
            });
            assert_eq!(found, expected.map(|why| why.map(str::to_owned)), "{line:?}");
        }
        assert_eq!(
            parse(format!("shallow {a}").as_bytes(), &mut wishes),
            Ok(Line::Shallow)
        );
        assert!(parse(&[0xff, 0xfe], &mut wishes).is_err());
    }
}
