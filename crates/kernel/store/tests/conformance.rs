//! One suite for every backend: what a caller of the trait may rely on.
//!
//! A backend is a row in `backends!`; a case is a function in one of the modules. Each case gets a fresh store.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "conformance/harness.rs"]
mod harness;
#[path = "conformance/leases.rs"]
mod leases;
#[path = "conformance/reads.rs"]
mod reads;
#[path = "conformance/transactions.rs"]
mod transactions;
#[path = "conformance/watches.rs"]
mod watches;

use harness::{Fixture, crash_test, embedded, memory};

macro_rules! cases {
    ($backend:ident: $($module:ident { $($case:ident),* $(,)? })*) => {
        $(
            mod $module {
                $(
                    #[tokio::test]
                    async fn $case() {
                        let fixture: crate::Fixture = crate::$backend();
                        crate::$module::$case(&fixture).await;
                    }
                )*
            }
        )*
    };
}

macro_rules! backends {
    ($($name:ident = $backend:ident),* $(,)?) => {
        $(
            mod $name {
                cases! { $backend:
                    transactions {
                        a_put_creates_then_updates,
                        revisions_rise_by_one_per_writing_transaction,
                        a_failed_comparison_runs_the_other_branch,
                        every_comparison_target_is_compared,
                        a_deleted_key_starts_again,
                        operations_see_those_before_them,
                        a_range_is_deleted_in_one_revision,
                        deleting_nothing_is_not_a_write,
                        a_transaction_that_fails_leaves_nothing_behind,
                        a_key_is_written_once_per_transaction,
                        limits_are_those_of_etcd,
                        exactly_one_of_many_rivals_wins,
                        concurrent_writers_get_distinct_revisions,
                        a_closed_store_says_so,
                    }
                    reads {
                        ranges_are_half_open_and_ordered,
                        a_limit_cuts_and_says_so,
                        keys_only_and_count_only,
                        the_past_stays_readable,
                        the_future_is_refused,
                        compaction_forgets_what_is_before_it,
                        compaction_keeps_what_is_current,
                        large_values_come_back_whole,
                    }
                    watches {
                        a_watch_follows,
                        a_watch_replays_then_follows_without_gap,
                        a_watch_replays_from_disk,
                        a_revision_is_one_batch,
                        a_watch_sees_only_its_range,
                        previous_values_come_on_request,
                        a_watch_of_the_compacted_past_ends,
                        a_watch_may_start_at_the_compacted_revision,
                        a_watch_of_the_future_waits,
                        a_slow_watcher_is_told_and_can_resume,
                        an_idle_watch_reports_progress,
                        closing_ends_watches,
                        watches_of_many_writers_lose_nothing,
                    }
                    leases {
                        expiry_deletes_the_keys,
                        renewal_postpones_expiry,
                        revocation_deletes_in_one_revision,
                        a_key_can_leave_its_lease,
                        an_unknown_lease_is_refused,
                    }
                }
            }
        )*
    };
}

backends! { memory_store = memory, embedded_store = embedded, crash_test_store = crash_test }
