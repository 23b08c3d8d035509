//! People whom a domain knows by tokens of its own: at home in a workspace and below it, and gone when the domain says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use fairway_kernel_apiserver::authn::{Guests, UserInfo};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::harness::Server;
use crate::workspaces::workspace;

const A: &str = "aaaaaaaaaaaaaaaa";
const TEAM: &str = "cccccccccccccccc";
const B: &str = "bbbbbbbbbbbbbbbb";
const BOND: &str = "acme/alice/1";
const HOME: &str = "authentication.fairway.dev/home";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// What a book says of the one whose token it knows: a member of a group, somebody without one, nobody, or a member whose token has expired.
pub(crate) const MEMBER: u8 = 0;
pub(crate) const WITHOUT_GROUP: u8 = 1;
pub(crate) const UNKNOWN: u8 = 2;
pub(crate) const EXPIRED: u8 = 3;

/// Knows one token. Its user is at home in A, or in the root.
#[derive(Default)]
pub(crate) struct Book(AtomicU8, bool);

impl Book {
    pub(crate) fn in_the_root() -> Self {
        Self(AtomicU8::new(MEMBER), true)
    }

    pub(crate) fn set(&self, state: u8) {
        self.0.store(state, Ordering::SeqCst);
    }

    fn user(&self) -> Result<UserInfo, String> {
        let groups: &[&str] = match self.0.load(Ordering::SeqCst) {
            MEMBER | EXPIRED => &["acme/devs"],
            WITHOUT_GROUP => &[],
            _ => return Err("disabled".to_owned()),
        };
        let mut user = UserInfo::new("acme/alice", groups.iter().copied());
        let home = if self.1 { "root" } else { A };
        user.extra.insert(HOME.to_owned(), vec![home.to_owned()]);
        Ok(user)
    }
}

impl Guests for Book {
    fn authenticate<'a>(
        &'a self,
        _: &'a str,
        token: &'a str,
    ) -> BoxFuture<'a, Option<Result<UserInfo, String>>> {
        let found = match self.0.load(Ordering::SeqCst) {
            EXPIRED => Err("expired".to_owned()),
            _ => self.user(),
        };
        Box::pin(std::future::ready((token == "alice").then_some(found)))
    }

    /// In the root it knows him without his token, too.
    fn stands(&self, _: &str, user: &UserInfo) -> Option<Result<UserInfo, String>> {
        (self.1 && user.name == "acme/alice").then(|| self.user())
    }

    fn bond(&self, user: &UserInfo) -> Option<String> {
        (user.name == "acme/alice").then(|| BOND.to_owned())
    }

    fn holds(&self, bond: &str) -> Option<Result<(), String>> {
        (bond == BOND).then(|| self.user().map(drop))
    }
}

fn at(id: &str, path: &str) -> String {
    format!("/clusters/{id}{path}")
}

#[tokio::test]
async fn a_guest_is_at_home_in_a_workspace_and_below_it_for_as_long_as_he_is_known() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    workspace(&server, A, "team", TEAM).await;
    workspace(&server, "root", "b", B).await;
    let book = Arc::new(Book::default());
    server.kernel.guests.add(Arc::clone(&book) as Arc<dyn Guests>);
    let alice = server.anonymous().with("authorization", "Bearer alice");
    // Let in at home, where roles decide; elsewhere not.
    for (id, sentence) in [
        (A, "cannot list resource"),
        (TEAM, "cannot list resource"),
        (B, "does not exist or"),
    ] {
        let refused = alice.get(&at(id, MAPS)).await.expect(403);
        assert!(
            refused["message"].as_str().unwrap().contains(sentence),
            "{refused}"
        );
    }
    let binding = json!({"metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "acme/devs"}]});
    for id in [A, TEAM] {
        let path = at(id, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings");
        server.admin().post(&path, &binding).await.expect(201);
        alice.get(&at(id, MAPS)).await.expect(200);
    }
    // A neighbour's change ends nobody's watch; leaving the group does, and so does to be known no longer.
    let url = format!("{}?watch=1", at(A, MAPS));
    for state in [WITHOUT_GROUP, UNKNOWN] {
        book.set(MEMBER);
        let mut watch = alice.watch(&url).await;
        server.kernel.guests.standing_changed();
        let name = format!("m{state}");
        let map = json!({"metadata": {"name": name}});
        server.admin().post(&at(A, MAPS), &map).await.expect(201);
        loop {
            let event = watch.next().await.expect("the watch goes on");
            if event["object"]["metadata"]["name"] == name.as_str() {
                break;
            }
        }
        book.set(state);
        server.kernel.guests.standing_changed();
        assert_eq!(watch.next().await, None, "state {state}");
    }
    alice.get(&at(A, MAPS)).await.expect(401);
}

/// The root is above every workspace: to be at home there opens none. `access` in the parent does.
#[tokio::test]
async fn whoever_is_at_home_in_the_root_is_let_in_by_access_alone() {
    let server = Server::start().await;
    workspace(&server, "root", "a", A).await;
    workspace(&server, A, "team", TEAM).await;
    server.kernel.guests.add(Arc::new(Book::in_the_root()));
    let alice = server.anonymous().with("authorization", "Bearer alice");
    let admin = server.admin();
    // Even where the roles inside let everybody look.
    let everybody = json!({"metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    for id in ["root", A, TEAM] {
        admin.post(&at(id, bindings), &everybody).await.expect(201);
    }
    let review = json!({"spec": {"token": "alice"}});
    let is_known = async |id: &str| {
        let path = at(id, "/apis/authentication.k8s.io/v1/tokenreviews");
        let answer = admin.post(&path, &review).await.expect(201);
        answer["status"]["authenticated"] == true
    };
    alice.get(&at("root", MAPS)).await.expect(200);
    assert!(is_known("root").await);
    for id in [A, TEAM] {
        let refused = alice.get(&at(id, MAPS)).await.expect(403);
        assert!(
            refused["message"].as_str().unwrap().contains("does not exist or"),
            "{refused}"
        );
        assert!(!is_known(id).await, "who asks about the token is told the same");
    }
    let rules = json!([{"apiGroups": ["tenancy.kcp.io"], "resources": ["workspaces"], "resourceNames": ["a"], "verbs": ["access"]}]);
    let role = json!({"metadata": {"name": "visitors"}, "rules": rules});
    admin
        .post(
            &at("root", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
            &role,
        )
        .await
        .expect(201);
    let visitors = json!({"metadata": {"name": "visitors"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "visitors"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "acme/devs"}]});
    admin.post(&at("root", bindings), &visitors).await.expect(201);
    alice.get(&at(A, MAPS)).await.expect(200);
    assert!(is_known(A).await);
    // What is below has a parent of its own.
    alice.get(&at(TEAM, MAPS)).await.expect(403);
}

/// Tokens of service accounts that a guest asked for, by whatever way, count for as long as he does.
#[tokio::test]
async fn a_token_that_a_guest_asked_for_ends_with_him() {
    let server = Server::start().await;
    let book = Arc::new(Book::in_the_root());
    server.kernel.guests.add(Arc::clone(&book) as Arc<dyn Guests>);
    let admin = server.admin();
    let binding = json!({"metadata": {"name": "devs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "acme/devs"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]});
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.post(path, &binding).await.expect(201);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    admin
        .post(accounts, &json!({"metadata": {"name": "robot"}}))
        .await
        .expect(201);
    let path = format!("{accounts}/robot/token");
    let bearer = |token: &str| {
        server
            .anonymous()
            .with("authorization", &format!("Bearer {token}"))
    };
    let request = json!({"metadata": {}, "spec": {"audiences": []}});
    let text = |made: &Value| made["status"]["token"].as_str().unwrap().to_owned();
    let alice = bearer("alice");
    let own = text(&alice.post(&path, &request).await.expect(201));
    let further = text(&bearer(&own).post(&path, &request).await.expect(201));
    let acting = alice.with("impersonate-user", "system:admin");
    let acting = acting.with("impersonate-group", "system:masters");
    let acted = text(&acting.post(&path, &request).await.expect(201));
    let named =
        json!({"metadata": {"annotations": {"authentication.fairway.dev/requested-by": BOND}}, "spec": {}});
    let named = text(&admin.post(&path, &named).await.expect(201));
    let lasting = text(&admin.post(&path, &request).await.expect(201));
    let bound = [
        ("her own", own),
        ("one got by it", further),
        ("one got as somebody else", acted),
        ("one that somebody got for her", named),
    ];
    let mut watch = bearer(&bound[0].1).watch(&format!("{MAPS}?watch=1")).await;
    for (state, code) in [(MEMBER, 200), (UNKNOWN, 401), (MEMBER, 200)] {
        book.set(state);
        for (what, token) in &bound {
            assert_eq!(
                bearer(token).get(MAPS).await.code,
                code,
                "{what} in state {state}"
            );
        }
        bearer(&lasting).get(MAPS).await.expect(200);
    }
    book.set(UNKNOWN);
    server.kernel.guests.standing_changed();
    assert_eq!(watch.next().await, None, "a watch ends, too");
}
