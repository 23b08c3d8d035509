//! Layouts and durations as Go has them.

use super::{Time, Zone, parse_layout};

const MOMENT: i128 = 1_700_000_000_123_456_789;

#[test]
fn layouts_format_as_go_does() {
    let cases: &[(&str, &str, &str)] = &[
        ("UTC", "2006-01-02T15:04:05Z07:00", "2023-11-14T22:13:20Z"),
        (
            "UTC",
            "Mon Jan _2 15:04:05 MST 2006",
            "Tue Nov 14 22:13:20 UTC 2023",
        ),
        (
            "America/New_York",
            "2006-01-02 3:04PM MST -0700",
            "2023-11-14 5:13PM EST -0500",
        ),
        (
            "UTC",
            "Monday, 02-Jan-06 .000 .999999 002",
            "Tuesday, 14-Nov-23 .123 .123456 318",
        ),
        (
            "Asia/Kolkata",
            "2006-01-02T15:04:05.000Z07:00",
            "2023-11-15T03:43:20.123+05:30",
        ),
        ("UTC", "Janet 2 1", "Janet 14 11"),
    ];
    for (zone, layout, expected) in cases {
        let time = Time::utc(MOMENT).in_zone(Zone::load(zone).unwrap());
        assert_eq!(time.format(layout), *expected, "{layout}");
    }
}

#[test]
fn layouts_parse_as_go_does() {
    let cases: &[(&str, &str, Result<&str, &str>)] = &[
        ("2006-01-02", "2023-11-14", Ok("2023-11-14T00:00:00Z")),
        (
            "2006-01-02T15:04:05Z07:00",
            "2023-11-14T22:13:20.5+01:00",
            Ok("2023-11-14T22:13:20.5+01:00"),
        ),
        (
            "Jan 2, 2006 at 3:04pm (MST)",
            "Feb 3, 2013 at 7:54pm (UTC)",
            Ok("2013-02-03T19:54:00Z"),
        ),
        ("2006-01-02", "2023-02-30", Err("day out of range")),
        ("2006-01-02", "x", Err("cannot parse \"x\" as \"2006\"")),
    ];
    for (layout, value, expected) in cases {
        match (parse_layout(layout, value, &Zone::Utc), expected) {
            (Ok(time), Ok(expected)) => assert_eq!(time.rfc3339_nano(), *expected, "{layout}"),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (other, _) => panic!("{layout} {value}: {other:?}"),
        }
    }
}
