//! Counts of ranges, against counting one by one.

use super::*;

fn put(index: &mut Index, revision: u64, key: &str, version: u64) {
    index.apply(&RecordHeader {
        id: RecordId::new(Revision(revision), 0),
        key: key.as_bytes(),
        create_revision: Revision(revision),
        version,
        lease: None,
    });
}

fn key_of(number: u64) -> String {
    format!("/k/{number:06}")
}

/// Numbers that look random and are the same in every run.
fn scramble(seed: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x ^= x >> 31;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 29)
}

#[test]
fn pages_count_as_if_everything_were_looked_at() {
    let mut index = Index::default();
    let mut revision = 1;
    for step in 0..12_000 {
        revision += 1;
        let key = key_of(scramble(step) % 5_000);
        let exists = index.get(key.as_bytes()).is_some();
        put(&mut index, revision, &key, u64::from(!exists || step % 3 == 0));
    }
    index.forget_before(Revision(revision - 6_000));
    while !index.trim(1_000).1 {}
    for case in 0..400 {
        let bound = |seed: u64| Bytes::from(key_of(scramble(seed) % 5_200));
        let end = if case % 7 == 0 {
            Bytes::new()
        } else {
            bound(case * 2 + 1)
        };
        let start = if case % 11 == 0 {
            Bytes::new()
        } else {
            bound(case * 2)
        };
        let keys = KeyRange { start, end };
        let at = if case % 2 == 0 {
            revision
        } else {
            revision - scramble(case) % 6_000
        };
        let all = index.select(&keys, Revision(at), 0);
        for limit in [1, 10, 700] {
            let page = index.select(&keys, Revision(at), limit);
            assert_eq!(
                page.count,
                all.found.len(),
                "case {case} at {at}, {limit} of {keys:?}"
            );
            assert_eq!(page.found, all.found[..limit.min(all.found.len())], "case {case}");
        }
    }
}

/// Prints what a page costs; `cargo test --release -- --ignored --nocapture a_page_costs`.
#[test]
#[ignore = "prints times, decides nothing"]
fn a_page_costs_the_same_in_a_long_list() {
    for keys in [1_000, 10_000, 100_000, 1_000_000] {
        let mut index = Index::default();
        for number in 0..keys {
            put(&mut index, number + 1, &key_of(number), 1);
        }
        let all = KeyRange::prefix(b"/k/");
        for (what, at) in [("now", keys), ("100 changes ago", keys - 100)] {
            let begun = std::time::Instant::now();
            for _ in 0..100 {
                assert_eq!(index.select(&all, Revision(at), 100).count as u64, at);
            }
            println!("{keys} keys, {what}: {:?} a page", begun.elapsed() / 100);
        }
    }
}
