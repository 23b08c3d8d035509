//! The order in which Go's YAML writer puts the keys of a mapping: letters after everything else, and runs of digits
//! by their value, so that `item10` follows `item9`.

use std::cmp::Ordering;

/// Compares two keys.
pub fn compare(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    if less(left, right) {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

fn less(left: &str, right: &str) -> bool {
    let mut left_chars = left.char_indices();
    let mut right_chars = right.char_indices();
    loop {
        let (at, l, r) = match (left_chars.next(), right_chars.next()) {
            (Some((_, l)), Some((_, r))) if l == r => continue,
            (Some((at, l)), Some((_, r))) => (at, l, r),
            // One is the beginning of the other: the shorter comes first.
            (None, _) => return true,
            (_, None) => return false,
        };
        match (l.is_alphabetic(), r.is_alphabetic()) {
            (true, true) => return l < r,
            (true, false) => return false,
            (false, true) => return true,
            (false, false) => {}
        }
        // Up to here the keys are the same, so both have the same digits before this place.
        let continues = (l == '0' || r == '0') && continues_number(&left[..at]);
        let (left_number, left_digits) = number_at(&left[at..], continues);
        let (right_number, right_digits) = number_at(&right[at..], continues);
        if left_number != right_number {
            return left_number < right_number;
        }
        if left_digits != right_digits {
            return left_digits < right_digits;
        }
        return l < r;
    }
}

/// Whether the text ends in a number other than zero, whose next digits a zero may be.
fn continues_number(before: &str) -> bool {
    before
        .chars()
        .rev()
        .take_while(|c| c.is_numeric())
        .any(|c| c != '0')
}

/// The digits at the beginning of the text as a number, and how many there are. The number wraps as Go's does.
fn number_at(text: &str, continues: bool) -> (i64, usize) {
    let start = if continues { 1 } else { 0 };
    text.chars()
        .take_while(|c| c.is_numeric())
        .fold((start, 0), |(number, count): (i64, usize), digit| {
            let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
            (number.wrapping_mul(10).wrapping_add(value), count + 1)
        })
}
