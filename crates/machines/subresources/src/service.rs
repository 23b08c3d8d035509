//! The API: which subresources there are, and who answers each.

use std::sync::Arc;

use fairway_apiservice::{ApiService, Body, BoxError, Handler, RequestInfo, Resource};
use fairway_controller::{ClientFactory, Clients, WorkspaceId};
use fairway_fabric::Fabric;
use fairway_machines_guests::Guests;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::json;
use tower::service_fn;

use crate::door::handshake;
use crate::objects::Objects;
use crate::refusal::Refusal;
use crate::version::version;
use crate::{USER, answer};

/// The group.
pub const GROUP: &str = "subresources.kubevirt.io";
/// Its versions, the preferred one first.
pub const VERSIONS: [&str; 2] = ["v1", "v1alpha3"];

/// One version of the API.
pub struct Service {
    version: &'static str,
    hands: Arc<Hands>,
}

/// What is needed to do what people ask for.
pub(crate) struct Hands {
    pub(crate) clients: Clients,
    pub(crate) guests: Arc<dyn Guests>,
    pub(crate) fabric: Arc<dyn Fabric>,
}

impl Service {
    /// Every version of the API, to be served one by one. Must be called within a runtime.
    pub fn versions(clients: &ClientFactory, guests: Arc<dyn Guests>, fabric: Arc<dyn Fabric>) -> [Self; 2] {
        let hands = Arc::new(Hands {
            clients: clients.clients(USER),
            guests,
            fabric,
        });
        VERSIONS.map(|version| Self {
            version,
            hands: Arc::clone(&hands),
        })
    }
}

impl ApiService for Service {
    fn group_version(&self) -> (&str, &str) {
        (GROUP, self.version)
    }

    fn resources(&self) -> Vec<Resource> {
        let put = |name: &str, kind: &str| Resource::new(name, kind).verbs(&["update"]);
        let get = |name: &str, kind: &str| Resource::new(name, kind).verbs(&["get"]);
        let stream = |name: &str| get(name, "Stream").long_running();
        // Not an object that could be found by a name of its kind.
        let nameless = |name: &str, kind: &str| Resource {
            singular: String::new(),
            ..Resource::new(name, kind)
        };
        let whole = |name: &str, kind: &str| nameless(name, kind).cluster_scoped().verbs(&["list"]);
        vec![
            put("virtualmachines/start", "StartOptions"),
            put("virtualmachines/stop", "StopOptions"),
            put("virtualmachines/restart", "RestartOptions"),
            put("virtualmachines/migrate", "MigrateOptions"),
            put("virtualmachines/addvolume", "AddVolumeOptions"),
            put("virtualmachines/removevolume", "RemoveVolumeOptions"),
            put("virtualmachines/memorydump", "VirtualMachineMemoryDumpRequest"),
            put(
                "virtualmachines/removememorydump",
                "VirtualMachineMemoryDumpRequest",
            ),
            get("virtualmachines/expand-spec", "VirtualMachine"),
            stream("virtualmachines/portforward"),
            stream("virtualmachineinstances/console"),
            stream("virtualmachineinstances/vnc"),
            stream("virtualmachineinstances/portforward"),
            stream("virtualmachineinstances/usbredir"),
            stream("virtualmachineinstances/vsock"),
            Resource::new("virtualmachineinstances/backup", "Backup")
                .verbs(&["get", "update"])
                .long_running(),
            put("virtualmachineinstances/pause", "PauseOptions"),
            put("virtualmachineinstances/unpause", "UnpauseOptions"),
            put("virtualmachineinstances/freeze", "FreezeUnfreezeTimeout"),
            put("virtualmachineinstances/unfreeze", "FreezeUnfreezeTimeout"),
            put("virtualmachineinstances/reset", "ResetOptions"),
            put("virtualmachineinstances/softreboot", "SoftRebootOptions"),
            put("virtualmachineinstances/addvolume", "AddVolumeOptions"),
            put("virtualmachineinstances/removevolume", "RemoveVolumeOptions"),
            get(
                "virtualmachineinstances/guestosinfo",
                "VirtualMachineInstanceGuestAgentInfo",
            ),
            get(
                "virtualmachineinstances/userlist",
                "VirtualMachineInstanceGuestOSUserList",
            ),
            get(
                "virtualmachineinstances/filesystemlist",
                "VirtualMachineInstanceFileSystemList",
            ),
            Resource::new("virtualmachineinstances/sev", "SEVPlatformInfo").verbs(&["get", "update"]),
            nameless("expand-vm-spec", "ExpandVMSpec").verbs(&["update"]),
            whole("version", "Version"),
            whole("guestfs", "GuestfsInfo"),
            whole("healthz", "Health"),
        ]
    }

    fn handler(&self) -> Handler {
        let hands = Arc::clone(&self.hands);
        Handler::new(service_fn(move |request| {
            let hands = Arc::clone(&hands);
            async move { hands.answer(request).await }
        }))
    }
}

impl Hands {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let info = request
            .extensions()
            .get::<RequestInfo>()
            .cloned()
            .unwrap_or_default();
        let workspace = match WorkspaceId::parse(&info.cluster) {
            Ok(workspace) => workspace,
            Err(error) => return Ok(answer::refused(&Refusal::bad_request(error.to_string()))),
        };
        let asked = Asked {
            objects: Objects::new(
                self.clients.of(&workspace),
                info.namespace.as_deref().unwrap_or_default(),
                &info.name,
            ),
            workspace,
            info,
        };
        let answer = match (asked.info.resource.as_str(), asked.info.subresource.as_str()) {
            ("version", _) => Ok(answer::json(StatusCode::OK, &version())),
            ("healthz", _) => Ok(self.health(&asked).await),
            ("guestfs", _) => {
                let why = "there are no containers here to run libguestfs-tools in: look into a disk with `guestfish` on \
                           its node, or from another machine";
                let body = json!({"guestfs": {"status": "failed", "error": why}});
                Ok(answer::json(StatusCode::INTERNAL_SERVER_ERROR, &body))
            }
            ("virtualmachineinstances", "backup") => self.backup(&asked, request).await,
            (_, "console" | "vnc" | "portforward" | "usbredir" | "vsock") => {
                let handshake = handshake(&request);
                let query = request.uri().query().unwrap_or_default().to_owned();
                self.stream(&asked, handshake, &query).await
            }
            (resource, _) => {
                let of_machine = resource == "virtualmachines";
                let body = request.into_body().collect().await?.to_bytes();
                match (resource, of_machine) {
                    ("expand-vm-spec", _) => self.expand_given(&asked, &body).await,
                    (_, true) => self.machine(&asked, &body).await,
                    (_, false) => self.instance(&asked, &body).await,
                }
            }
        };
        Ok(answer.unwrap_or_else(|refusal| answer::refused(&refusal)))
    }

    /// Whether the API can be reached from here, and which it is.
    async fn health(&self, asked: &Asked) -> Response<Body> {
        match asked.objects.other("/version").await {
            Ok(version) => {
                let body = json!({"apiserver": {"connectivity": "ok", "version": version}});
                answer::json(StatusCode::OK, &body)
            }
            Err(refusal) => {
                let body = json!({"apiserver": {"connectivity": "failed", "error": refusal.message}});
                answer::json(StatusCode::INTERNAL_SERVER_ERROR, &body)
            }
        }
    }
}

/// What is asked, and where.
pub(crate) struct Asked {
    pub(crate) objects: Objects,
    pub(crate) workspace: WorkspaceId,
    pub(crate) info: RequestInfo,
}
