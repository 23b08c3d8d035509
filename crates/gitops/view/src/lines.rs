//! How two texts differ line by line, in the form that `diff` prints.

/// The most pairs of lines that are compared; beyond that, all lines between the first and the last difference are changed.
const MOST: usize = 4_000_000;

/// The differences; empty if there are none.
pub fn differences(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old
        .iter()
        .zip(&new)
        .take_while(|(one, other)| one == other)
        .count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let (old_rest, new_rest) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let mut out = String::new();
    for hunk in hunks(old_rest, new_rest) {
        write(&mut out, &hunk, head, old_rest, new_rest);
    }
    out
}

/// Lines that are replaced by others: from where to where, on both sides.
struct Hunk {
    old: (usize, usize),
    new: (usize, usize),
}

/// The hunks of a shortest edit, by the longest common subsequence.
fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    let whole = Hunk {
        old: (0, old.len()),
        new: (0, new.len()),
    };
    let Some(size) = (old.len() + 1)
        .checked_mul(new.len() + 1)
        .filter(|size| *size <= MOST)
    else {
        return vec![whole];
    };
    let width = new.len() + 1;
    // How long the longest common subsequence of the rests is.
    let mut longest = vec![0_u32; size];
    for at in (0..old.len()).rev() {
        for beside in (0..new.len()).rev() {
            longest[at * width + beside] = match old[at] == new[beside] {
                true => longest[(at + 1) * width + beside + 1] + 1,
                false => longest[(at + 1) * width + beside].max(longest[at * width + beside + 1]),
            };
        }
    }
    let (mut at, mut beside) = (0, 0);
    let mut found: Vec<Hunk> = Vec::new();
    while at < old.len() || beside < new.len() {
        if at < old.len() && beside < new.len() && old[at] == new[beside] {
            (at, beside) = (at + 1, beside + 1);
            continue;
        }
        let (from, from_new) = (at, beside);
        while at < old.len() || beside < new.len() {
            let is_same = at < old.len() && beside < new.len() && old[at] == new[beside];
            if is_same {
                break;
            }
            let drop_old = at < old.len()
                && (beside == new.len()
                    || longest[(at + 1) * width + beside] >= longest[at * width + beside + 1]);
            match drop_old {
                true => at += 1,
                false => beside += 1,
            }
        }
        found.push(Hunk {
            old: (from, at),
            new: (from_new, beside),
        });
    }
    found
}

fn write(out: &mut String, hunk: &Hunk, head: usize, old: &[&str], new: &[&str]) {
    let range = |(from, to): (usize, usize)| match to - from {
        // The line after which something is, or was.
        0 => (head + from).to_string(),
        1 => (head + from + 1).to_string(),
        _ => format!("{},{}", head + from + 1, head + to),
    };
    let sign = match (hunk.old.0 == hunk.old.1, hunk.new.0 == hunk.new.1) {
        (true, _) => 'a',
        (_, true) => 'd',
        _ => 'c',
    };
    out.push_str(&format!("{}{sign}{}\n", range(hunk.old), range(hunk.new)));
    for line in &old[hunk.old.0..hunk.old.1] {
        out.push_str(&format!("< {line}\n"));
    }
    if sign == 'c' {
        out.push_str("---\n");
    }
    for line in &new[hunk.new.0..hunk.new.1] {
        out.push_str(&format!("> {line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_diff_prints_it() {
        for (old, new, expected) in [
            ("a\nb\n", "a\nb\n", ""),
            ("", "a\nb\n", "0a1,2\n> a\n> b\n"),
            ("a\nb\n", "", "1,2d0\n< a\n< b\n"),
            ("a\nb\nc\n", "a\nx\nc\n", "2c2\n< b\n---\n> x\n"),
            ("a\nb\nc\nd\n", "a\nc\nd\ne\n", "2d1\n< b\n4a4\n> e\n"),
            ("a\nb\nc\n", "a\nb\nx\ny\nc\n", "2a3,4\n> x\n> y\n"),
        ] {
            assert_eq!(differences(old, new), expected, "{old:?} {new:?}");
        }
    }

    #[test]
    fn large_texts_are_not_compared_forever() {
        let many = |from: u32| (from..from + 3000).map(|n| format!("{n}\n")).collect::<String>();
        let shown = differences(&many(0), &many(10_000));
        assert!(shown.starts_with("1,3000c1,3000\n"), "{}", &shown[..20]);
    }
}
