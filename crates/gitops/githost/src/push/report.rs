//! What a push comes to, reference by reference, and how a client is told.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::commands::Command;
use crate::pkt;

/// What becomes of each reference: nothing is wrong with it, or why it is refused.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    unpack: Option<String>,
    order: Vec<String>,
    refused: BTreeMap<String, String>,
}

impl Verdicts {
    pub(super) fn new(commands: &[Command]) -> Self {
        let mut verdicts = Self::default();
        for command in commands {
            if verdicts.order.contains(&command.name) {
                verdicts.refuse(&command.name, "multiple updates for one reference");
                continue;
            }
            verdicts.order.push(command.name.clone());
            if let Err(why) = &command.update {
                verdicts.refuse(&command.name, why);
            }
        }
        verdicts
    }

    /// The objects could not be taken, so nothing could.
    pub(super) fn unpack(&mut self, why: &str) {
        self.unpack = Some(clean(why));
        self.refuse_all("unpacker error");
    }

    pub(super) fn refuse(&mut self, name: &str, why: &str) {
        self.refused.entry(name.to_owned()).or_insert_with(|| clean(why));
    }

    pub(super) fn refuse_all(&mut self, why: &str) {
        for name in self.order.clone() {
            self.refuse(&name, why);
        }
    }

    pub(super) fn is_open(&self, name: &str) -> bool {
        !self.refused.contains_key(name)
    }

    pub(super) fn has_refusals(&self) -> bool {
        !self.refused.is_empty()
    }

    pub(super) fn report(&self) -> Bytes {
        let mut out = BytesMut::new();
        let unpack = self.unpack.as_deref().unwrap_or("ok");
        pkt::write(&mut out, format!("unpack {unpack}\n").as_bytes());
        for name in &self.order {
            let line = match self.refused.get(name) {
                None => format!("ok {name}\n"),
                Some(why) => format!("ng {name} {why}\n"),
            };
            pkt::write(&mut out, line.as_bytes());
        }
        out.extend_from_slice(pkt::FLUSH);
        out.freeze()
    }
}

/// One line, of a length that fits.
fn clean(why: &str) -> String {
    let line: String = why
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(400)
        .collect();
    match line.trim() {
        "" => "failed".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_written() {
        let command = |name: &str, why: Option<&str>| Command {
            name: name.to_owned(),
            update: Err(why.unwrap_or("x").to_owned()),
        };
        let mut verdicts = Verdicts::new(&[]);
        assert_eq!(&verdicts.report()[..], b"000eunpack ok\n0000");
        verdicts.order = vec!["refs/heads/a".to_owned(), "refs/heads/b".to_owned()];
        verdicts.refuse("refs/heads/b", "two\nlines");
        assert!(verdicts.is_open("refs/heads/a") && !verdicts.is_open("refs/heads/b"));
        assert_eq!(
            &verdicts.report()[..],
            b"000eunpack ok\n0014ok refs/heads/a\n001eng refs/heads/b two lines\n0000"
        );
        let twice = Verdicts::new(&[
            command("refs/heads/a", Some("funny")),
            command("refs/heads/a", None),
        ]);
        assert_eq!(twice.refused["refs/heads/a"], "funny");
        assert_eq!(twice.order.len(), 1);
    }
}
