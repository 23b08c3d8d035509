//! A log file that begins anew when it is large, and forgets its oldest parts.
//!
//! Old parts are named as upstream names them: `audit-2026-11-16T01-02-03.004.log`, with `.gz` when they have been
//! compressed. Which of them go is decided by [`surplus`]; compressing happens on a thread of its own, because lines arrive
//! meanwhile.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;

const DAY: i64 = 86_400;

/// What names of parts differ by at least.
const MILLISECOND: jiff::SignedDuration = jiff::SignedDuration::from_millis(1);

/// How much of the log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file before it is moved aside.
    pub size: u64,
    /// Days that a part is kept; 0: for ever.
    pub days: u32,
    /// Parts that are kept; 0: all.
    pub parts: u32,
    /// Whether parts are compressed.
    pub compress: bool,
}

impl Default for Limits {
    /// 600 MB at most, so that a server which nobody looks after does not fill its disk.
    fn default() -> Self {
        Self {
            size: 100 << 20,
            days: 30,
            parts: 5,
            compress: false,
        }
    }
}

/// The file that is written to.
pub struct RotatingFile {
    path: PathBuf,
    limits: Limits,
    file: File,
    size: u64,
    /// What the newest part of this process is named after.
    newest: Option<jiff::Timestamp>,
    /// Held while old parts are tidied up: one thread at a time.
    tidying: Arc<Mutex<()>>,
}

impl RotatingFile {
    /// Goes on where the file ends.
    pub fn open(path: &Path, limits: Limits) -> io::Result<Self> {
        let file = append(path)?;
        let size = file.metadata()?.len();
        let rotating = Self {
            path: path.to_owned(),
            limits,
            file,
            size,
            newest: None,
            tidying: Arc::default(),
        };
        rotating.tidy_up();
        Ok(rotating)
    }

    /// Writes whole lines, after moving the file aside if they would make it too large.
    pub fn write_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = lines.len() as u64;
        if self.size > 0 && self.size + length > self.limits.size {
            self.rotate()?;
        }
        self.file.write_all(lines)?;
        self.size += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mut moment = following(self.newest, jiff::Timestamp::now());
        let mut aside = part_path(&self.path, moment);
        // An earlier process may have left a part of this millisecond.
        while aside.exists() || compressed_path(&aside).exists() {
            moment += MILLISECOND;
            aside = part_path(&self.path, moment);
        }
        fs::rename(&self.path, &aside)?;
        self.newest = Some(moment);
        self.file = append(&self.path)?;
        self.size = 0;
        self.tidy_up();
        Ok(())
    }

    /// Removes and compresses old parts, beside the writing.
    fn tidy_up(&self) {
        let (path, limits, tidying) = (self.path.clone(), self.limits, Arc::clone(&self.tidying));
        let spawned = std::thread::Builder::new()
            .name("audit-rotation".to_owned())
            .spawn(move || {
                let _alone = tidying.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = tidy_up(&path, limits) {
                    tracing::warn!(%error, "old parts of the audit log could not be tidied up");
                }
            });
        if let Err(error) = spawned {
            tracing::warn!(%error, "old parts of the audit log are not tidied up");
        }
    }
}

/// When a part is said to be moved aside: now, but after the one before, because the names tell which is older.
///
/// That the file of a millisecond is gone does not make its name free: the part may have been removed or compressed since,
/// and a later part of that name would count as older than those between, or take the place of the compressed one.
fn following(before: Option<jiff::Timestamp>, now: jiff::Timestamp) -> jiff::Timestamp {
    before.map_or(now, |before| now.max(before + MILLISECOND))
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// An old part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    file: String,
    /// When it was moved aside, in Unix seconds.
    moment: i64,
}

/// The name before the moment, and the extension after it.
fn stem_and_extension(path: &Path) -> (String, String) {
    let stem = path
        .file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let extension = path
        .extension()
        .map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    (format!("{stem}-"), extension)
}

const MOMENT: &str = "%Y-%m-%dT%H-%M-%S%.3f";

fn part_path(path: &Path, moment: jiff::Timestamp) -> PathBuf {
    let (stem, extension) = stem_and_extension(path);
    path.with_file_name(format!("{stem}{}{extension}", moment.strftime(MOMENT)))
}

fn compressed_path(part: &Path) -> PathBuf {
    let mut name = part.as_os_str().to_owned();
    name.push(".gz");
    PathBuf::from(name)
}

/// The part that a file is, by its name.
fn read_part(path: &Path, file: &str) -> Option<Part> {
    let (stem, extension) = stem_and_extension(path);
    let name = file.strip_suffix(".gz").unwrap_or(file);
    let moment = name.strip_prefix(&stem)?.strip_suffix(&extension)?;
    let moment = jiff::civil::DateTime::strptime(MOMENT, moment).ok()?;
    let moment = moment.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(Part {
        file: file.to_owned(),
        moment: moment.timestamp().as_second(),
    })
}

/// The parts that are too many or too old, given the newest first.
fn surplus(parts: &[Part], limits: Limits, now: i64) -> Vec<&Part> {
    let too_old = |part: &Part| limits.days > 0 && part.moment < now - i64::from(limits.days) * DAY;
    parts
        .iter()
        .enumerate()
        .filter(|(index, part)| {
            let too_many = limits.parts > 0 && *index >= limits.parts as usize;
            too_many || too_old(part)
        })
        .map(|(_, part)| part)
        .collect()
}

fn tidy_up(path: &Path, limits: Limits) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut parts: Vec<Part> = fs::read_dir(directory)?
        .filter_map(|entry| read_part(path, entry.ok()?.file_name().to_str()?))
        .collect();
    parts.sort_by(|a, b| b.file.cmp(&a.file));
    let gone = surplus(&parts, limits, jiff::Timestamp::now().as_second());
    for part in &gone {
        remove_if_there(&directory.join(&part.file))?;
    }
    if limits.compress {
        for part in parts
            .iter()
            .filter(|p| !gone.contains(p) && !p.file.ends_with(".gz"))
        {
            compress(&directory.join(&part.file))?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The original goes when its compressed form is complete; a half-written one is written again next time.
fn compress(path: &Path) -> io::Result<()> {
    let whole = compressed_path(path);
    let mut half = whole.clone().into_os_string();
    half.push(".part");
    let half = PathBuf::from(half);
    remove_if_there(&half)?;
    let out = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&half)?;
    let mut encoder = GzEncoder::new(out, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::rename(&half, &whole)?;
    remove_if_there(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str) -> Part {
        read_part(Path::new("/x/audit.log"), name).unwrap()
    }

    #[test]
    fn parts_are_known_by_their_names() {
        let moment = part("audit-2026-11-16T01-02-03.004.log").moment;
        assert_eq!(moment, part("audit-2026-11-16T01-02-03.004.log.gz").moment);
        assert_eq!(moment % DAY, 3_723);
        for other in [
            "audit.log",
            "audit-x.log",
            "other-2026-11-16T01-02-03.004.log",
            "audit-2026-11-16T01-02-03.004.txt",
        ] {
            assert_eq!(read_part(Path::new("/x/audit.log"), other), None, "{other}");
        }
    }

    #[test]
    fn what_is_too_old_or_too_much_goes() {
        let parts = [4, 3, 2, 1].map(|day| part(&format!("audit-2026-11-0{day}T00-00-00.000.log")));
        let now = parts[0].moment + 1;
        let names = |days, keep| -> Vec<String> {
            let limits = Limits {
                days,
                parts: keep,
                ..Limits::default()
            };
            let gone = surplus(&parts, limits, now);
            gone.iter().map(|p| p.file[14..16].to_owned()).collect()
        };
        assert_eq!(names(0, 0), Vec::<String>::new());
        assert_eq!(names(0, 3), ["01"]);
        assert_eq!(names(2, 0), ["02", "01"]);
        assert_eq!(names(2, 1), ["03", "02", "01"]);
    }

    #[test]
    fn later_parts_have_later_names() {
        let at = |milliseconds| jiff::Timestamp::from_millisecond(milliseconds).unwrap();
        for (before, now, expected, why) in [
            (None, 5, 5, "the first"),
            (Some(3), 5, 5, "time has passed"),
            (Some(5), 5, 6, "the same millisecond"),
            (
                Some(8),
                5,
                9,
                "several of one millisecond, or a clock that went back",
            ),
        ] {
            assert_eq!(following(before.map(at), at(now)), at(expected), "{why}");
        }
        let path = Path::new("/x/audit.log");
        assert!(part_path(path, at(999)) < part_path(path, at(1_000)));
    }

    #[test]
    fn a_full_file_is_moved_aside_and_the_oldest_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let limits = Limits {
            size: 100,
            parts: 2,
            days: 0,
            compress: true,
        };
        let mut log = RotatingFile::open(&path, limits).unwrap();
        for number in 0..10 {
            log.write_lines(format!("{number:059}\n").as_bytes()).unwrap();
        }
        // Its threads may still be at it: this one comes after them.
        let tidying = Arc::clone(&log.tidying);
        while Arc::strong_count(&tidying) > 2 {
            std::thread::yield_now();
        }
        tidy_up(&path, limits).unwrap();
        let mut names: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(
            names[0].ends_with(".log.gz") && names[1].ends_with(".log.gz"),
            "{names:?}"
        );
        assert!(fs::read_to_string(&path).unwrap().ends_with("9\n"));
        let mut text = String::new();
        let newest = File::open(directory.path().join(&names[1])).unwrap();
        io::Read::read_to_string(&mut flate2::read::GzDecoder::new(newest), &mut text).unwrap();
        assert!(text.ends_with("8\n"), "{text}");
    }
}
