//! Disks that are being filled: work that takes longer than a look at an object.
//!
//! A job belongs to one claim. It waits for its turn, runs, and leaves its outcome for whoever looks at the claim next, who is
//! woken. What failed is begun again later each time. Ending a job leaves nothing half done: what it has fetched is found by the
//! next.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairway_controller::backoff::Backoff;
use fairway_controller::{ObjectKey, Queue, WorkspaceId};
use fairway_machines_image::ImageError;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How many disks are filled at once. Each has a connection and unpacks on a core of its own.
const AT_ONCE: usize = 8;
/// How many of them one workspace may fill: who has many does not keep others from theirs.
const OF_A_WORKSPACE: usize = 4;
/// How soon what failed is tried again.
const RETRIES: Backoff = Backoff {
    first: Duration::from_secs(2),
    most: Duration::from_secs(300),
};

/// A claim: its workspace and its UID.
pub(crate) type JobKey = (WorkspaceId, String);

/// Why a disk is not filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct FillError {
    /// What happened, in a sentence.
    pub(crate) message: String,
    /// Whether trying again is of no use before somebody changes something.
    pub(crate) is_final: bool,
}

impl FillError {
    /// Trying again may help.
    pub(crate) fn passing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_final: false,
        }
    }

    /// Somebody has to change something.
    pub(crate) fn last(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_final: true,
        }
    }
}

impl From<ImageError> for FillError {
    fn from(error: ImageError) -> Self {
        let is_final = matches!(
            error,
            ImageError::Unusable { .. }
                | ImageError::TooLarge { .. }
                | ImageError::Checksum { .. }
                | ImageError::Name(_)
                | ImageError::Download { is_final: true, .. }
        );
        Self {
            message: sentence(&error),
            is_final,
        }
    }
}

/// An error with what lies behind it.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

/// How far a job is, as it tells itself.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// So much of so much.
    pub(crate) fn set(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Which part is done, if it is known how much there is to do.
    #[expect(clippy::cast_precision_loss, reason = "it is shown with two digits")]
    fn part(&self) -> Option<f64> {
        let (done, total) = (
            self.done.load(Ordering::Relaxed),
            self.total.load(Ordering::Relaxed),
        );
        (total > 0).then(|| done as f64 / total as f64)
    }

    /// Whether nobody wants the result any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// A job as others see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// There is none.
    None,
    /// Others come first.
    Scheduled,
    /// It is under way.
    Running(Option<f64>),
    /// It has failed, and may be begun again after this time.
    Failed(FillError, Duration),
    /// The disk is there.
    Done,
}

struct Job {
    progress: Arc<Progress>,
    is_running: Arc<AtomicBool>,
    outcome: Option<(Result<(), FillError>, Instant)>,
    /// How often it was tried in vain before.
    failures: u32,
    ended: Arc<Notify>,
    task: Option<AbortHandle>,
}

/// All jobs.
pub(crate) struct Fills {
    jobs: Mutex<HashMap<JobKey, Job>>,
    turns: Arc<Semaphore>,
    of_workspaces: Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>,
    queue: Queue<ObjectKey>,
}

impl Fills {
    /// Wakes claims in this queue.
    pub(crate) fn new(queue: Queue<ObjectKey>) -> Self {
        Self {
            jobs: Mutex::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            of_workspaces: Mutex::default(),
            queue,
        }
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<JobKey, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turns_of(&self, workspace: &WorkspaceId) -> Arc<Semaphore> {
        let mut all = self.of_workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody uses are forgotten.
        all.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = all.entry(workspace.clone());
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(OF_A_WORKSPACE))))
    }

    /// How far the job of a claim is.
    pub(crate) fn state(&self, key: &JobKey) -> State {
        let jobs = self.jobs();
        let Some(job) = jobs.get(key) else {
            return State::None;
        };
        match &job.outcome {
            Some((Ok(()), _)) => State::Done,
            Some((Err(error), again)) => {
                State::Failed(error.clone(), again.saturating_duration_since(Instant::now()))
            }
            None if job.is_running.load(Ordering::Relaxed) => State::Running(job.progress.part()),
            None => State::Scheduled,
        }
    }

    /// Begins a job, in place of one that has ended. `failures` says how often it was tried in vain.
    pub(crate) fn start<F>(
        self: &Arc<Self>,
        key: &JobKey,
        wake: &ObjectKey,
        failures: u32,
        work: impl FnOnce(Arc<Progress>) -> F,
    ) where
        F: Future<Output = Result<(), FillError>> + Send + 'static,
    {
        let progress = Arc::new(Progress::default());
        let is_running = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(Notify::new());
        let work = work(Arc::clone(&progress));
        self.jobs().insert(
            key.clone(),
            Job {
                progress,
                is_running: Arc::clone(&is_running),
                outcome: None,
                failures,
                ended: Arc::clone(&ended),
                task: None,
            },
        );
        // Not kept alive by its jobs: they end with it.
        let (all, key, wake) = (Arc::downgrade(self), key.clone(), wake.clone());
        let queue = self.queue.clone();
        let turns = [self.turns_of(&key.0), Arc::clone(&self.turns)];
        let (named, started) = (key.clone(), is_running);
        let task = tokio::spawn(async move {
            let mut taken = Vec::new();
            for turns in turns {
                taken.push(turns.acquire_owned().await);
            }
            started.store(true, Ordering::Relaxed);
            queue.add(wake.clone());
            let outcome = work.await;
            drop(taken);
            let again = Instant::now() + RETRIES.delay(failures + 1, fairway_controller::backoff::chance());
            if let Some(all) = all.upgrade()
                && let Some(job) = all.jobs().get_mut(&key)
            {
                job.outcome = Some((outcome, again));
            }
            ended.notify_one();
            queue.add(wake);
        });
        if let Some(job) = self.jobs().get_mut(&named) {
            job.task = Some(task.abort_handle());
        }
    }

    /// How often a job was tried in vain, the present failure included; `known` is what was noted of it.
    pub(crate) fn counted(&self, key: &JobKey, known: u32) -> u32 {
        let jobs = self.jobs();
        let counted = jobs.get(key).map_or(0, |job| match &job.outcome {
            Some((Err(_), _)) => job.failures + 1,
            _ => job.failures,
        });
        counted.max(known)
    }

    /// Waits a moment for the end of a job: what is quick is finished within one look.
    pub(crate) async fn wait(&self, key: &JobKey, moment: Duration) {
        let ended = self.jobs().get(key).map(|job| Arc::clone(&job.ended));
        if let Some(ended) = ended {
            let _ = tokio::time::timeout(moment, ended.notified()).await;
        }
    }

    /// Ends a job, if there is one, and forgets it.
    pub(crate) fn forget(&self, key: &JobKey) {
        if let Some(job) = self.jobs().remove(key) {
            job.progress.is_cancelled.store(true, Ordering::Relaxed);
            if let Some(task) = job.task {
                task.abort();
            }
        }
    }

    /// Ends all jobs.
    pub(crate) fn end(&self) {
        let keys: Vec<JobKey> = self.jobs().keys().cloned().collect();
        keys.iter().for_each(|key| self.forget(key));
    }
}

impl Drop for Fills {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> (JobKey, ObjectKey) {
        let root = WorkspaceId::root();
        (
            (root.clone(), name.to_owned()),
            ObjectKey::new(&root, "shop", name),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_ends_and_tells() {
        let queue = Queue::default();
        let fills = Arc::new(Fills::new(queue.clone()));
        let (job, wake) = key("a");
        assert_eq!(fills.state(&job), State::None);
        fills.start(&job, &wake, 0, |progress| async move {
            progress.set(1, 4);
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(FillError::passing("no route"))
        });
        assert_eq!(fills.state(&job), State::Scheduled);
        fills.wait(&job, Duration::from_millis(10)).await;
        assert_eq!(fills.state(&job), State::Running(Some(0.25)));
        fills.wait(&job, Duration::from_secs(10)).await;
        let State::Failed(error, again) = fills.state(&job) else {
            panic!("it has not failed")
        };
        assert!(
            !error.is_final && again > Duration::ZERO && again <= Duration::from_secs(4),
            "{again:?}"
        );
        assert_eq!(queue.next().await, wake);
        fills.start(&job, &wake, 1, |_| async { Ok(()) });
        fills.wait(&job, Duration::from_secs(1)).await;
        assert_eq!(fills.state(&job), State::Done);
        fills.forget(&job);
        assert_eq!(fills.state(&job), State::None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_some_run_at_once() {
        let fills = Arc::new(Fills::new(Queue::default()));
        for number in 0..=OF_A_WORKSPACE {
            let (job, wake) = key(&number.to_string());
            fills.start(&job, &wake, 0, |_| async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(())
            });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let (last, _) = key(&OF_A_WORKSPACE.to_string());
        assert_eq!(fills.state(&last), State::Scheduled);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(fills.state(&last), State::Done);
        fills.end();
    }

    #[test]
    fn what_may_help_is_tried_again() {
        let download = |why: &str, is_final| ImageError::Download {
            url: "u".to_owned(),
            why: why.to_owned(),
            is_final,
        };
        let unusable = ImageError::Unusable {
            what: "u".to_owned(),
            why: "no".to_owned(),
        };
        for (error, is_final) in [
            (download("it is not among the hosts", true), true),
            (download("the connection broke off", false), false),
            (unusable, true),
        ] {
            let shown = error.to_string();
            assert_eq!(FillError::from(error).is_final, is_final, "{shown}");
        }
    }
}
