//! Times: seconds since 1970 inside, RFC 3339 in objects.

use jiff::Timestamp;

/// Seconds since 1970 of a time in an object; none if it is not one.
pub fn read(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

/// A time as objects have it.
pub fn write(seconds: i64) -> String {
    Timestamp::from_second(seconds).map_or_else(|_| String::new(), |it| it.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_kubernetes() {
        assert_eq!(write(1_700_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(read("2023-11-14T22:13:20Z"), Some(1_700_000_000));
        assert_eq!(read(&write(0)), Some(0));
        assert_eq!(read("yesterday"), None);
    }
}
