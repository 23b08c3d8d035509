//! A Gitea on loopback: pages, tokens, and answers that are none.

use fairway_controller::fake::Script;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A server that gives these answers, one for each connection; its address, and the heads of the requests.
async fn serve(answers: Vec<(u16, String)>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut heads = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            heads.push(String::from_utf8_lossy(&head[..length]).to_lowercase());
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
        heads
    });
    (address, task)
}

fn pull(number: usize) -> Value {
    json!({
        "number": number, "title": "t", "head": {"ref": "feat", "sha": "abc"}, "base": {"ref": "main"},
        "user": {"login": "anna"}, "labels": [{"name": "preview"}],
    })
}

fn asking(api: &str, token: &str) -> Gitea {
    Gitea {
        asked: Asked {
            workspace: WorkspaceId::root(),
            api: api.to_owned(),
            owner: "shop".to_owned(),
            name: "web".to_owned(),
        },
        token: token.to_owned(),
        is_insecure: false,
    }
}

#[tokio::test]
async fn all_pages_are_read() {
    let full: Vec<Value> = (0..PAGE).map(pull).collect();
    let answers = vec![
        (200, json!(full).to_string()),
        (200, json!([pull(77)]).to_string()),
    ];
    let (address, server) = serve(answers).await;
    let found = asking(&address, "secret").open().await.unwrap();
    assert_eq!(found.len(), PAGE + 1);
    let expected = PullRequest {
        number: 77,
        title: "t".to_owned(),
        branch: "feat".to_owned(),
        target_branch: "main".to_owned(),
        head: "abc".to_owned(),
        labels: vec!["preview".to_owned()],
        author: "anna".to_owned(),
    };
    assert_eq!(found[PAGE], expected);
    let heads = server.await.unwrap();
    assert!(
        heads[1].starts_with("get /api/v1/repos/shop/web/pulls?state=open&page=2&limit=50 "),
        "{heads:?}"
    );
    assert!(
        heads
            .iter()
            .all(|head| head.contains("authorization: token secret"))
    );
}

#[tokio::test]
async fn answers_that_are_none() {
    for (status, body, expected) in [
        (404, "{}", "there is no repository shop/web"),
        (500, "{\"message\": \"inside\"}", "it answered 500"),
        (200, "{}", "its answer is no list"),
    ] {
        let (address, server) = serve(vec![(status, body.to_owned())]).await;
        let error = asking(&address, "").open().await.unwrap_err();
        assert_eq!(matches!(error, PullsError::NotFound(_)), status == 404);
        let said = error.to_string();
        assert!(said.contains(expected) && !said.contains("inside"), "{said}");
        assert!(!server.await.unwrap()[0].contains("authorization"));
    }
    for (api, expected) in [("ftp://x", "begins with https://"), ("::", "this is no address")] {
        let said = asking(api, "").open().await.unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
}

#[tokio::test]
async fn providers_and_their_secrets() {
    let secret = json!({"data": {"token": "dG9w"}});
    let script = Script::new()
        .expect(
            "GET",
            "/api/v1/namespaces/argocd/secrets/gitea",
            200,
            secret.clone(),
        )
        .expect("GET", "/api/v1/namespaces/argocd/secrets/gitea", 200, secret);
    let requests = Requests::new(script.clients().root());
    let root = WorkspaceId::root();
    let provider = |key: &str, repo: &str| json!({"api": "https://x/", "owner": "shop", "repo": repo, "tokenRef": {"secretName": "gitea", "key": key}});
    let found = Gitea::read(&requests, &root, "argocd", &provider("token", "web"))
        .await
        .unwrap();
    assert_eq!(
        (found.token.as_str(), found.asked.api.as_str()),
        ("top", "https://x")
    );
    let error = Gitea::read(&requests, &root, "argocd", &provider("other", "web"))
        .await
        .err()
        .unwrap();
    assert_eq!(
        error,
        "error fetching Secret token: key \"other\" in secret argocd/gitea not found"
    );
    for repo in ["", "../x", "a/b", "a?b"] {
        let provider = json!({"api": "https://x", "owner": "shop", "repo": repo});
        let error = Gitea::read(&requests, &root, "argocd", &provider)
            .await
            .err()
            .unwrap();
        assert!(error.contains("is no repository"), "{repo}: {error}");
    }
    script.finish();
}
