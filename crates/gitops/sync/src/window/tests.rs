//! Schedules, windows, and several windows together.

use serde_json::{Value, json};

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn window(value: &Value) -> SyncWindow {
    let mut full = json!({"kind": "allow", "schedule": "0 9 * * *", "duration": "8h", "applications": ["*"]});
    full.as_object_mut()
        .unwrap()
        .extend(value.as_object().unwrap().clone());
    serde_json::from_value(full).unwrap()
}

#[test]
fn schedules_have_a_next_time() {
    let cases = [
        ("* * * * *", "2026-11-16T10:00:30", "2026-11-16T10:01:00"),
        ("0 9 * * *", "2026-11-16T09:00:00", "2026-11-17T09:00:00"),
        ("*/15 8-10 * * *", "2026-11-16T08:46:00", "2026-11-16T09:00:00"),
        ("30 22 * * mon-fri", "2026-11-20T23:00:00", "2026-11-23T22:30:00"),
        ("0 0 1 jan *", "2026-11-16T00:00:00", "2027-01-01T00:00:00"),
        ("0 0 29 2 *", "2026-11-16T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 13 * 5", "2026-11-16T00:00:00", "2026-11-20T00:00:00"),
        ("0 0 */2 * 5", "2026-11-16T00:00:00", "2026-11-27T00:00:00"),
        ("5/20 * * * ?", "2026-11-16T10:25:00", "2026-11-16T10:45:00"),
    ];
    for (text, after, expected) in cases {
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(
            schedule.next(after.parse().unwrap()),
            Some(expected.parse().unwrap()),
            "{text}"
        );
    }
    let never: Schedule = "0 0 31 2 *".parse().unwrap();
    assert_eq!(never.next("2026-01-01T00:00:00".parse().unwrap()), None);
    for text in [
        "",
        "* * * *",
        "60 * * * *",
        "* * 0 * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "@daily",
    ] {
        assert!(text.parse::<Schedule>().is_err(), "{text}");
    }
}

#[test]
fn windows_open_and_close() {
    let cases = [
        (json!({}), "2026-11-16T09:00:00Z", false),
        (json!({}), "2026-11-16T09:00:01Z", true),
        (json!({}), "2026-11-16T16:59:59Z", true),
        (json!({}), "2026-11-16T17:00:00Z", false),
        (json!({"timeZone": "Europe/Berlin"}), "2026-11-16T08:30:00Z", true),
        (json!({"timeZone": "Europe/Berlin"}), "2026-07-16T07:30:00Z", true),
        (
            json!({"timeZone": "America/New_York"}),
            "2026-11-16T08:30:00Z",
            false,
        ),
        (
            json!({"schedule": "0 22 * * *", "duration": "4h"}),
            "2026-11-16T01:00:00Z",
            true,
        ),
    ];
    for (value, now, expected) in cases {
        assert_eq!(
            window(&value).is_active(at(now)),
            Ok(expected),
            "{value} at {now}"
        );
    }
    let faults = [
        (json!({"schedule": "daily"}), "cannot parse schedule 'daily'"),
        (json!({"duration": "3"}), "cannot parse duration '3'"),
        (
            json!({"timeZone": "Mars/Base"}),
            "cannot parse 'Mars/Base' as a time zone",
        ),
    ];
    for (value, expected) in faults {
        let error = window(&value)
            .is_active(at("2026-11-16T09:00:00Z"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn windows_are_about_applications() {
    let subject = Subject {
        application: "shop-web",
        server: "https://kubernetes.default.svc",
        cluster: "in-cluster",
        namespace: "shop",
    };
    let cases = [
        (json!({"applications": ["shop-*"]}), true),
        (json!({"applications": ["other"]}), false),
        (json!({"applications": [], "namespaces": ["shop"]}), true),
        (json!({"applications": ["other"], "namespaces": ["shop"]}), true),
        (
            json!({"applications": ["other"], "namespaces": ["shop"], "andOperator": true}),
            false,
        ),
        (
            json!({"applications": ["shop-*"], "namespaces": ["shop"], "andOperator": true}),
            true,
        ),
        (json!({"applications": [], "clusters": ["in-cluster"]}), true),
        (json!({"applications": [], "clusters": ["https://*"]}), true),
        (json!({"applications": []}), false),
        (json!({"applications": [], "andOperator": true}), false),
    ];
    for (value, expected) in cases {
        assert_eq!(window(&value).is_about(subject), expected, "{value}");
    }
}

#[test]
fn windows_decide_together() {
    let open = json!({"schedule": "0 0 * * *", "duration": "24h"});
    let closed = json!({"schedule": "0 0 1 1 *", "duration": "1h"});
    let with = |base: &Value, more: Value| {
        let mut value = base.clone();
        value
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        window(&value)
    };
    let allow = |base| with(base, json!({}));
    let deny = |base| with(base, json!({"kind": "deny"}));
    let cases = [
        ("none", vec![], true, true),
        ("an open one", vec![allow(&open)], true, true),
        ("a closed one", vec![allow(&closed)], false, false),
        ("open and closed", vec![allow(&open), allow(&closed)], true, true),
        ("denied", vec![allow(&open), deny(&open)], false, false),
        ("not denied now", vec![deny(&closed)], true, true),
        (
            "closed, by hand",
            vec![with(&closed, json!({"manualSync": true}))],
            false,
            true,
        ),
        (
            "denied, by hand",
            vec![with(&open, json!({"kind": "deny", "manualSync": true}))],
            false,
            true,
        ),
        (
            "denied twice, by hand once",
            vec![
                with(&open, json!({"kind": "deny", "manualSync": true})),
                deny(&open),
            ],
            false,
            false,
        ),
    ];
    let now = at("2026-11-16T12:00:00Z");
    for (reason, windows, alone, by_hand) in cases {
        assert_eq!(may_sync(&windows, now, false, None), Ok(alone), "{reason}");
        assert_eq!(
            may_sync(&windows, now, true, None),
            Ok(by_hand),
            "{reason}, by hand"
        );
    }
    let overrun = window(&json!({"syncOverrun": true}));
    let late = at("2026-11-16T18:00:00Z");
    let in_time = Some(at("2026-11-16T16:59:00Z"));
    assert_eq!(
        may_sync(std::slice::from_ref(&overrun), late, false, in_time),
        Ok(true)
    );
    assert_eq!(
        may_sync(std::slice::from_ref(&overrun), late, false, Some(late)),
        Ok(false)
    );
    assert_eq!(may_sync(&[window(&json!({}))], late, false, in_time), Ok(false));
}
