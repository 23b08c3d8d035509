//! What a commit object says.

use crate::ObjectId;

/// A commit without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its hash.
    pub id: ObjectId,
    /// The hash of its root directory.
    pub tree: ObjectId,
    /// The commits that it follows.
    pub parents: Vec<ObjectId>,
    /// Who wrote the change.
    pub author: Signature,
    /// Who made the commit.
    pub committer: Signature,
    /// The message, as it was written.
    pub message: String,
    /// Whether it carries a signature. Nothing is said about whether it is good.
    pub is_signed: bool,
}

/// Who did something, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// Seconds since 1970.
    pub seconds: i64,
    /// Minutes east of Greenwich.
    pub offset_minutes: i32,
}

impl CommitInfo {
    /// Reads a commit object: header lines, an empty line, the message.
    pub(crate) fn parse(id: ObjectId, bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (header, message) = text
            .split_once("\n\n")
            .unwrap_or((text.trim_end_matches('\n'), ""));
        let (mut tree, mut author, mut committer, mut parents) = (None, None, None, Vec::new());
        let mut is_signed = false;
        // Lines that begin with a space continue the one before; none that is looked at here has such.
        for line in header.lines().filter(|line| !line.starts_with(' ')) {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "tree" => tree = ObjectId::parse(value).ok(),
                "parent" => parents.push(ObjectId::parse(value).ok()?),
                "author" => author = author.or_else(|| Signature::parse(value)),
                "committer" => committer = committer.or_else(|| Signature::parse(value)),
                "gpgsig" | "gpgsig-sha256" => is_signed = true,
                _ => {}
            }
        }
        Some(Self {
            id,
            tree: tree?,
            parents,
            author: author?,
            committer: committer?,
            message: message.to_owned(),
            is_signed,
        })
    }

    /// The first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or("")
    }
}

impl Signature {
    /// Reads `NAME <ADDRESS> SECONDS OFFSET`. Old commits lack parts of it; what is missing is empty or zero.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.split_once('<')?;
        let (email, when) = rest.rsplit_once('>').unwrap_or((rest, ""));
        let mut words = when.split_whitespace();
        let seconds = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let offset = words
            .next()
            .and_then(|word| word.parse::<i32>().ok())
            .unwrap_or(0);
        // `-0530` is hours and minutes, not a number of anything.
        let offset_minutes = (offset / 100 * 60 + offset % 100).clamp(-24 * 60, 24 * 60);
        Some(Self {
            name: name.trim().to_owned(),
            email: email.trim().to_owned(),
            seconds,
            offset_minutes,
        })
    }

    /// As a commit object has it. Characters that would end a field are left out, as Git does.
    pub(crate) fn line(&self) -> String {
        let clean = |text: &str| -> String {
            let kept: String = text
                .chars()
                .filter(|c| !matches!(c, '<' | '>' | '\n' | '\0' | '\r'))
                .collect();
            kept.trim().to_owned()
        };
        let (hours, minutes) = (self.offset_minutes.abs() / 60, self.offset_minutes.abs() % 60);
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        format!(
            "{} <{}> {} {sign}{hours:02}{minutes:02}",
            clean(&self.name),
            clean(&self.email),
            self.seconds.max(0)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_read() {
        let hash = "1".repeat(40);
        let id = ObjectId::parse(&hash).unwrap();
        let text = format!(
            "tree {hash}\nparent {hash}\nparent {hash}\nauthor A B <a@b> 12 -0530\ncommitter C <c> 13 +0200\ngpgsig \
             x\n tree bad\n\nSubject\n\nBody\n"
        );
        let info = CommitInfo::parse(id.clone(), text.as_bytes()).unwrap();
        assert_eq!((info.parents.len(), info.is_signed), (2, true));
        assert_eq!((info.author.offset_minutes, info.author.seconds), (-330, 12));
        assert_eq!(info.author.line(), "A B <a@b> 12 -0530");
        assert_eq!(info.committer.line(), "C <c> 13 +0200");
        assert_eq!((info.subject(), &*info.message), ("Subject", "Subject\n\nBody\n"));
        for wrong in ["", "tree x", "author a <b> 1 +0000\n\nx"] {
            assert!(
                CommitInfo::parse(id.clone(), wrong.as_bytes()).is_none(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn signatures_survive_hostile_names() {
        let cases = [
            ("A", "a@b", "A <a@b> 5 +0000"),
            ("A <x>\nparent 1", "b>", "A xparent 1 <b> 5 +0000"),
            ("", "", " <> 5 +0000"),
        ];
        for (name, email, expected) in cases {
            let signature = Signature {
                name: name.to_owned(),
                email: email.to_owned(),
                seconds: 5,
                offset_minutes: 0,
            };
            assert_eq!(signature.line(), expected);
        }
        let odd = Signature::parse("No Date <x@y>").unwrap();
        assert_eq!((&*odd.email, odd.seconds), ("x@y", 0));
    }
}
