//! One contract, every backend. A case gets an empty store (or a part of one that nobody else uses), and
//! believes nothing of it but what the trait says.
#![expect(clippy::unwrap_used, reason = "what tests share panics as tests do")]

mod backend;
mod changes;
mod concurrency;
mod crash;
mod disk;
// Debian's etcd is a program for Linux; what we say to it is compiled for Windows and run here.
#[cfg(not(windows))]
mod etcd;
mod leases;
#[cfg(not(windows))]
mod members;
mod model;
mod saving;
mod state;
mod support;

/// Names the cases once, and makes a test of each for every backend.
macro_rules! contract {
    ($($module:ident::$case:ident,)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let store = crate::backend::memory();
                crate::support::in_time(crate::$module::$case(store)).await;
            })*
        }

        mod local {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _folder) = crate::backend::local().await;
                crate::support::in_time(crate::$module::$case(store)).await;
            })*
        }

        /// One test for all cases: they share a server, whose revisions they count.
        #[cfg(not(windows))]
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn etcd_keeps_the_whole_contract() {
            let server = crate::etcd::Server::start().await;
            $({
                let case = stringify!($case);
                println!("{case}");
                let store = server.store(case).await;
                crate::support::in_time(crate::$module::$case(store)).await;
            })*
        }
    };
}

contract! {
    state::a_key_is_created_once,
    state::a_key_is_replaced_by_whoever_saw_its_newest_value,
    state::a_key_that_was_deleted_begins_anew,
    state::a_transaction_is_one_revision,
    state::nothing_is_written_if_one_condition_fails,
    state::deleting_what_is_absent_changes_nothing,
    state::one_key_cannot_be_written_twice_in_a_transaction,
    state::what_no_store_accepts_is_refused,
    state::values_may_be_empty_or_large,
    state::a_prefix_is_no_folder,
    state::keys_sort_as_bytes,
    state::pages_follow_each_other,
    state::old_states_can_be_listed,
    state::the_future_cannot_be_listed,
    changes::a_watch_sees_every_change_with_what_was_before,
    changes::a_watch_sees_only_its_prefix_and_tells_its_progress,
    changes::a_watch_begins_in_the_past_now_or_later,
    changes::a_slow_watch_delays_nobody,
    changes::a_forgotten_revision_is_told_apart,
    changes::compaction_keeps_the_newest_state_and_what_follows,
    concurrency::watches_from_every_revision_agree_while_writers_write,
    concurrency::pages_are_of_one_revision_while_writers_write,
    concurrency::no_increment_is_lost,
    leases::keys_go_with_their_lease,
    leases::a_renewed_lease_stays,
    leases::a_revoked_lease_takes_its_keys_at_once,
    leases::a_key_leaves_its_lease_when_it_is_written_again,
    leases::an_ended_lease_cannot_be_used,
    saving::a_backup_restores_to_the_same_state,
    model::random_operations_agree_with_a_plain_map,
}
