//! The portal's own sessions. The portal is a program like others, which gets a code by a browser and redeems it; but it is in this
//! process, so it needs neither a secret nor a refresh token: its session is an object, and a token is made from it when one is
//! needed. The browser has a cookie whose digest is in the object, and nothing else.

use fairway_api::identity::SESSION;
use fairway_controller::Failure;
use fairway_portal_realm::claims::{self, Subject};
use fairway_portal_realm::client::{PORTAL, PORTAL_CALLBACK};
use fairway_portal_realm::grant::{self, Offer, Outcome};
use fairway_portal_realm::session::Kind;
use fairway_portal_realm::{Member, Session, portal, secret, time};
use serde_json::{Value, json};
use tracing::warn;

use crate::provider::Provider;
use crate::random;
use crate::realms::now;

/// A session that was just begun.
pub struct Begun {
    /// Its name.
    pub name: String,
    /// What the browser is known by.
    pub secret: String,
}

/// Why no session began.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// The code is not good.
    #[error("{0}")]
    Refused(&'static str),
    /// Something of ours failed.
    #[error("the session could not be written down")]
    Failed(#[source] Failure),
}

impl From<Failure> for NotBegun {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A session, as its object says.
#[derive(Debug, Clone)]
pub struct PortalSession {
    /// Of the browser's secret.
    pub digest: String,
    /// Whose.
    pub user: String,
    /// Whose, also if another one takes the name.
    pub user_uid: String,
    /// When it began, in seconds since 1970.
    pub began: i64,
    /// When it ends, if it is not used.
    pub expires: i64,
    /// The browser's session at the provider that it came from.
    browser: String,
    read: Value,
}

impl PortalSession {
    fn new(read: Value) -> Option<Self> {
        let session = Session::read(&read)?;
        let began = read.pointer("/metadata/creationTimestamp")?.as_str()?;
        let is_ours = session.kind == Kind::Grant && session.client == PORTAL;
        // Until its code was redeemed it is nobody's.
        (is_ours && !session.secret_digest.is_empty()).then_some(Self {
            began: time::read(began)?,
            expires: time::read(&session.expires_at)?,
            digest: session.secret_digest,
            user: session.user,
            user_uid: session.user_uid,
            browser: session.browser,
            read,
        })
    }
}

impl Provider {
    /// Where a browser is sent to sign in to a realm; none if there is no such realm.
    pub fn authorization_endpoint(&self, realm: &str) -> Option<String> {
        self.realms.read(|all| all.cluster(realm).map(drop))?;
        Some(format!("{}/authorize", self.realms.issuer(realm)))
    }

    /// Where codes of the portal are sent.
    pub fn portal_callback(&self) -> String {
        format!("{}{PORTAL_CALLBACK}", self.portal)
    }

    /// The address of the provider itself.
    pub fn base(&self) -> &str {
        &self.base
    }

    fn cluster_of(&self, realm: &str) -> Option<String> {
        self.realms.read(|all| all.cluster(realm).map(str::to_owned))
    }

    /// Redeems a code: from now on the session is the browser's that gets the secret.
    pub async fn begin_portal(
        &self,
        realm: &str,
        code: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<Begun, NotBegun> {
        let cluster = self
            .cluster_of(realm)
            .ok_or(NotBegun::Refused("there is no such realm"))?;
        let (name, offered) = grant::split(code).ok_or(NotBegun::Refused("the code is not one"))?;
        let read = self.objects.get(&cluster, SESSION, name).await?;
        let found = read.and_then(|it| Session::read(&it).map(|session| (it, session)));
        let (read, session) = found.ok_or(NotBegun::Refused("the code is not known"))?;
        let callback = self.portal_callback();
        let offer = Offer {
            client: PORTAL,
            secret: offered,
            redirect_uri: &callback,
            verifier: Some(verifier),
        };
        let now = now();
        let is_same = |it: &str| secret::is_equal(it.as_bytes(), nonce.as_bytes());
        let outcome = match grant::redeem(&session, offer, now) {
            Outcome::Grant if !session.nonce.as_deref().is_some_and(is_same) => {
                Outcome::Revoke("the code was asked for by another browser")
            }
            outcome => outcome,
        };
        let why = match outcome {
            Outcome::Grant => {
                let fresh = random::secret().map_err(|error| Failure::NotYet(error.to_string()))?;
                let sign_in_ends = time::read(&session.expires_at).unwrap_or(now);
                let change = json!({
                    "code": {"redeemed": true}, "nonce": null, "secretDigest": secret::digest(&fresh),
                    "expiresAt": time::write(portal::end(now, now, sign_in_ends)),
                });
                if self.objects.change(&cluster, SESSION, &read, &change).await? {
                    return Ok(Begun {
                        name: name.to_owned(),
                        secret: fresh,
                    });
                }
                // Somebody used it in the same moment.
                "the code was used before"
            }
            Outcome::Refuse(why) => return Err(NotBegun::Refused(why)),
            Outcome::Revoke(why) => why,
        };
        warn!(
            realm,
            session = name,
            why,
            "a session was ended: its code was misused"
        );
        self.objects.delete(&cluster, SESSION, name).await?;
        Err(NotBegun::Refused(why))
    }

    /// Whether a realm has a session of that name, of any kind.
    pub fn knows_session(&self, realm: &str, name: &str) -> bool {
        self.realms.read(|all| all.session(realm, name).is_some())
    }

    /// A session by its name; none if there is none that goes on.
    pub async fn portal_session(&self, realm: &str, name: &str) -> Result<Option<PortalSession>, Failure> {
        // Most wrong cookies are found out without asking anybody.
        let cluster = self.realms.read(|all| {
            all.session(realm, name)
                .and(all.cluster(realm))
                .map(str::to_owned)
        });
        let Some(cluster) = cluster else {
            return Ok(None);
        };
        let read = self.objects.get(&cluster, SESSION, name).await?;
        Ok(read.and_then(PortalSession::new))
    }

    /// Who is signed in by a session at this moment; why nobody is, otherwise.
    pub fn portal_member(
        &self,
        realm: &str,
        name: &str,
        session: &PortalSession,
    ) -> Result<Member, &'static str> {
        self.realms
            .read(|all| all.signed_in(realm, &session.user, &session.user_uid, name, now()))
    }

    /// A token for the API and when it ends, in the name of a session.
    pub async fn portal_token(
        &self,
        realm: &str,
        name: &str,
        session: &PortalSession,
    ) -> Result<(String, i64), Failure> {
        let now = now();
        let member = self
            .portal_member(realm, name, session)
            .map_err(|why| Failure::NotYet(why.to_owned()))?;
        let signer = self.signers.of(&self.realms, &self.objects, realm, now).await?;
        let issuer = self.realms.issuer(realm);
        let kept = Session::read(&session.read).unwrap_or_default();
        let subject = Subject {
            issuer: &issuer,
            member: &member,
            session_name: name,
            session: &kept,
            api_access: true,
        };
        let id = random::secret().map_err(|error| Failure::NotYet(error.to_string()))?;
        let said = claims::access(subject, &id, now, portal::TOKEN);
        Ok((signer.sign(claims::ACCESS, &said)?, now + portal::TOKEN))
    }

    /// Notes that a session is used. The session as it is then, if that was worth a write.
    pub async fn use_portal(
        &self,
        realm: &str,
        name: &str,
        session: &PortalSession,
    ) -> Result<Option<PortalSession>, Failure> {
        let found = self.realms.read(|all| {
            let sign_in_ends = all.session(realm, &session.browser).map(|it| it.expires);
            all.cluster(realm).map(|it| (it.to_owned(), sign_in_ends))
        });
        // Whoever has signed out at the provider keeps what was written.
        let Some((cluster, Some(sign_in_ends))) = found else {
            return Ok(None);
        };
        let Some(end) = portal::moved(session.began, now(), sign_in_ends, session.expires) else {
            return Ok(None);
        };
        let change = json!({"expiresAt": time::write(end)});
        // Whether or not somebody else was quicker: what counts is what is written now.
        self.objects
            .change(&cluster, SESSION, &session.read, &change)
            .await?;
        self.portal_session(realm, name).await
    }

    /// Ends a session and the sign-in that it came from, so that the next one begins with a password.
    pub async fn end_portal(
        &self,
        realm: &str,
        name: &str,
        session: &PortalSession,
        with_sign_in: bool,
    ) -> Result<(), Failure> {
        let Some(cluster) = self.cluster_of(realm) else {
            return Ok(());
        };
        self.objects.delete(&cluster, SESSION, name).await?;
        if with_sign_in && !session.browser.is_empty() {
            self.objects.delete(&cluster, SESSION, &session.browser).await?;
        }
        Ok(())
    }
}
