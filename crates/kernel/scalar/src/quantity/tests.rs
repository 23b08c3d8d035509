//! Quantities by example; the expected texts are what apimachinery answers.

use super::*;

fn canonical(text: &str) -> Result<String, QuantityError> {
    text.parse::<Quantity>().map(Quantity::canonical)
}

fn q(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[test]
fn canonical_forms_are_upstream_s() {
    for (text, expected) in [
        ("0", "0"),
        ("0Ki", "0"),
        ("-0", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("007", "7"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.", "1"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("1023", "1023"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("12000k", "12M"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e5", "1200e3"),
        ("1e-3", "1e-3"),
        ("-5m", "-5m"),
        ("0.1n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("100000E", "100000E"),
        ("9223372036854775807Ei", "9223372036854775807"),
        ("0.0000001Ki", "102400n"),
        ("1e99", "1e99"),
        (
            "9999999999999999999999999999999999999e1",
            "99999999999999999999999999999999999990",
        ),
        (
            "9999999999999999999999999999999999999e2",
            "999999999999999999999999999999999999900",
        ),
        ("1e1000000", "10e999999"),
        ("5e-20", "1e-9"),
        ("1E1", "10"),
        ("-1.5Ki", "-1536"),
        ("-2048Ki", "-2Mi"),
        ("1.0001Ki", "1024102400u"),
        ("1500.5Ki", "1536512"),
        ("9223372036854775808", "9223372036854775808"),
        ("-99999999Ei", "-9223372036854775807"),
        ("123456E", "123456E"),
        ("0.00000000000000001E", "10"),
        ("128974848", "128974848"),
        ("129e6", "129e6"),
        ("1E", "1E"),
        ("Ki", "0"),
        ("-", "0"),
    ] {
        assert_eq!(canonical(text), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn nonsense_is_refused() {
    for (text, error) in [
        ("", QuantityError::Format),
        ("abc", QuantityError::Format),
        ("true", QuantityError::Format),
        ("1 Gi", QuantityError::Format),
        ("1.2.3", QuantityError::Format),
        ("1Kii", QuantityError::Suffix),
        ("1K", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1e99999999999", QuantityError::Suffix),
        ("--1", QuantityError::Suffix),
        ("1gi", QuantityError::Format),
        ("1KI", QuantityError::Format),
        ("1mm", QuantityError::Suffix),
        ("0x10", QuantityError::Format),
        ("1e1.5", QuantityError::Format),
        (
            "99999999999999999999999999999999999999999",
            QuantityError::Numeric,
        ),
    ] {
        assert_eq!(canonical(text), Err(error), "{text}");
    }
    let long = "9".repeat(100_000);
    assert_eq!(canonical(&long), Err(QuantityError::Numeric));
    assert!(q(&format!("0.{long}Gi")) < q("1Gi"));
    assert_eq!(q(&format!("0.{}1Ei", "0".repeat(100_000))).canonical(), "1n");
    assert_eq!(q(&format!("0.{}1", "0".repeat(100_000))).canonical(), "1n");
}

#[test]
fn text_is_kept_where_upstream_keeps_it() {
    for text in [
        "0", "1", "+1", "007", "1.", "100m", "1500m", "1E3", "512Mi", "1Gi", "-5m", "1e-3", "1000Ki", "1.Ki",
    ] {
        assert_eq!(stored_form(text), Ok(None), "{text}");
    }
    for (text, stored) in [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1000.0", "1k"),
        ("100.00n", "100n"),
        ("-0", "0"),
        ("12e5", "1200e3"),
        ("1.5e3", "1500"),
        ("1e20", "100e18"),
        ("m", "0"),
    ] {
        assert_eq!(stored_form(text), Ok(Some(stored.to_owned())), "{text}");
    }
}

#[test]
fn quantities_compare_by_value() {
    assert_eq!(q("1"), q("1000m"));
    assert!(q("1Gi") > q("1G") && q("-1") < q("0") && q("-2") < q("-1"));
    assert!(q("1e1000000") > q("1e999999") && q("-1e1000000") < q("1n"));
    assert_eq!(q("0Ki"), q("0e1000000"));
}

#[test]
fn whole_numbers_round_away_from_zero_and_are_capped() {
    for (text, value, milli) in [
        ("-0.5", -1, -500),
        ("-1500u", -1, -2),
        ("1.0001Ki", 1025, 1_024_103),
        ("5e-20", 1, 1),
        ("9223372036854775807", i64::MAX, i64::MAX),
        ("1e99", i64::MAX, i64::MAX),
        ("-1e99", i64::MIN, i64::MIN),
    ] {
        assert_eq!((q(text).value(), q(text).milli_value()), (value, milli), "{text}");
    }
    assert!(q("2").is_whole() && q("1e99").is_whole() && !q("0.5").is_whole());
    assert!(q("4Mi").is_multiple_of(q("2Mi")) && !q("3Mi").is_multiple_of(q("2Mi")));
    assert_eq!(q("1500u").round_up_milli().canonical(), "2m");
    assert_eq!(q("-1500u").round_up_milli().canonical(), "-2m");
}

#[test]
fn sums_are_exact_and_written_as_the_first() {
    for (left, right, sum, difference) in [
        ("1Gi", "512Mi", "1536Mi", "512Mi"),
        ("1Gi", "1G", "2073741824", "73741824"),
        ("100m", "1", "1100m", "-900m"),
        ("0", "1Ki", "1Ki", "-1Ki"),
        ("1e3", "1k", "2e3", "0"),
        ("1", "1n", "1000000001n", "999999999n"),
        (
            "9223372036854775807",
            "1",
            "9223372036854775808",
            "9223372036854775806",
        ),
        ("1e1000000", "1", "10e999999", "10e999999"),
    ] {
        assert_eq!(q(left).plus(q(right)).canonical(), sum, "{left} + {right}");
        assert_eq!(
            q(left).minus(q(right)).canonical(),
            difference,
            "{left} - {right}"
        );
    }
    assert_eq!(q("1e1000000").checked_add(q("1")), None);
    assert_eq!(q("1").plus(q("1e1000000")), q("1e1000000"));
    assert_eq!(q("1").minus(q("1e1000000")), q("-1e1000000"));
}
