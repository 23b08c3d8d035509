//! Copies of requests: several of one request, and a share of all.

use std::time::Duration;

use fairway_gateway_routes::table::{Filter, Mirror};

use crate::backend::Backend;
use crate::raw;
use crate::rig::{Rig, cluster, filtered, http_table, to};

fn copies(to_whom: &str, numerator: u32, denominator: u32) -> Filter {
    Filter::Mirror(Mirror {
        to: to(to_whom),
        numerator,
        denominator,
    })
}

/// Waits until as many copies have arrived, and a little longer for those that must not.
async fn settled(backend: &Backend, least: usize) -> usize {
    for _ in 0..250 {
        if backend.seen() >= least {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    backend.seen()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_several_gets_its_copy() {
    let (web, one, two) = (
        Backend::start("web").await,
        Backend::start("one").await,
        Backend::start("two").await,
    );
    let all = vec![copies("one", 1, 1), copies("two", 1, 1), copies("nobody", 1, 1)];
    let clusters = vec![
        cluster("web", &[web.address]),
        cluster("one", &[one.address]),
        cluster("two", &[two.address]),
        cluster("nobody", &[]),
    ];
    let rig = Rig::new(http_table(vec![("/", filtered("web", all))], clusters));
    for _ in 0..5 {
        let answer = raw::ask(rig.door, "POST", "/", &[("host", "a")], "thrice").await;
        assert!(
            answer.contains("web POST /") && answer.contains("body: 6 thrice"),
            "{answer}"
        );
    }
    assert_eq!((settled(&one, 5).await, settled(&two, 5).await), (5, 5));
    assert_eq!(web.seen(), 5, "and the request itself once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_requests_is_copied() {
    let (web, copy, none) = (
        Backend::start("web").await,
        Backend::start("copy").await,
        Backend::start("none").await,
    );
    let all = vec![copies("copy", 25, 100), copies("none", 0, 100)];
    let clusters = vec![
        cluster("web", &[web.address]),
        cluster("copy", &[copy.address]),
        cluster("none", &[none.address]),
    ];
    let rig = Rig::new(http_table(vec![("/", filtered("web", all))], clusters));
    for _ in 0..400 {
        assert_eq!(raw::status(&raw::get(rig.door, "/").await), 200);
    }
    let seen = settled(&copy, 60).await;
    // Of a hundred expected, five standard deviations on both sides.
    assert!((56..=144).contains(&seen), "a quarter of 400: {seen}");
    assert_eq!(none.seen(), 0, "none of none");
}
