//! The rules of the queue, one script each.

use std::time::Duration;

use tokio::time::Instant;

use super::{Queue, State, WorkKey};
use crate::key::{ObjectKey, WorkspaceId};

/// Keys that are as good as any where workspaces do not matter.
macro_rules! of_the_root {
    ($($key:ty),*) => { $(
        impl WorkKey for $key {
            fn workspace(&self) -> &WorkspaceId {
                WorkspaceId::root_ref()
            }
        }
    )* };
}
of_the_root!(&'static str, u8, i32);

#[tokio::test(start_paused = true)]
async fn scripts() {
    enum Step {
        Add(&'static str),
        AddAt(&'static str, u64),
        Done(&'static str),
        /// What comes next at that time.
        Next(u64, Option<&'static str>),
    }
    use Step::{Add, AddAt, Done, Next};
    let cases: [(&str, &[Step]); 6] = [
        (
            "keys come in order",
            &[
                Add("a"),
                Add("b"),
                Next(0, Some("a")),
                Next(0, Some("b")),
                Next(0, None),
            ],
        ),
        (
            "a key waits once",
            &[Add("a"), Add("a"), Next(0, Some("a")), Next(0, None)],
        ),
        (
            "a key is not worked on twice at once, and what came meanwhile is done afterwards",
            &[
                Add("a"),
                Next(0, Some("a")),
                Add("a"),
                Next(0, None),
                Done("a"),
                Next(0, Some("a")),
                Done("a"),
                Next(0, None),
            ],
        ),
        (
            "a delayed key comes in time",
            &[AddAt("a", 5), Next(4, None), Next(5, Some("a"))],
        ),
        (
            "the earlier time counts",
            &[
                AddAt("a", 5),
                AddAt("a", 9),
                Next(5, Some("a")),
                Done("a"),
                Next(9, None),
                AddAt("b", 9),
                AddAt("b", 2),
                Next(2, Some("b")),
            ],
        ),
        (
            "a key that is due while it is worked on is done afterwards",
            &[
                Add("a"),
                Next(0, Some("a")),
                AddAt("a", 1),
                Next(1, None),
                Done("a"),
                Next(1, Some("a")),
            ],
        ),
    ];
    let start = Instant::now();
    let at = |seconds: u64| start + Duration::from_secs(seconds);
    for (name, steps) in cases {
        let mut state = State::default();
        for (number, step) in steps.iter().enumerate() {
            match step {
                Add(key) => state.add(*key),
                AddAt(key, when) => state.add_at(*key, at(*when)),
                Done(key) => state.done(key),
                Next(when, want) => assert_eq!(state.next(at(*when)), *want, "{name}, step {number}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn waits_for_what_is_due() {
    let queue = Queue::default();
    let begun = Instant::now();
    queue.add_after("late", Duration::from_secs(60));
    queue.add_after("soon", Duration::from_secs(1));
    assert_eq!(queue.depth(), 2);
    assert_eq!(queue.next().await, "soon");
    assert_eq!(queue.next().await, "late");
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
}

#[tokio::test]
async fn a_waiting_dispatcher_is_woken() {
    let queue: Queue<u8> = Queue::default();
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.next().await }
    });
    tokio::task::yield_now().await;
    queue.add(7);
    assert_eq!(waiting.await.unwrap(), 7);
}

#[test]
fn failures_count_until_forgotten() {
    let queue = Queue::default();
    assert_eq!((queue.fail(&1), queue.fail(&1), queue.fail(&2)), (1, 2, 1));
    queue.forget(&1);
    assert_eq!(queue.fail(&1), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flood_in_one_workspace_leaves_the_others_their_turns() {
    let at = |workspace: &str, name: &str| ObjectKey::new(&WorkspaceId::parse(workspace).unwrap(), "", name);
    let queue = Queue::default();
    for number in 0..1000 {
        queue.add(at("loud", &number.to_string()));
    }
    queue.add_after(at("late", "x"), Duration::from_secs(1));
    queue.add(at("quiet", "x"));
    let mut order = Vec::new();
    for _ in 0..3 {
        order.push(queue.next().await.to_string());
    }
    assert_eq!(order, ["loud|0", "quiet|x", "loud|1"]);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(queue.next().await.to_string(), "loud|2", "it was waiting already");
    assert_eq!(queue.next().await.to_string(), "late|x");
    assert_eq!(queue.depth(), 997);
}

#[test]
fn a_burst_leaves_no_memory_behind() {
    let mut state = State::default();
    let now = Instant::now();
    for key in 0..10_000 {
        state.add(key);
        state.add_at(key, now);
        state.fail(&key);
    }
    let mut held = Vec::new();
    while let Some(key) = state.next(now) {
        held.push(key);
    }
    for key in &held {
        state.done(key);
        state.forget(key);
    }
    assert_eq!(held.len(), 10_000);
    let kept = [
        state.working.capacity(),
        state.due.capacity(),
        state.failures.capacity(),
    ];
    assert!(kept.iter().all(|kept| *kept < 200), "{kept:?}");
}
