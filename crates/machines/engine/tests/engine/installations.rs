//! Objects that ask for what is there already.

use serde_json::json;

use crate::harness::{condition, everywhere, until};

#[tokio::test]
async fn whoever_waits_for_an_installation_does_not_wait_long() {
    everywhere(|world| async move {
        for (api_version, kind, place, name) in [
            (
                "kubevirt.io/v1",
                "KubeVirt",
                "/apis/kubevirt.io/v1/namespaces/vms/kubevirts",
                "kubevirt",
            ),
            (
                "cdi.kubevirt.io/v1beta1",
                "CDI",
                "/apis/cdi.kubevirt.io/v1beta1/cdis",
                "cdi",
            ),
            (
                "hco.kubevirt.io/v1beta1",
                "HyperConverged",
                "/apis/hco.kubevirt.io/v1beta1/namespaces/vms/hyperconvergeds",
                "kubevirt-hyperconverged",
            ),
        ] {
            let object =
                json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {}});
            world.create(place, object).await;
            let path = format!("{place}/{name}");
            let available =
                |it: &serde_json::Value| condition(it, "Available").is_some_and(|it| it.0 == "True");
            let told = until(&world.api, &path, "available", available).await;
            assert_eq!(condition(&told, "Degraded").unwrap().0, "False", "{kind}");
            assert_eq!(condition(&told, "Progressing").unwrap().0, "False", "{kind}");
        }
        assert_eq!(world.passes("machine-installations", "error"), 0);
        world.end().await;
    })
    .await;
}
