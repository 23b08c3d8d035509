//! Tokens of projects' roles: what they say, and whether the project still knows them.
//!
//! A token is a JWT that the installation signed (`iss: argocd`, `sub: proj:PROJECT:ROLE`, `iat`, `jti`, and `exp` unless it is
//! good for ever). The project lists those that hold, in `status.jwtTokensByRole` and in `spec.roles[].jwtTokens`; whoever takes
//! one off the lists revokes it. Keys and clocks are the caller's.

use serde_json::{Map, Value, json};

use super::roles::PREFIX;

/// Who made a token.
pub const ISSUER: &str = "argocd";

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectToken {
    /// The project.
    pub project: String,
    /// The role.
    pub role: String,
    /// Its name among those of the role.
    pub id: String,
    /// When it was made, in seconds since 1970.
    pub issued: i64,
    /// When it ends; 0: never.
    pub expires: i64,
}

impl ProjectToken {
    /// The claims that are signed.
    pub fn claims(&self) -> Value {
        let mut claims = json!({
            "iss": ISSUER, "sub": super::roles::subject(&self.project, &self.role),
            "iat": self.issued, "nbf": self.issued, "jti": self.id,
        });
        if self.expires != 0 {
            claims["exp"] = self.expires.into();
        }
        claims
    }

    /// Reads claims whose signature is good.
    ///
    /// # Errors
    /// They are not those of a project's role, or their time is over or has not come.
    pub fn read(claims: &Value, now: i64) -> Result<Self, String> {
        if claims["iss"] != ISSUER {
            return Err(format!("the issuer is not {ISSUER}"));
        }
        let subject = claims["sub"].as_str().unwrap_or_default();
        let role = subject
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split_once(':'))
            .filter(|(project, role)| !project.is_empty() && !role.is_empty() && !role.contains(':'));
        let Some((project, role)) = role else {
            return Err(format!("{subject:?} is no role of a project"));
        };
        // Numbers may come with fractions; a time that is there and none must not mean "for ever".
        let time = |claim: &str| -> Result<Option<i64>, String> {
            match &claims[claim] {
                Value::Null => Ok(None),
                #[expect(clippy::cast_possible_truncation, reason = "seconds, and saturating")]
                value => value
                    .as_i64()
                    .or_else(|| value.as_f64().map(|seconds| seconds as i64))
                    .map(Some)
                    .ok_or_else(|| format!("{claim} is no time")),
            }
        };
        let issued = time("iat")?.ok_or("iat is missing")?;
        let expires = time("exp")?;
        if expires.is_some_and(|end| now >= end) {
            return Err("the token has expired".to_owned());
        }
        if time("nbf")?.is_some_and(|begin| now < begin - 10) {
            return Err("the token is not valid yet".to_owned());
        }
        Ok(Self {
            project: project.to_owned(),
            role: role.to_owned(),
            id: claims["jti"].as_str().unwrap_or_default().to_owned(),
            issued,
            expires: expires.unwrap_or(0),
        })
    }

    /// Whether a project knows the token: it has the role, and lists the token by its id, or by its time if it has none.
    pub fn is_listed(&self, project: &Value) -> bool {
        let roles = project["spec"]["roles"].as_array();
        let Some(role) = roles
            .into_iter()
            .flatten()
            .find(|role| role["name"] == self.role.as_str())
        else {
            return false;
        };
        let in_status = &project["status"]["jwtTokensByRole"][self.role.as_str()]["items"];
        let mut listed = [&role["jwtTokens"], in_status]
            .into_iter()
            .filter_map(Value::as_array)
            .flatten();
        listed.any(|entry| match self.id.as_str() {
            "" => entry["iat"] == self.issued,
            id => entry["id"] == id,
        })
    }

    /// The change to a project that makes the token one of its own, in both lists; those that are over go.
    ///
    /// # Errors
    /// There is no such role, or a token of that name already.
    pub fn listing(&self, project: &Value, now: i64) -> Result<Value, String> {
        let mut entry = json!({"iat": self.issued, "id": self.id});
        if self.expires != 0 {
            entry["exp"] = self.expires.into();
        }
        let mut tokens = tokens(project, &self.role)?;
        if tokens.iter().any(|token| token["id"] == self.id.as_str()) {
            return Err(format!("Token id '{}' has been used. ", self.id));
        }
        tokens.retain(|token| token["exp"].as_i64().is_none_or(|end| end == 0 || end > now));
        tokens.push(entry);
        Ok(with_tokens(project, &self.role, &tokens))
    }
}

/// The change to a project that revokes a token, by its id or by its time.
///
/// # Errors
/// There is no such role or token.
pub fn revocation(project: &Value, role: &str, id: &str) -> Result<Value, String> {
    let mut tokens = tokens(project, role)?;
    let before = tokens.len();
    let time: Option<i64> = id.parse().ok();
    let is_meant =
        |token: &Value| token["id"] == id || time.is_some_and(|time| token["iat"].as_i64() == Some(time));
    tokens.retain(|token| !is_meant(token));
    if tokens.len() == before {
        return Err(format!("role '{role}' has no token '{id}'"));
    }
    Ok(with_tokens(project, role, &tokens))
}

/// The tokens of a role, from both lists, each once.
///
/// # Errors
/// There is no such role.
pub fn tokens(project: &Value, role: &str) -> Result<Vec<Value>, String> {
    let name = project["metadata"]["name"].as_str().unwrap_or_default();
    let roles = project["spec"]["roles"].as_array();
    let found = roles.into_iter().flatten().find(|it| it["name"] == role);
    let found = found.ok_or_else(|| format!("project '{name}' does not have role '{role}'"))?;
    let mut all: Vec<Value> = Vec::new();
    for list in [
        &project["status"]["jwtTokensByRole"][role]["items"],
        &found["jwtTokens"],
    ] {
        for token in list.as_array().into_iter().flatten() {
            let is_same = |other: &Value| other["iat"] == token["iat"] && other["id"] == token["id"];
            if !all.iter().any(is_same) {
                all.push(token.clone());
            }
        }
    }
    Ok(all)
}

fn with_tokens(project: &Value, role: &str, tokens: &[Value]) -> Value {
    let mut roles = project["spec"]["roles"].clone();
    for it in roles.as_array_mut().into_iter().flatten() {
        if it["name"] == role {
            it["jwtTokens"] = tokens.to_vec().into();
        }
    }
    let mut by_role = Map::new();
    by_role.insert(role.to_owned(), json!({ "items": tokens }));
    json!({"spec": {"roles": roles}, "status": {"jwtTokensByRole": by_role}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: &str, issued: i64, expires: i64) -> ProjectToken {
        ProjectToken {
            project: "shop".to_owned(),
            role: "ci".to_owned(),
            id: id.to_owned(),
            issued,
            expires,
        }
    }

    #[test]
    fn claims_are_read_as_they_were_written() {
        for made in [token("a", 100, 0), token("a", 100, 200), token("", 100, 200)] {
            assert_eq!(ProjectToken::read(&made.claims(), 150).unwrap(), made);
        }
        let good = token("a", 100, 200).claims();
        for (field, value, now, complaint) in [
            ("iss", json!("somebody"), 150, "issuer"),
            ("sub", json!("admin"), 150, "no role of a project"),
            ("sub", json!("proj:shop"), 150, "no role of a project"),
            ("sub", json!("proj:shop:ci:x"), 150, "no role of a project"),
            ("sub", json!("proj::ci"), 150, "no role of a project"),
            ("exp", json!(200), 200, "expired"),
            ("exp", json!("never"), 150, "exp is no time"),
            ("nbf", json!(300), 150, "not valid yet"),
            ("iat", Value::Null, 150, "iat is missing"),
        ] {
            let mut claims = good.clone();
            claims[field] = value;
            let error = ProjectToken::read(&claims, now).unwrap_err();
            assert!(error.contains(complaint), "{field}: {error}");
        }
    }

    #[test]
    fn a_project_knows_its_tokens() {
        let mut project =
            json!({"metadata": {"name": "shop"}, "spec": {"roles": [{"name": "ci"}, {"name": "dev"}]}});
        assert!(!token("a", 100, 0).is_listed(&project));
        let apply = |project: &mut Value, patch: Value| {
            project["spec"]["roles"] = patch["spec"]["roles"].clone();
            project["status"]["jwtTokensByRole"]["ci"] = patch["status"]["jwtTokensByRole"]["ci"].clone();
        };
        let patch = token("a", 100, 120).listing(&project, 100).unwrap();
        apply(&mut project, patch);
        assert!(token("a", 100, 120).is_listed(&project));
        assert!(!token("b", 100, 0).is_listed(&project), "the id counts");
        assert!(
            token("", 100, 0).is_listed(&project),
            "older tokens are known by their time"
        );
        let mut other = token("a", 100, 0);
        other.role = "dev".to_owned();
        assert!(!other.is_listed(&project));
        assert!(
            token("a", 110, 0)
                .listing(&project, 110)
                .unwrap_err()
                .contains("has been used")
        );
        other.role = "nobody".to_owned();
        assert!(
            other
                .listing(&project, 110)
                .unwrap_err()
                .contains("does not have role 'nobody'")
        );

        // What has expired goes when the next one comes.
        let patch = token("b", 130, 0).listing(&project, 130).unwrap();
        apply(&mut project, patch);
        assert_eq!(tokens(&project, "ci").unwrap(), [json!({"iat": 130, "id": "b"})]);

        assert!(revocation(&project, "ci", "a").is_err());
        let patch = revocation(&project, "ci", "130").unwrap();
        apply(&mut project, patch);
        assert!(!token("b", 130, 0).is_listed(&project));
        assert!(tokens(&project, "ci").unwrap().is_empty());
    }

    #[test]
    fn a_role_that_is_gone_has_no_tokens() {
        let project = json!({"spec": {"roles": []}, "status": {"jwtTokensByRole": {"ci": {"items": [{"iat": 100, "id": "a"}]}}}});
        assert!(!token("a", 100, 0).is_listed(&project));
    }
}
