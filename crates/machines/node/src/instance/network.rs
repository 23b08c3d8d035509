//! What an instance says of networks that its machine is not connected to.

use fairway_machines_plan::view::Condition;
use fairway_machines_wiring::Problem;
use tokio::sync::watch;

/// The condition of an instance some of whose cards are not connected. One whose cards all are has none.
pub(super) const CONDITION: &str = "NetworksConnected";

/// What is to be said about these problems.
pub(super) fn condition(problems: &[Problem]) -> Option<Condition> {
    let first = problems.first()?;
    let told: Vec<&str> = problems.iter().map(|it| it.message.as_str()).collect();
    Some(Condition::fails(CONDITION, first.reason, told.join(" ")))
}

/// Returns when there may be something new to say.
pub(super) async fn changed(troubles: &mut Option<watch::Receiver<u64>>) {
    if let Some(heard) = troubles
        && heard.changed().await.is_ok()
    {
        return;
    }
    // Nobody is left who would say anything.
    *troubles = None;
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(reason: &'static str, message: &str) -> Problem {
        Problem {
            reason,
            message: message.to_owned(),
        }
    }

    #[test]
    fn cards_that_are_not_connected_are_named() {
        assert_eq!(condition(&[]), None);
        let problems = [
            problem(
                "NetworkNotServed",
                "The card lan is not connected: networks of type macvlan are not available.",
            ),
            problem("NetworkNotFound", "The card dmz is not connected: there is none."),
        ];
        let told = condition(&problems).unwrap();
        assert_eq!(
            (told.kind.as_str(), told.status.as_str(), told.reason.as_str()),
            ("NetworksConnected", "False", "NetworkNotServed")
        );
        assert_eq!(
            told.message,
            "The card lan is not connected: networks of type macvlan are not available. The card dmz is not connected: there is none."
        );
    }

    #[tokio::test]
    async fn whoever_waits_is_woken_once_for_each_change() {
        let (sender, receiver) = watch::channel(0);
        let mut troubles = Some(receiver);
        let soon = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, changed(&mut troubles)).await.is_err());
        sender.send_modify(|count| *count += 1);
        assert!(tokio::time::timeout(soon, changed(&mut troubles)).await.is_ok());
        assert!(tokio::time::timeout(soon, changed(&mut troubles)).await.is_err());
        drop(sender);
        // Not again and again.
        assert!(tokio::time::timeout(soon, changed(&mut troubles)).await.is_err());
        assert!(troubles.is_none());
    }
}
