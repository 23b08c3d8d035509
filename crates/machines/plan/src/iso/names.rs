//! Names that the two trees can hold.

use std::collections::HashSet;

use super::encode::ucs2;

/// Characters of a name in Joliet. More than its standard has room for, but what readers take.
const JOLIET_NAME: usize = 103;

/// A name of the plain tree: eight capitals, a dot, three capitals, and a version if it is a file. Names that do not fit
/// are numbered; guests that matter read the true name in Rock Ridge's records.
pub(super) fn plain(name: &str, file: bool, taken: &mut HashSet<Vec<u8>>) -> Vec<u8> {
    let letters = |part: &str, length: usize| -> String {
        let known = |it: char| {
            if it.is_ascii_alphanumeric() {
                it.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        part.chars().map(known).take(length).collect()
    };
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if file && !stem.is_empty() => (stem, extension),
        _ => (name, ""),
    };
    let (stem, extension) = (letters(stem, 8), letters(extension, 3));
    let written = |stem: &str| {
        if file {
            format!("{stem}.{extension};1").into_bytes()
        } else {
            stem.as_bytes().to_vec()
        }
    };
    let mut found = written(&stem);
    let mut number = 0_u32;
    while !taken.insert(found.clone()) {
        number += 1;
        let digits = number.to_string();
        let head: String = stem.chars().take(8 - digits.len().min(7)).collect();
        found = written(&format!("{head}{digits}"));
    }
    found
}

/// A name of Joliet's tree.
pub(super) fn joliet(name: &str, taken: &mut HashSet<Vec<u8>>) -> Vec<u8> {
    let known = |it: char| {
        if it.is_control() || "*/:;?\\".contains(it) {
            '_'
        } else {
            it
        }
    };
    let clean: String = name.chars().map(known).take(JOLIET_NAME).collect();
    let mut found = ucs2(&clean);
    let mut number = 0_u32;
    while !taken.insert(found.clone()) {
        number += 1;
        let digits = format!("~{number}");
        let head: String = clean.chars().take(JOLIET_NAME - digits.len()).collect();
        found = ucs2(&format!("{head}{digits}"));
    }
    found
}
