//! The loop under a clock that jumps: what it promises about order, failure and the end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::core::Status;
use tokio::time::Instant;

use super::{Controller, Outcome, Reconcile};
use crate::error::{Attempt as _, Failure};
use crate::metrics::{Metrics, Result as Tally};
use crate::queue::Queue;
use crate::shutdown::Shutdown;

/// Answers by script, one list for each key, and remembers when it was called.
#[derive(Default)]
struct Scripted {
    answers: Mutex<HashMap<&'static str, Vec<Answer>>>,
    calls: Arc<Mutex<Vec<(&'static str, Instant)>>>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    takes: Duration,
}

enum Answer {
    Again(u64),
    Poll,
    Conflict,
    Refused,
    Panic,
}

impl Reconcile<&'static str> for Scripted {
    async fn reconcile(&self, key: &&'static str) -> Result<Outcome, Failure> {
        self.calls.lock().unwrap().push((key, Instant::now()));
        let running = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        let answer = self.answers.lock().unwrap().get_mut(key).and_then(Vec::pop);
        let refuse = |code: u16, reason: &str| {
            Err(kube::Error::Api(
                Status::failure("no", reason).with_code(code).boxed(),
            ))
            .attempting("try")
        };
        match answer {
            None => Ok(Outcome::Done),
            Some(Answer::Again(seconds)) => Ok(Outcome::Again(Duration::from_secs(seconds))),
            Some(Answer::Poll) => Ok(Outcome::Poll),
            Some(Answer::Conflict) => refuse(409, "Conflict"),
            Some(Answer::Refused) => refuse(403, "Forbidden"),
            Some(Answer::Panic) => panic!("a bad object"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_counted_and_tried_again() {
    let metrics = Arc::new(Metrics::default());
    let queue = Queue::default();
    let (end, shutdown) = Shutdown::new();
    let scripted = Scripted::default();
    scripted.answers.lock().unwrap().extend([
        ("a", vec![Answer::Again(30)]),
        ("b", vec![Answer::Conflict, Answer::Conflict]),
        ("c", vec![Answer::Panic, Answer::Refused]),
        ("d", vec![Answer::Poll]),
    ]);
    let calls = Arc::clone(&scripted.calls);
    for key in ["a", "b", "c", "d"] {
        queue.add(key);
    }
    let begun = Instant::now();
    let running = tokio::spawn(Controller::new("test", queue, scripted).run(Arc::clone(&metrics), shutdown));
    tokio::time::sleep(Duration::from_secs(40)).await;
    end.shut_down();
    running.await.unwrap();
    let figures = metrics.controller("test");
    assert_eq!(figures.count(Tally::Success), 4);
    assert_eq!(figures.count(Tally::Requeue), 2);
    assert_eq!(figures.count(Tally::Conflict), 2);
    assert_eq!(figures.count(Tally::Error), 2);
    let calls = calls.lock().unwrap();
    let times: Vec<_> = calls
        .iter()
        .filter(|c| c.0 == "a")
        .map(|c| (c.1 - begun).as_secs())
        .collect();
    assert_eq!(times, [0, 30]);
}

#[tokio::test(start_paused = true)]
async fn workers_are_bounded_and_a_key_is_never_worked_on_twice_at_once() {
    for (keys, workers, want) in [(vec!["a", "b", "c", "d"], 2, 2), (vec!["a", "a", "a"], 4, 1)] {
        let queue = Queue::default();
        let (end, shutdown) = Shutdown::new();
        let scripted = Scripted {
            takes: Duration::from_secs(1),
            ..Scripted::default()
        };
        let (most, calls) = (Arc::clone(&scripted.most), Arc::clone(&scripted.calls));
        let controller = Controller::new("test", queue.clone(), scripted).workers(workers);
        let running = tokio::spawn(controller.run(Arc::default(), shutdown));
        for key in &keys {
            queue.add(*key);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        end.shut_down();
        running.await.unwrap();
        assert_eq!(most.load(Ordering::SeqCst), want);
        assert!(calls.lock().unwrap().len() >= 2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_finished_and_nothing_new_begun() {
    let queue = Queue::default();
    let (end, shutdown) = Shutdown::new();
    let scripted = Scripted {
        takes: Duration::from_secs(5),
        ..Scripted::default()
    };
    let (now, calls) = (Arc::clone(&scripted.now), Arc::clone(&scripted.calls));
    let running =
        tokio::spawn(Controller::new("test", queue.clone(), scripted).run(Arc::default(), shutdown));
    queue.add("a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.add("b");
    end.shut_down();
    running.await.unwrap();
    assert_eq!(now.load(Ordering::SeqCst), 0);
    let names: Vec<_> = calls.lock().unwrap().iter().map(|c| c.0).collect();
    assert_eq!(names, ["a"]);
}
