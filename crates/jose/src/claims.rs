//! Who made a token, for whom, and whether it is its time (RFC 7519, section 4.1).

use serde_json::Value;

/// What a token must say of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expected<'a> {
    /// Exactly this, if it is asked for.
    pub issuer: Option<&'a str>,
    /// One of the token's audiences, if it is asked for.
    pub audience: Option<&'a str>,
    /// Seconds by which the issuer's clock may be ahead of ours where a token is not valid yet. Expiry knows no leeway.
    pub leeway: i64,
}

/// Why the claims of a token, though signed, are not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    #[error("the token's issuer is {found:?}, not {expected:?}")]
    Issuer { found: String, expected: String },
    #[error("the token is not meant for {0:?}")]
    Audience(String),
    #[error("the token does not say when it expires")]
    NoExpiry,
    #[error("the token has expired {0} s ago")]
    Expired(i64),
    #[error("the token is not valid yet, for another {0} s")]
    NotYet(i64),
}

/// Judges the claims at a time (seconds since 1970), and says when the token expires.
pub fn judge(claims: &Value, expected: Expected<'_>, now: i64) -> Result<i64, ClaimError> {
    if let Some(issuer) = expected.issuer {
        let found = claims["iss"].as_str().unwrap_or("");
        if found != issuer {
            return Err(ClaimError::Issuer {
                found: found.to_owned(),
                expected: issuer.to_owned(),
            });
        }
    }
    if let Some(audience) = expected.audience {
        let is_meant = match &claims["aud"] {
            Value::String(one) => one == audience,
            Value::Array(several) => several.iter().any(|one| one.as_str() == Some(audience)),
            _ => false,
        };
        if !is_meant {
            return Err(ClaimError::Audience(audience.to_owned()));
        }
    }
    let expiry = seconds(&claims["exp"]).ok_or(ClaimError::NoExpiry)?;
    if now >= expiry {
        return Err(ClaimError::Expired(now.saturating_sub(expiry)));
    }
    if let Some(from) = seconds(&claims["nbf"])
        && now.saturating_add(expected.leeway) < from
    {
        return Err(ClaimError::NotYet(from.saturating_sub(now)));
    }
    Ok(expiry)
}

/// Times may have fractions; what is no number is no time.
fn seconds(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().filter(|v| v.is_finite()).map(|v| v as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_judged() {
        let now = 1_000;
        let issuer = Expected {
            issuer: Some("https://i"),
            ..Expected::default()
        };
        let audience = Expected {
            audience: Some("api"),
            ..Expected::default()
        };
        let lenient = Expected {
            leeway: 300,
            ..Expected::default()
        };
        let any = Expected::default();
        for (claims, expected, fits, why) in [
            (json!({"exp": 1001}), any, true, "a second is left"),
            (json!({"exp": 1000}), any, false, "expired this second"),
            (json!({"exp": 1000}), lenient, false, "no leeway for expiry"),
            (json!({"exp": 1000.5}), any, false, "fractions are cut off"),
            (json!({"exp": "1001"}), any, false, "a text is no time"),
            (json!({"exp": null}), any, false, "null is no time"),
            (json!({}), any, false, "tokens must expire"),
            (json!({"exp": 1e300}), any, true, "very far away is not now"),
            (json!({"exp": -1}), any, false, "before 1970"),
            (json!({"exp": 2000, "nbf": 1001}), any, false, "not yet"),
            (
                json!({"exp": 2000, "nbf": 1300}),
                lenient,
                true,
                "within the leeway",
            ),
            (
                json!({"exp": 2000, "nbf": 1301}),
                lenient,
                false,
                "beyond the leeway",
            ),
            (
                json!({"exp": 2000, "iss": "https://i"}),
                issuer,
                true,
                "the issuer",
            ),
            (
                json!({"exp": 2000, "iss": "https://i/"}),
                issuer,
                false,
                "another issuer",
            ),
            (
                json!({"exp": 2000, "iss": ["https://i"]}),
                issuer,
                false,
                "a list is no issuer",
            ),
            (json!({"exp": 2000}), issuer, false, "no issuer"),
            (json!({"exp": 2000, "aud": "api"}), audience, true, "the audience"),
            (
                json!({"exp": 2000, "aud": ["x", "api"]}),
                audience,
                true,
                "among others",
            ),
            (json!({"exp": 2000, "aud": ["x"]}), audience, false, "for others"),
            (
                json!({"exp": 2000, "aud": {"api": 1}}),
                audience,
                false,
                "an object is none",
            ),
            (json!({"exp": 2000}), audience, false, "for nobody"),
        ] {
            assert_eq!(judge(&claims, expected, now).is_ok(), fits, "{why}: {claims}");
        }
    }
}
