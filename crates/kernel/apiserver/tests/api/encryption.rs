//! Secrets lie encrypted in the store, and what is immutable stays as it is.

use fairway_kernel_store::{KeyRange, Range};
use serde_json::json;

use crate::harness::{CONFIG_MAPS, Server, config_map};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn stored(server: &Server, prefix: &[u8]) -> Vec<Vec<u8>> {
    let range = Range {
        keys: KeyRange::prefix(prefix),
        revision: None,
        limit: 0,
        keys_only: false,
        count_only: false,
    };
    server
        .store
        .range(range)
        .await
        .unwrap()
        .kvs
        .into_iter()
        .map(|kv| kv.value.to_vec())
        .collect()
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle.as_bytes())
}

#[tokio::test]
async fn secrets_do_not_lie_in_the_clear() {
    let server = Server::start().await;
    let admin = server.admin();
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "correct horse"}});
    let made = admin.post(SECRETS, &secret).await.expect(201);
    let encoded = made["data"]["password"].as_str().unwrap().to_owned();
    assert_eq!(encoded, "Y29ycmVjdCBob3JzZQ==");
    assert!(
        made.get("stringData").is_none(),
        "what is only for writing is not shown"
    );
    admin.post(CONFIG_MAPS, &config_map("visible")).await.expect(201);
    let check = async |when: &str| {
        let secrets = stored(&server, b"/core/secrets/").await;
        assert_eq!(secrets.len(), 1);
        for hidden in ["correct horse", encoded.as_str(), "password", "Secret"] {
            assert!(
                !contains(&secrets[0], hidden),
                "{when}: {hidden:?} can be read in the store"
            );
        }
    };
    check("after create").await;
    let maps = stored(&server, b"/core/configmaps/").await;
    assert!(
        maps.iter().any(|v| contains(v, "visible")),
        "the search itself works"
    );
    admin
        .patch(
            "merge",
            &format!("{SECRETS}/s"),
            &json!({"metadata": {"labels": {"a": "b"}}}),
        )
        .await
        .expect(200);
    check("after a patch").await;
    let held = json!({"metadata": {"finalizers": ["test.dev/wait"]}});
    admin
        .patch("merge", &format!("{SECRETS}/s"), &held)
        .await
        .expect(200);
    admin.delete(&format!("{SECRETS}/s")).await.expect(200);
    check("after the mark of deletion").await;
    let kernel = server.restarted().await;
    let again = kernel
        .storage
        .cache
        .kind("/core/secrets/builtin/")
        .get("root/default/s")
        .unwrap();
    assert_eq!(
        again.value().unwrap()["data"]["password"],
        encoded.as_str(),
        "with its keys the server reads it again"
    );
}

#[tokio::test]
async fn what_is_immutable_stays() {
    let server = Server::start().await;
    let admin = server.admin();
    for (path, body, change) in [
        (
            CONFIG_MAPS,
            json!({"metadata": {"name": "i"}, "immutable": true, "data": {"k": "v"}}),
            json!({"data": {"k": "w"}}),
        ),
        (
            CONFIG_MAPS,
            json!({"metadata": {"name": "b"}, "immutable": true, "binaryData": {"k": "AA=="}}),
            json!({"binaryData": {"k": "AQ=="}}),
        ),
        (
            SECRETS,
            json!({"metadata": {"name": "i"}, "immutable": true, "data": {"k": "AA=="}}),
            json!({"data": {"k": "AQ=="}}),
        ),
        (
            SECRETS,
            json!({"metadata": {"name": "t"}, "type": "Opaque", "data": {"k": "AA=="}}),
            json!({"type": "other"}),
        ),
    ] {
        admin.post(path, &body).await.expect(201);
        let one = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
        let refused = admin.patch("merge", &one, &change).await;
        refused.refused(422, "Invalid", "immutable");
        admin
            .patch("merge", &one, &json!({"metadata": {"labels": {"a": "b"}}}))
            .await
            .expect(200);
        if body["immutable"] == true {
            let refused = admin.patch("merge", &one, &json!({"immutable": false})).await;
            refused.refused(422, "Invalid", "immutable");
        }
    }
}
