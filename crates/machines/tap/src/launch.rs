//! How QEMU comes to its devices: opened before it is there, by a program that becomes what follows on its command line.
//!
//! `PROGRAM tap --space FILE --card DEVICE=NUMBER ... -- COMMAND`: makes each device in the namespace, leaves it open under that number, and
//! becomes the command, in the namespace that it came from. QEMU is left with open files, and needs no right to make any.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use crate::device;
use crate::space::{Space, enter};

/// A card's device, and the number of the open file that QEMU finds it under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    pub device: String,
    pub number: i32,
}

impl Space {
    /// What comes before a command that is to have cards. `program`: this very program.
    pub fn starter(&self, program: &Path, cards: &[Card]) -> Vec<String> {
        let mut line = vec![program.display().to_string(), "tap".to_owned()];
        line.extend(["--space".to_owned(), self.path().display().to_string()]);
        for card in cards {
            line.extend(["--card".to_owned(), format!("{}={}", card.device, card.number)]);
        }
        line.push("--".to_owned());
        line
    }
}

/// What it is told.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    space: PathBuf,
    cards: Vec<Card>,
    command: Vec<String>,
}

fn parse(arguments: impl IntoIterator<Item = String>) -> Option<Order> {
    let mut arguments = arguments.into_iter();
    let (mut space, mut cards) = (None, Vec::new());
    loop {
        match arguments.next()?.as_str() {
            "--space" => space = Some(PathBuf::from(arguments.next()?)),
            "--card" => {
                let word = arguments.next()?;
                let (device, number) = word.split_once('=')?;
                cards.push(Card {
                    device: device.to_owned(),
                    number: number.parse().ok()?,
                });
            }
            "--" => break,
            _ => return None,
        }
    }
    let command: Vec<String> = arguments.collect();
    Some(Order {
        space: space?,
        cards,
        command: (!command.is_empty()).then_some(command)?,
    })
}

/// Makes the devices and becomes the command: everything after `tap` on the command line. Returns if that cannot be.
#[expect(clippy::print_stderr, reason = "it goes to the log of the machine")]
pub fn attach(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let Some(order) = parse(arguments) else {
        eprintln!("usage: fairway tap --space FILE --card DEVICE=NUMBER ... -- COMMAND...");
        return ExitCode::from(2);
    };
    let error = match open_all(&order) {
        // They stay open.
        Ok(files) => {
            let (program, rest) = (&order.command[0], &order.command[1..]);
            let error = Command::new(program).args(rest).exec();
            drop(files);
            error
        }
        Err(error) => error,
    };
    eprintln!("fairway tap: the machine's network devices cannot be made: {error}");
    ExitCode::FAILURE
}

fn open_all(order: &Order) -> io::Result<Vec<OwnedFd>> {
    let home = rustix::fs::open(
        "/proc/thread-self/ns/net",
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    enter(&order.space)?;
    let files: io::Result<Vec<OwnedFd>> = order.cards.iter().map(open_one).collect();
    rustix::thread::move_into_link_name_space(
        std::os::fd::AsFd::as_fd(&home),
        Some(rustix::thread::LinkNameSpaceType::Network),
    )?;
    files
}

fn open_one(card: &Card) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    let made = device::make(&card.device)?;
    let file = fcntl_dupfd_cloexec(&made, card.number)?;
    if file.as_raw_fd() != card.number {
        return Err(io::Error::other(format!(
            "the file number {} is taken",
            card.number
        )));
    }
    fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::of_test(folder.path());
        let cards = [("g1", 100), ("g2", 101)].map(|(device, number)| Card {
            device: device.to_owned(),
            number,
        });
        let mut line = space.starter(Path::new("/bin/fairway"), &cards);
        assert_eq!(line[..2], ["/bin/fairway", "tap"]);
        line.extend(["qemu", "--", "-x"].map(str::to_owned));
        let order = parse(line.into_iter().skip(2)).unwrap();
        assert_eq!((order.space, order.cards), (space.path(), cards.to_vec()));
        assert_eq!(order.command, ["qemu", "--", "-x"]);
        for wrong in [
            "--space a",
            "--space a --",
            "--card a -- b",
            "--card a=x -- b",
            "-- b",
            "",
        ] {
            assert_eq!(
                parse(wrong.split_ascii_whitespace().map(str::to_owned)),
                None,
                "{wrong}"
            );
        }
    }
}
