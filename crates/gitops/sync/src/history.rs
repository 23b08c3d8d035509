//! What was synced, newest last, and what a rollback goes back to.

use serde_json::Value;

/// How many entries are kept unless `spec.revisionHistoryLimit` says otherwise.
pub const DEFAULT_LIMIT: usize = 10;

/// The history with a new entry, which gets the next number. Without room for any entry there is no history.
pub fn append(history: &[Value], mut entry: Value, limit: usize) -> Vec<Value> {
    let number = |entry: &Value| entry["id"].as_i64().unwrap_or(0);
    let next = history.iter().map(number).max().map_or(0, |last| last + 1);
    if let Some(fields) = entry.as_object_mut() {
        fields.insert("id".to_owned(), next.into());
    }
    let mut all: Vec<Value> = history.to_vec();
    all.push(entry);
    let excess = all.len().saturating_sub(limit);
    all.split_off(excess)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_numbered_and_the_oldest_go() {
        let ids =
            |history: &[Value]| -> Vec<i64> { history.iter().filter_map(|e| e["id"].as_i64()).collect() };
        let mut history = Vec::new();
        for (revision, expected) in [
            ("a", vec![0]),
            ("b", vec![0, 1]),
            ("c", vec![1, 2]),
            ("d", vec![2, 3]),
        ] {
            history = append(&history, json!({"revision": revision}), 2);
            assert_eq!(ids(&history), expected, "{revision}");
        }
        assert_eq!(history[1]["revision"], "d");
        assert!(append(&history, json!({}), 0).is_empty());
    }
}
