//! The program's machine code as `/proc/self/maps` lists it, and how to unmap its pages.

use std::fs;
use std::ops::Range;

/// Unmaps the pages of the program's code; they come back when they are touched.
pub(crate) fn forget_code() {
    let Ok(program) = fs::read_link("/proc/self/exe") else {
        return;
    };
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for code in code_of(&maps, &program.to_string_lossy()) {
        let length = code.end - code.start;
        // SAFETY: the range is a private mapping of the program's file that may not be written and, having no relocations,
        // never was: its pages equal the file's, and a page that is dropped is read from there again. A failure leaves all
        // as it was.
        unsafe {
            libc::madvise(code.start as *mut libc::c_void, length, libc::MADV_DONTNEED);
        }
    }
}

/// What is resident of mapped files, in bytes.
pub(crate) fn resident_of_files() -> Option<u64> {
    let pages = file_pages(&fs::read_to_string("/proc/self/statm").ok()?)?;
    // SAFETY: it reads a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(size).ok()?)
}

/// The third number of `statm`: resident pages that files, or shared memory, are behind.
fn file_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The address ranges of a listing that are the program's and can be executed but not written. Constants that are relocated at
/// the start are read-only, too, but no longer equal to the file: what is not executable is left alone.
fn code_of(maps: &str, program: &str) -> Vec<Range<usize>> {
    maps.lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (range, rights) = (fields.next()?, fields.next()?);
            let file = line.find('/').map(|at| &line[at..]);
            if rights != "r-xp" || file != Some(program) {
                return None;
            }
            let (start, end) = range.split_once('-')?;
            let address = |text| usize::from_str_radix(text, 16).ok();
            Some(address(start)?..address(end)?)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{code_of, file_pages, forget_code, resident_of_files};

    #[test]
    fn only_the_programs_code_is_found() {
        let maps = "\
561a2f9d2000-561a2ff99000 r--p 00000000 fe:00 9980644                    /opt/my tools/fairway
561a2ff99000-561a312e9000 r-xp 005c6000 fe:00 9980644                    /opt/my tools/fairway
561a312e9000-561a313bc000 r--p 01915000 fe:00 9980644                    /opt/my tools/fairway
561a313bc000-561a313c5000 rwxp 019e7000 fe:00 9980644                    /opt/my tools/fairway
561a40000000-561a40021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 r-xp 00026000 fe:00 1234                       /usr/lib/libc.so.6
7ffd05e70000-7ffd05e72000 r-xp 00000000 00:00 0                          [vdso]
";
        let code = code_of(maps, "/opt/my tools/fairway");
        assert_eq!(code, vec![0x561a_2ff9_9000..0x561a_312e_9000; 1]);
        assert!(code_of(maps, "/opt/fairway").is_empty());
        assert!(code_of("nonsense\n/opt/fairway r-xp", "/opt/fairway").is_empty());
    }

    #[test]
    fn the_pages_of_files_are_the_third_number() {
        for (statm, expected) in [
            ("131072 25600 6400 5000 0 30000 0\n", Some(6400)),
            ("131072 25600\n", None),
            ("1 2 many 4", None),
            ("", None),
        ] {
            assert_eq!(file_pages(statm), expected, "{statm:?}");
        }
        let here = resident_of_files().unwrap();
        assert!(here > 64 * 1024, "the test itself is mapped: {here}");
    }

    #[test]
    fn the_program_goes_on_and_its_code_is_mapped_again_where_it_runs() {
        let resident = || {
            let rollup = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let program = std::fs::read_link("/proc/self/exe").unwrap();
            let mut code = rollup
                .lines()
                .skip_while(|line| !(line.contains(" r-xp ") && line.ends_with(&*program.to_string_lossy())));
            let line = code.find(|line| line.starts_with("Rss:")).unwrap();
            line.split_ascii_whitespace()
                .nth(1)
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        let before = resident();
        forget_code();
        let after = resident();
        assert!(after > 0, "what runs is mapped");
        assert!(
            after < before,
            "{before} KiB were mapped, and {after} KiB still are"
        );
    }
}
