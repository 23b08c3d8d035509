//! Counters against a model that keeps nothing but a list, and from many threads at once.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::{ProptestConfig, any, prop, proptest};

use super::*;

const SECOND: u128 = 1_000_000_000;

fn hit(key: &str, limit: u64, window: u64) -> Hit<'static> {
    let key = format!("{key}|{window}");
    Hit {
        hash: BuildHasherDefault::<DefaultHasher>::default().hash_one(&key),
        key: key.into(),
        rate: Rate {
            limit,
            window: Duration::from_secs(window),
        },
    }
}

fn fits(readings: &[Reading]) -> bool {
    readings.iter().all(|reading| !reading.is_over)
}

#[test]
fn a_window_begins_with_the_first_request() {
    let limiter = Limiter::new(100);
    let hits = [hit("a", 2, 10)];
    // seconds, fits, remaining, reset
    for (at, expected) in [
        (100, (true, 1, 10)),
        (105, (true, 0, 5)),
        (109, (false, 0, 1)),
        (110, (true, 1, 10)),
        (111, (true, 0, 9)),
        (119, (false, 0, 1)),
        (130, (true, 1, 10)),
    ] {
        let readings = limiter.check(&hits, at * SECOND, true);
        let found = (fits(&readings), readings[0].remaining, readings[0].reset);
        assert_eq!(found, expected, "{at}");
    }
    assert!(
        !fits(&limiter.check(&[hit("zero", 0, 10)], SECOND, true)),
        "none at all"
    );
}

#[test]
fn a_request_is_counted_by_all_or_by_none() {
    let limiter = Limiter::new(100);
    let (small, large) = (hit("small", 1, 60), hit("large", 10, 60));
    assert!(fits(&limiter.check(
        &[large.clone(), small.clone()],
        SECOND,
        true
    )));
    for _ in 0..5 {
        assert!(!fits(&limiter.check(
            &[large.clone(), small.clone()],
            SECOND,
            true
        )));
    }
    let count = |key: &str| {
        limiter
            .view(SECOND)
            .iter()
            .find(|view| view.key == key)
            .map(|view| view.count)
    };
    assert_eq!((count("large|60"), count("small|60")), (Some(1), Some(1)));
    assert!(
        fits(&limiter.check(std::slice::from_ref(&large), SECOND, false)),
        "looked at"
    );
    assert_eq!(count("large|60"), Some(1), "and not counted");
    limiter.sweep(61 * SECOND);
    assert_eq!(limiter.view(0), []);
}

#[test]
fn hits_that_share_a_counter_count_once() {
    let limiter = Limiter::new(100);
    // As a limit of 5 and of 10 in a minute.
    let hits = [hit("a", 5, 60), hit("other", 9, 60), hit("a", 10, 60)];
    for left in [4, 3, 2, 1, 0] {
        let readings = limiter.check(&hits, SECOND, true);
        assert!(fits(&readings), "{left} left");
        let remaining: Vec<u64> = readings.iter().map(|reading| reading.remaining).collect();
        assert_eq!(remaining, [left, left + 4, left + 5]);
    }
    assert!(!fits(&limiter.check(&hits, SECOND, true)), "the sixth");
}

#[test]
fn there_are_never_too_many_counters() {
    let limiter = Limiter::new(64 * 4);
    for _ in 0..50 {
        limiter.check(&[hit("busy", 1_000_000, 3600)], SECOND, true);
    }
    for stranger in 0..20_000 {
        limiter.check(&[hit(&format!("stranger-{stranger}"), 10, 3600)], SECOND, true);
    }
    let views = limiter.view(SECOND);
    assert!(views.len() <= 64 * 4, "{}", views.len());
    assert!(limiter.has_dropped(1) && limiter.has_dropped(120), "lately");
    assert!(!limiter.has_dropped(121), "and not for ever");
    assert!(
        views
            .iter()
            .any(|view| view.key == "busy|3600" && view.count == 50),
        "strangers push out their own"
    );
}

#[test]
fn many_at_once_get_exactly_what_there_is() {
    let limiter = Arc::new(Limiter::new(10_000));
    let passed = Arc::new([const { AtomicU64::new(0) }; 3]);
    let threads: Vec<_> = (0..8_u64)
        .map(|thread| {
            let (limiter, passed) = (limiter.clone(), passed.clone());
            std::thread::spawn(move || {
                for round in 0..2_000_u64 {
                    // Two counters in either order, and a third alone.
                    let (a, b) = (hit("a", 500, 3600), hit("b", 700, 3600));
                    let hits = if (thread + round) % 2 == 0 { [a, b] } else { [b, a] };
                    if fits(&limiter.check(&hits, SECOND, true)) {
                        passed[0].fetch_add(1, Ordering::Relaxed);
                    }
                    if fits(&limiter.check(&[hit("b", 700, 3600)], SECOND, true)) {
                        passed[1].fetch_add(1, Ordering::Relaxed);
                    }
                    if fits(&limiter.check(&[hit("c", 123, 3600)], SECOND, true)) {
                        passed[2].fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let [both, alone, third] = passed.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(both <= 500, "{both}");
    assert_eq!(both + alone, 700, "all of b, and no more");
    assert_eq!(third, 123);
}

/// Every request that passed, with its time; a window is looked for by going through all of them.
#[derive(Default)]
struct Naive(BTreeMap<String, Vec<(u128, u64)>>);

impl Naive {
    fn count(&self, hit: &Hit<'_>, now: u128) -> u64 {
        let mut start = None;
        let mut count = 0;
        for (at, _) in self.0.get(&*hit.key).into_iter().flatten() {
            match start {
                Some(start) if at - start < hit.rate.window.as_nanos() => count += 1,
                _ => {
                    start = Some(*at);
                    count = 1;
                }
            }
        }
        match start {
            Some(start) if now - start < hit.rate.window.as_nanos() => count,
            _ => 0,
        }
    }

    fn check(&mut self, hits: &[Hit<'_>], now: u128) -> bool {
        let fits = hits.iter().all(|hit| self.count(hit, now) < hit.rate.limit);
        if fits {
            let counters: BTreeSet<&str> = hits.iter().map(|hit| &*hit.key).collect();
            for key in counters {
                self.0.entry(key.to_owned()).or_default().push((now, 1));
            }
        }
        fits
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn counters_agree_with_a_naive_model(
        limits in prop::collection::vec((0_u64..9, 0_usize..2, 1_u64..4), 1..6),
        requests in prop::collection::vec((0_u64..6, any::<u8>()), 1..80),
    ) {
        let limiter = Limiter::new(10_000);
        let mut naive = Naive::default();
        let mut now = 1_000 * SECOND;
        for (pause, which) in requests {
            now += u128::from(pause) * SECOND;
            let hits: Vec<Hit<'_>> = limits
                .iter()
                .enumerate()
                .filter(|(at, _)| which & (1 << at) != 0)
                // Few names and windows, so that some share a counter.
                .map(|(_, (limit, name, window))| hit(&format!("l{name}"), *limit, *window * 6))
                .collect();
            let expected = naive.check(&hits, now);
            proptest::prop_assert_eq!(fits(&limiter.check(&hits, now, true)), expected);
        }
    }
}
